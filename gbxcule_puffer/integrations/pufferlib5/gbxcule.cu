/* A Game Boy's game for PufferLib 5, whose trainer includes this file: a batch on the GPU, stepped by libgbxcule.
 * It stands in a folder of `puffer native`, beside game.h and the data, and is compiled from there:
 *
 *     nvcc ... -DENV_HEADER='"FOLDER/gbxcule.cu"'
 *
 * The folder is found again by this file's path, or by the environment variable GBX_FOLDER.
 */
#include "gbxcule.c"
#include "game.h"

#if GBX_VALUE_SIZE != 1
#error "PufferLib takes observations of bytes: write the folder with another --obs"
#endif

#define PUF_BACKEND PUF_GPU
#define ACT_SIZES GBX_ACTION_SIZES
#define NUM_ATNS GBX_NUM_ACTIONS
#define OBS_SIZE GBX_OBS_SIZE
typedef unsigned char obs_t;

#include "pufferenv.h"

/* As enum gbx_log: sums over episodes that ended, which the trainer adds up and divides by n. */
struct Log {
    float episode_return, episode_length, success, truncated, locked, bad_actions, n;
};

struct Env {
    Log log;
    Agent agents[1];
    int num_agents, tag, boundary_reached;
};

static struct {
    gbx_env *env;
    Env *rows; /* on the GPU: the library writes their logs */
    cudaStream_t stream;
    int64_t seed;
} gbx_batch;

static void gbx_or_exit(int error)
{
    if (error) {
        fprintf(stderr, "gbxcule: %s\n", gbx_message());
        exit(1);
    }
}

/* The folder of this file, unless GBX_FOLDER names another. */
static const char *gbx_folder(void)
{
    static char folder[4096];
    const char *given = getenv("GBX_FOLDER"), *end = strrchr(__FILE__, '/');
    if (given)
        return given;
    snprintf(folder, sizeof folder, "%.*s", end ? (int)(end - __FILE__) : 1, end ? __FILE__ : ".");
    return folder;
}

void puf_init(Env *env, Dict *kwargs)
{
    (void)kwargs;
    env->num_agents = 1;
}

Env *puf_vec_create(int n, Dict *kwargs, obs_t *observations, float *actions, float *rewards, float *terminals)
{
    gbx_arrays arrays = {observations, actions, rewards, terminals, NULL, sizeof(Env)};
    gbx_batch.seed = (int64_t)dict_get(kwargs, "seed");
    if (cudaMalloc((void **)&gbx_batch.rows, n * sizeof(Env)) || cudaMemset(gbx_batch.rows, 0, n * sizeof(Env))) {
        fprintf(stderr, "gbxcule: the GPU has no memory for %d envs\n", n);
        exit(1);
    }
    arrays.logs = &gbx_batch.rows->log.episode_return;
    gbx_or_exit(gbx_create(&gbx_batch.env, gbx_folder(), GBX_DIGEST, n, &arrays));
    return gbx_batch.rows;
}

void puf_bind_stream(cudaStream_t stream) { gbx_batch.stream = stream; }

void puf_reset(Env *envs)
{
    (void)envs;
    gbx_or_exit(gbx_reset(gbx_batch.env, gbx_batch.seed, gbx_batch.stream));
}

void puf_step(Env *envs)
{
    (void)envs;
    gbx_or_exit(gbx_step(gbx_batch.env, gbx_batch.stream));
}

void puf_log(Log *log, Dict *out)
{
    dict_set(out, "perf", log->success);
    dict_set(out, "score", log->episode_return);
    dict_set(out, "episode_return", log->episode_return);
    dict_set(out, "episode_length", log->episode_length);
    dict_set(out, "success", log->success);
    dict_set(out, "truncated", log->truncated);
    dict_set(out, "locked", log->locked);
    dict_set(out, "bad_actions", log->bad_actions);
}

/* Prints env 0's picture in a terminal, two lines of pixels a line of text; shades and packed pictures only. */
void puf_render(Env *envs)
{
#if GBX_PIXELS /* of a byte */
    static unsigned char observation[GBX_OBS_SIZE];
    static const char *marks = " .+#";
    const unsigned char *picture = observation + GBX_OBS_SIZE - GBX_PLANES * GBX_ROWS * GBX_ROW_SIZE;
    int row, column;
    gbx_or_exit(gbx_observe(gbx_batch.env, 0, observation, gbx_batch.stream));
    printf("\033[H");
    for (row = 0; row < GBX_ROWS; row += 2) {
        for (column = 0; column < GBX_ROW_SIZE * GBX_PIXELS; column++) {
            const int byte = picture[row * GBX_ROW_SIZE + column / GBX_PIXELS];
            putchar(marks[byte >> (GBX_PIXELS == 4 ? 6 - 2 * (column % 4) : 0) & 3]);
        }
        putchar('\n');
    }
    fflush(stdout);
#endif
    (void)envs;
}

void puf_close(Env *envs)
{
    (void)envs;
    gbx_close(gbx_batch.env);
    cudaFree(gbx_batch.rows);
    memset(&gbx_batch, 0, sizeof gbx_batch);
}
