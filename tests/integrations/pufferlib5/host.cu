/* A trainer's part of the contract, without its learning: captures steps in CUDA graphs, and writes for each step
 * digests of observations, rewards and terminals, which test_pufferlib5.py compares with GBxCuLEEnv's.
 *
 *     host NUM_ENVS STEPS SECONDS SEED FILE [timed]
 *
 * It ends after STEPS, or after SECONDS. FILE gets int64: the steps, then three digests a step, the first those of the
 * reset. timed: digests of the reset and of the last step alone, which is made when the clock has stopped; those between
 * are 0. Actions are a hash of env and step. The last line says what the steps took.
 */
#include ENV_HEADER

#include <time.h>

#define STEPS_A_GRAPH 10
#define BLOCKS 1024 /* that make digests */

/* Words times odd weights of their index, summed up without an order: a few sums of the GPU's blocks, not of all words,
 * would else wait for each other. */
__device__ void add_up(unsigned long long *sum, const unsigned *words, size_t count)
{
    unsigned long long own = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
        own += (unsigned long long)(long long)(int)words[i] * ((i + 1) * 0x9E3779B97F4A7C15ull | 1);
    for (int lanes = 16; lanes; lanes /= 2)
        own += __shfl_down_sync(~0u, own, lanes);
    if (threadIdx.x % 32 == 0 && own)
        atomicAdd(sum, own);
}

__global__ void digest(const obs_t *observations, const float *rewards, const float *terminals, int n,
                       unsigned long long *digests, const int *step)
{
    unsigned long long *sums = digests + 3 * (size_t)*step;
    add_up(sums, (const unsigned *)observations, (size_t)n * (OBS_SIZE / 4));
    add_up(sums + 1, (const unsigned *)rewards, n);
    add_up(sums + 2, (const unsigned *)terminals, n);
}

__global__ void choose(float *actions, int n, int *step)
{
    const int sizes[] = ACT_SIZES;
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n * NUM_ATNS) {
        unsigned x = index * 0x9E3779B1u + *step * 0x85EBCA77u;
        x = (x ^ x >> 15) * 0x2C1B3C6Du;
        x = (x ^ x >> 12) * 0x297A2D39u;
        actions[index] = (x ^ x >> 15) % sizes[index % NUM_ATNS];
    }
}

__global__ void next(int *step) { ++*step; }

/* As the trainer does: the sums of all logs, which then begin at 0. */
__global__ void sum_logs(Env *envs, int n, float *sums)
{
    const int numbers = sizeof(Log) / sizeof(float);
    for (int i = 0; i < n; i++) {
        float *log = (float *)&envs[i].log;
        for (int j = 0; j < numbers; j++) {
            sums[j] += log[j];
            log[j] = 0;
        }
    }
}

static void check(cudaError_t error)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "host: %s\n", cudaGetErrorString(error));
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int count, char **words)
{
    const double begin = now();
    if (count < 6)
        return 2;
    const int timed = count > 6;
    const int n = atoi(words[1]), steps = atoi(words[2]);
    const double seconds = atof(words[3]);
    Dict kwargs = {}, out = {};
    obs_t *observations;
    float *actions, *rewards, *terminals, *sums;
    unsigned long long *digests;
    int *step;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t graphs[2];
    dict_set(&kwargs, "seed", atof(words[4]));
    check(cudaStreamCreate(&stream));
    check(cudaMalloc(&observations, (size_t)n * OBS_SIZE));
    check(cudaMalloc(&actions, n * NUM_ATNS * sizeof(float)));
    check(cudaMalloc(&rewards, n * sizeof(float)));
    check(cudaMalloc(&terminals, n * sizeof(float)));
    check(cudaMalloc(&digests, (steps + 1 + STEPS_A_GRAPH) * 24l));
    check(cudaMemset(digests, 0, (steps + 1 + STEPS_A_GRAPH) * 24l));
    check(cudaMalloc(&step, sizeof(int)));
    check(cudaMemset(step, 0, sizeof(int)));
    check(cudaMalloc(&sums, sizeof(Log)));
    check(cudaMemset(sums, 0, sizeof(Log)));
    Env *envs = puf_vec_create(n, &kwargs, observations, actions, rewards, terminals);
    puf_reset(envs); /* on the default stream */
    check(cudaDeviceSynchronize());
    puf_bind_stream(stream);
    digest<<<BLOCKS, 256, 0, stream>>>(observations, rewards, terminals, n, digests, step);
    for (int i = 0; i < 2; i++) {
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int j = 0; j < STEPS_A_GRAPH; j++) {
            choose<<<(n * NUM_ATNS + 255) / 256, 256, 0, stream>>>(actions, n, step);
            puf_step(envs);
            next<<<1, 1, 0, stream>>>(step);
            if (!timed)
                digest<<<BLOCKS, 256, 0, stream>>>(observations, rewards, terminals, n, digests, step);
        }
        check(cudaStreamEndCapture(stream, &graph));
        check(cudaGraphInstantiate(&graphs[i], graph, 0));
    }
    int done = 0;
    double first = 0, start = 0;
    for (; done < steps && (!first || now() - first < seconds); done += STEPS_A_GRAPH) {
        check(cudaGraphLaunch(graphs[done / STEPS_A_GRAPH % 2], stream));
        check(cudaStreamSynchronize(stream));
        if (!first)
            start = (first = now()) - begin;
    }
    const double took = now() - first;
    if (timed)
        digest<<<BLOCKS, 256, 0, stream>>>(observations, rewards, terminals, n, digests, step);
    sum_logs<<<1, 1, 0, stream>>>(envs, n, sums);
    Log log;
    check(cudaMemcpyAsync(&log, sums, sizeof log, cudaMemcpyDeviceToHost, stream));
    check(cudaStreamSynchronize(stream));
    const float episodes = log.n;
    for (size_t i = 0; i < sizeof log / sizeof(float); i++)
        ((float *)&log)[i] /= episodes > 0 ? episodes : 1;
    puf_log(&log, &out);
    FILE *file = fopen(words[5], "wb");
    const size_t size = (done + 1) * 3;
    unsigned long long *all = (unsigned long long *)malloc(size * 8);
    const long long number = done;
    check(cudaMemcpy(all, digests, size * 8, cudaMemcpyDeviceToHost));
    if (!file || fwrite(&number, 8, 1, file) != 1 || fwrite(all, 8, size, file) != size || fclose(file))
        return 1;
    printf("num_envs %d steps %d sps %.0f start_seconds %.2f episodes %.0f", n, done,
           (double)n * (done - STEPS_A_GRAPH) / took, start, episodes);
    for (int i = 0; i < out.size; i++)
        printf(" %s %.4f", out.names[i], out.values[i]);
    printf("\n");
    puf_close(envs);
    return 0;
}
