/* Thousands of Game Boys on an NVIDIA GPU, for programs in C and C++. `puffer native` writes the folder that this
 * library opens: compiled kernels, the game's data, and game.h with the sizes of observations and actions.
 *
 * Build gbxcule.c with your program; link with -ldl where the C library wants it. It opens the CUDA driver itself
 * (libcuda.so.1) and works with the runtime, too. A function returns 0, or a gbx_error whose text is gbx_message().
 */
#ifndef GBXCULE_H
#define GBXCULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gbx_error { GBX_OK, GBX_BAD_ARGUMENT, GBX_BAD_FILE, GBX_OTHER_VERSION, GBX_NO_MEMORY, GBX_CUDA_ERROR };

/* Columns of a row of logs: sums over the episodes that ended, their number the last. Set them to 0 when you like. */
enum gbx_log {
    GBX_EPISODE_RETURN, GBX_EPISODE_LENGTH, GBX_SUCCESS, GBX_TRUNCATED, GBX_LOCKED, GBX_BAD_ACTIONS, GBX_EPISODES,
    GBX_LOGS
};

/* Arrays in the GPU's memory, a row for each env. Those that are NULL are allocated by gbx_create. */
typedef struct gbx_arrays {
    void *observations; /* as game.h says: bytes, GBX_OBS_SIZE a row; the address is a multiple of 4 */
    float *actions;     /* whole numbers, GBX_NUM_ACTIONS a row: gbx_step reads them */
    float *rewards;
    float *terminals;   /* 1 where an episode ended in this step; the observation is of the next one */
    float *logs;        /* GBX_LOGS a row */
    size_t log_stride;  /* bytes from a row of logs to the next; 0: they follow each other */
} gbx_arrays;

typedef struct gbx_env gbx_env;

/* Opens `folder` for num_envs Game Boys on the current CUDA context, or GPU 0. digest: GBX_DIGEST of the game.h that the
 * program was compiled with, or 0 for any. arrays: yours, or NULL; afterwards gbx_arrays_of has all of them. */
int gbx_create(gbx_env **env, const char *folder, uint64_t digest, int num_envs, const gbx_arrays *arrays);
const gbx_arrays *gbx_arrays_of(const gbx_env *env);

/* Begins an episode in every env: observations, and zeros as rewards and terminals. The same seed gives the same
 * episodes as GBxCuLEEnv's. */
int gbx_reset(gbx_env *env, int64_t seed, void *stream);

/* One action in every env, all of it on `stream` (a CUstream or cudaStream_t). Nothing is allocated, and the host waits
 * for nothing, so a CUDA graph can capture it. */
int gbx_step(gbx_env *env, void *stream);

/* Copies the observation of one env to the host, GBX_OBS_SIZE bytes; waits for the stream. */
int gbx_observe(gbx_env *env, int index, void *observation, void *stream);

/* Copies everything that the next steps depend on to gbx_state_size bytes of the host, and back; both wait for the
 * stream. A state belongs to its folder, its number of envs and its GPU's kind. */
size_t gbx_state_size(const gbx_env *env);
int gbx_save(gbx_env *env, void *state, void *stream);
int gbx_load(gbx_env *env, const void *state, size_t size, void *stream);

void gbx_close(gbx_env *env);

/* The last error of this thread in words. */
const char *gbx_message(void);

#ifdef __cplusplus
}
#endif
#endif
