/* gbxcule.h, by the CUDA driver API. Also valid C++, so that a .cu file may include it.
 *
 * game.gbx is a list of launches: kernels, and their arguments as bytes. An argument may contain addresses of arrays
 * and numbers that depend on the number of envs; patches say where. All arrays lie in one block of the GPU's memory.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gbxcule.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef GBX_DRIVER
#define GBX_DRIVER "libcuda.so.1"
#endif
#define GBX_MAGIC "gbxcule native 1"
#define GBX_WARP 32
#define GBX_MOST_ENVS (1 << 24)

/* ---- The driver. Its functions are looked up by name, so that a program starts without a GPU, too. */

typedef uint64_t gbx_address;
typedef int gbx_result;

static struct {
    gbx_result (*init)(unsigned);
    gbx_result (*context)(void **);
    gbx_result (*set_context)(void *);
    gbx_result (*device)(int *);
    gbx_result (*first_device)(int *, int);
    gbx_result (*retain)(void **, int);
    gbx_result (*attribute)(int *, int, int);
    gbx_result (*load)(void **, const void *);
    gbx_result (*unload)(void *);
    gbx_result (*function)(void **, void *, const char *);
    gbx_result (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                         void **);
    gbx_result (*allocate)(gbx_address *, size_t);
    gbx_result (*release)(gbx_address);
    gbx_result (*upload)(gbx_address, const void *, size_t, void *);
    gbx_result (*download)(void *, gbx_address, size_t, void *);
    gbx_result (*fill)(gbx_address, unsigned, size_t, void *);
    gbx_result (*fill_bytes)(gbx_address, unsigned char, size_t, void *);
    gbx_result (*wait)(void *);
    gbx_result (*text)(gbx_result, const char **);
} gbx_cu;

static const struct {
    void *function;
    const char *name;
} gbx_functions[] = {
    {&gbx_cu.init, "cuInit"}, {&gbx_cu.context, "cuCtxGetCurrent"}, {&gbx_cu.set_context, "cuCtxSetCurrent"},
    {&gbx_cu.device, "cuCtxGetDevice"}, {&gbx_cu.first_device, "cuDeviceGet"},
    {&gbx_cu.retain, "cuDevicePrimaryCtxRetain"}, {&gbx_cu.attribute, "cuDeviceGetAttribute"},
    {&gbx_cu.load, "cuModuleLoadData"}, {&gbx_cu.unload, "cuModuleUnload"}, {&gbx_cu.function, "cuModuleGetFunction"},
    {&gbx_cu.launch, "cuLaunchKernel"}, {&gbx_cu.allocate, "cuMemAlloc_v2"}, {&gbx_cu.release, "cuMemFree_v2"},
    {&gbx_cu.upload, "cuMemcpyHtoDAsync_v2"}, {&gbx_cu.download, "cuMemcpyDtoHAsync_v2"},
    {&gbx_cu.fill, "cuMemsetD32Async"}, {&gbx_cu.fill_bytes, "cuMemsetD8Async"},
    {&gbx_cu.wait, "cuStreamSynchronize"}, {&gbx_cu.text, "cuGetErrorString"},
};

/* ---- The file, as gbxcule_puffer/native/export.py writes it: the head, then each table, then bytes. */

enum gbx_symbol { GBX_ENVS, GBX_WARPS, GBX_LANES, GBX_WANTED, GBX_LEARNERS, GBX_COUNTERS, GBX_WHOLE, GBX_SEED,
                  GBX_LOG_STRIDE, GBX_ENV_LANES, GBX_SYMBOLS };
enum gbx_given { GBX_OBSERVATIONS = 1, GBX_ACTIONS, GBX_REWARDS, GBX_TERMINALS, GBX_LOG_ROWS, GBX_GIVEN };

typedef struct { char magic[16]; uint64_t digest; uint64_t size; uint32_t lanes, packed, twins, obs_size;
                 uint32_t arrays, kernels, cubins, launches, resets, arguments, patches, raw; } gbx_head;
typedef struct { int64_t fixed, per_env; uint64_t content, content_size; uint32_t fill; int32_t given; } gbx_array;
typedef struct { char name[124]; uint32_t module; } gbx_kernel;
typedef struct { char file[40]; uint32_t module, arch; uint64_t size, digest; } gbx_cubin;
typedef struct { int32_t symbol, fixed; } gbx_number;
typedef struct { uint32_t kernel, block, first, arguments, dimensions, padding; gbx_number dim[2]; } gbx_launch;
typedef struct { uint32_t offset, size, first, patches; } gbx_argument;
typedef struct { uint32_t offset; int32_t size, symbol, array; int64_t fixed, factor; } gbx_patch;

/* The dimensions of a launch as Warp's kernels take them, as their first argument. */
typedef struct { uint32_t shape[2]; size_t size, threads_a_coordinate; } gbx_bounds;

#define GBX_MOST_ARGUMENTS 12

typedef struct { void *function; unsigned grid, block; gbx_bounds bounds; void *arguments[1 + GBX_MOST_ARGUMENTS]; }
    gbx_ready_launch;

struct gbx_env {
    unsigned char *file;
    size_t file_size;
    const gbx_head *head;
    const gbx_array *arrays;
    const gbx_kernel *kernels;
    const gbx_cubin *cubins;
    const gbx_launch *launches;
    const gbx_argument *arguments;
    const gbx_patch *patches;
    unsigned char *raw;             /* a copy of the arguments, patched */
    int64_t symbols[GBX_SYMBOLS];
    void **modules;
    gbx_ready_launch *ready;        /* those of a reset first */
    gbx_address block, *addresses;  /* of all memory, and of each array */
    size_t block_size;
    gbx_arrays given;
};

static __thread char gbx_text[512];

const char *gbx_message(void) { return gbx_text; }

static int gbx_fail(int error, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    vsnprintf(gbx_text, sizeof gbx_text, format, rest);
    va_end(rest);
    return error;
}

static int gbx_check(gbx_result result, const char *action)
{
    const char *text = NULL;
    if (result == 0)
        return GBX_OK;
    gbx_cu.text(result, &text);
    return gbx_fail(GBX_CUDA_ERROR, "%s: CUDA error %d, %s", action, result, text ? text : "unknown");
}

#define GBX_TRY(call) do { int gbx_error_of_call = (call); if (gbx_error_of_call) return gbx_error_of_call; } while (0)

static int gbx_open_driver(int *arch)
{
    void *library = dlopen(GBX_DRIVER, RTLD_NOW | RTLD_GLOBAL), *context = NULL;
    int device = 0, major = 0, minor = 0;
    size_t i;
    if (!library)
        return gbx_fail(GBX_CUDA_ERROR, "%s does not open (%s): install NVIDIA's driver", GBX_DRIVER, dlerror());
    for (i = 0; i < sizeof gbx_functions / sizeof *gbx_functions; i++) {
        void *found = dlsym(library, gbx_functions[i].name);
        if (!found)
            return gbx_fail(GBX_CUDA_ERROR, "%s lacks %s: install a newer driver", GBX_DRIVER, gbx_functions[i].name);
        memcpy(gbx_functions[i].function, &found, sizeof found);
    }
    GBX_TRY(gbx_check(gbx_cu.init(0), "cuInit"));
    GBX_TRY(gbx_check(gbx_cu.context(&context), "cuCtxGetCurrent"));
    if (!context) {
        GBX_TRY(gbx_check(gbx_cu.first_device(&device, 0), "cuDeviceGet"));
        GBX_TRY(gbx_check(gbx_cu.retain(&context, device), "cuDevicePrimaryCtxRetain"));
        GBX_TRY(gbx_check(gbx_cu.set_context(context), "cuCtxSetCurrent"));
    }
    GBX_TRY(gbx_check(gbx_cu.device(&device), "cuCtxGetDevice"));
    GBX_TRY(gbx_check(gbx_cu.attribute(&major, 75, device), "compute capability"));
    GBX_TRY(gbx_check(gbx_cu.attribute(&minor, 76, device), "compute capability"));
    *arch = 10 * major + minor;
    return GBX_OK;
}

/* FNV-1a of 64 bits: it finds files of another version and damaged ones, no forgeries. */
static uint64_t gbx_digest(const unsigned char *bytes, size_t size)
{
    uint64_t value = 0xCBF29CE484222325u;
    size_t i;
    for (i = 0; i < size; i++)
        value = (value ^ bytes[i]) * 0x100000001B3u;
    return value;
}

static int gbx_map(const char *folder, const char *name, unsigned char **bytes, size_t *size)
{
    char path[4096];
    struct stat status;
    int file;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return gbx_fail(GBX_BAD_ARGUMENT, "the folder's name is too long");
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) || status.st_size < 1) {
        if (file >= 0)
            close(file);
        return gbx_fail(GBX_BAD_FILE, "%s cannot be read: write the folder with `puffer native`", path);
    }
    *size = (size_t)status.st_size;
    *bytes = (unsigned char *)mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (*bytes == (unsigned char *)MAP_FAILED) {
        *bytes = NULL;
        return gbx_fail(GBX_NO_MEMORY, "%s cannot be mapped", path);
    }
    return GBX_OK;
}

static int gbx_read_game(gbx_env *env, const char *folder, uint64_t digest)
{
    const gbx_head *head;
    const size_t start = offsetof(gbx_head, size);
    GBX_TRY(gbx_map(folder, "game.gbx", &env->file, &env->file_size));
    head = env->head = (const gbx_head *)env->file;
    if (env->file_size < sizeof *head || memcmp(head->magic, GBX_MAGIC, sizeof head->magic))
        return gbx_fail(GBX_OTHER_VERSION, "%s/game.gbx is not of this version: write it again", folder);
    if (head->size != env->file_size || head->digest != gbx_digest(env->file + start, env->file_size - start))
        return gbx_fail(GBX_BAD_FILE, "%s/game.gbx is damaged: write it again with `puffer native`", folder);
    if (digest && digest != head->digest)
        return gbx_fail(GBX_OTHER_VERSION, "%s/game.gbx is not of the game.h that was compiled: compile again", folder);
    env->arrays = (const gbx_array *)(head + 1);
    env->kernels = (const gbx_kernel *)(env->arrays + head->arrays);
    env->cubins = (const gbx_cubin *)(env->kernels + head->kernels);
    env->launches = (const gbx_launch *)(env->cubins + head->cubins);
    env->arguments = (const gbx_argument *)(env->launches + head->launches);
    env->patches = (const gbx_patch *)(env->arguments + head->arguments);
    env->raw = (unsigned char *)malloc(head->raw);
    env->modules = (void **)calloc(head->kernels, sizeof *env->modules);
    env->ready = (gbx_ready_launch *)calloc(head->launches, sizeof *env->ready);
    env->addresses = (gbx_address *)calloc(head->arrays, sizeof *env->addresses);
    if (!env->raw || !env->modules || !env->ready || !env->addresses)
        return gbx_fail(GBX_NO_MEMORY, "no memory for the game's tables");
    memcpy(env->raw, env->patches + head->patches, head->raw);
    return GBX_OK;
}

static int64_t gbx_ceil(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }
static int64_t gbx_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* lane_order.Sizes, and what else depends on the number of envs. */
static void gbx_set_symbols(gbx_env *env, int num_envs)
{
    const int64_t n = num_envs;
    int64_t warps = gbx_ceil(n, env->head->lanes), *symbols = env->symbols;
    symbols[GBX_WANTED] = warps;
    if (env->head->packed) {
        warps = gbx_max(warps, gbx_ceil(n, GBX_WARP / 2 + 1)) + GBX_WARP + 1;
        warps = warps < n ? warps : n;
    }
    symbols[GBX_ENVS] = n;
    symbols[GBX_WARPS] = warps;
    symbols[GBX_LANES] = warps * GBX_WARP;
    symbols[GBX_LEARNERS] = gbx_max(n, env->head->twins);
    symbols[GBX_COUNTERS] = gbx_max(n, warps * GBX_WARP);
    symbols[GBX_WHOLE] = gbx_ceil(n, GBX_WARP) * GBX_WARP;
    symbols[GBX_ENV_LANES] = n * GBX_WARP;
    symbols[GBX_LOG_STRIDE] = env->given.log_stride ? (int64_t)env->given.log_stride : GBX_LOGS * 4;
}

/* The program's pointer for an array that it may give. */
static void **gbx_given_pointer(gbx_arrays *given, int number)
{
    void *pointers[GBX_GIVEN] = {NULL, &given->observations, &given->actions, &given->rewards, &given->terminals,
                                 &given->logs};
    return (void **)pointers[number];
}

static size_t gbx_size_of(const gbx_env *env, const gbx_array *array)
{
    if (array->given == GBX_LOG_ROWS)
        return (size_t)(env->symbols[GBX_ENVS] * env->symbols[GBX_LOG_STRIDE]);
    return (size_t)(array->fixed + array->per_env * env->symbols[GBX_ENVS]);
}

static int gbx_lay_out_arrays(gbx_env *env)
{
    uint32_t i;
    size_t end = 0;
    for (i = 0; i < env->head->arrays; i++) {
        const gbx_array *array = &env->arrays[i];
        if (array->given && *gbx_given_pointer(&env->given, array->given))
            continue;
        env->addresses[i] = end;
        end += (gbx_size_of(env, array) + 255) / 256 * 256;
    }
    env->block_size = end;
    if (gbx_cu.allocate(&env->block, end)) {
        env->block = 0;
        return gbx_fail(GBX_NO_MEMORY, "the GPU has no %.1f GB for %lld envs: use fewer", end / 1e9,
                        (long long)env->symbols[GBX_ENVS]);
    }
    for (i = 0; i < env->head->arrays; i++) {
        void **given = env->arrays[i].given ? gbx_given_pointer(&env->given, env->arrays[i].given) : NULL;
        if (given && *given) {
            env->addresses[i] = (gbx_address)(uintptr_t)*given;
            continue;
        }
        env->addresses[i] += env->block;
        if (given)
            *given = (void *)(uintptr_t)env->addresses[i];
    }
    return GBX_OK;
}

static void gbx_patch_arguments(gbx_env *env)
{
    uint32_t i;
    for (i = 0; i < env->head->patches; i++) {
        const gbx_patch *patch = &env->patches[i];
        int64_t value = patch->fixed + patch->factor * env->symbols[patch->symbol];
        if (patch->array >= 0)
            value += (int64_t)env->addresses[patch->array];
        memcpy(env->raw + patch->offset, &value, (size_t)patch->size); /* little-endian, as all that has CUDA */
    }
}

/* The module's code for the GPU: of its own architecture, or an older one of the same generation. */
static int gbx_load_module(gbx_env *env, const char *folder, uint32_t module, int arch)
{
    const gbx_cubin *best = NULL;
    unsigned char *bytes = NULL;
    size_t size = 0;
    uint32_t i;
    int error;
    for (i = 0; i < env->head->cubins; i++) {
        const gbx_cubin *cubin = &env->cubins[i];
        if (cubin->module == module && cubin->arch / 10 == (uint32_t)arch / 10 && cubin->arch <= (uint32_t)arch &&
            (!best || cubin->arch > best->arch))
            best = cubin;
    }
    if (!best)
        return gbx_fail(GBX_OTHER_VERSION, "%s has no kernels for sm_%d: write it with --arch %d", folder, arch, arch);
    GBX_TRY(gbx_map(folder, best->file, &bytes, &size));
    if (size != best->size || gbx_digest(bytes, size) != best->digest)
        error = gbx_fail(GBX_OTHER_VERSION, "%s/%s is not of this game.gbx: write all again", folder, best->file);
    else
        error = gbx_check(gbx_cu.load(&env->modules[module], bytes), best->file);
    munmap(bytes, size);
    return error;
}

static int gbx_prepare_launches(gbx_env *env, const char *folder, int arch)
{
    uint32_t i, j;
    for (i = 0; i < env->head->launches; i++) {
        const gbx_launch *launch = &env->launches[i];
        const gbx_kernel *kernel = &env->kernels[launch->kernel];
        gbx_ready_launch *ready = &env->ready[i];
        if (!env->modules[kernel->module])
            GBX_TRY(gbx_load_module(env, folder, kernel->module, arch));
        GBX_TRY(gbx_check(gbx_cu.function(&ready->function, env->modules[kernel->module], kernel->name), kernel->name));
        ready->bounds.size = 1;
        ready->bounds.threads_a_coordinate = 1;
        for (j = 0; j < launch->dimensions; j++) {
            gbx_number number = launch->dim[j];
            ready->bounds.shape[j] = (uint32_t)(number.symbol < 0 ? number.fixed : env->symbols[number.symbol]);
            ready->bounds.size *= ready->bounds.shape[j];
        }
        ready->block = launch->block;
        ready->grid = (unsigned)((ready->bounds.size + launch->block - 1) / launch->block);
        ready->arguments[0] = &ready->bounds;
        for (j = 0; j < launch->arguments; j++)
            ready->arguments[1 + j] = env->raw + env->arguments[launch->first + j].offset;
    }
    return GBX_OK;
}

/* Copies what the game's file has to the GPU, or back to their first values all arrays that change. */
static int gbx_fill_arrays(gbx_env *env, int with_contents, void *stream)
{
    uint32_t i;
    for (i = 0; i < env->head->arrays; i++) {
        const gbx_array *array = &env->arrays[i];
        const size_t size = gbx_size_of(env, array);
        if (array->given == GBX_ACTIONS)
            continue;
        if (array->content) {
            if (with_contents)
                GBX_TRY(gbx_check(gbx_cu.upload(env->addresses[i], env->file + array->content, size, stream),
                                  "upload"));
            continue;
        }
        GBX_TRY(gbx_check(gbx_cu.fill(env->addresses[i], array->fill, size / 4, stream), "fill"));
        if (size % 4)
            GBX_TRY(gbx_check(gbx_cu.fill_bytes(env->addresses[i] + size / 4 * 4, (unsigned char)array->fill, size % 4,
                                            stream), "fill"));
    }
    return GBX_OK;
}

static int gbx_launch_all(gbx_env *env, uint32_t first, uint32_t end, void *stream)
{
    uint32_t i;
    for (i = first; i < end; i++) {
        gbx_ready_launch *each = &env->ready[i];
        gbx_result result = gbx_cu.launch(each->function, each->grid, 1, 1, each->block, 1, 1, 0, stream,
                                          each->arguments, NULL);
        if (result)
            return gbx_check(result, env->kernels[env->launches[i].kernel].name);
    }
    return GBX_OK;
}

static int gbx_open(gbx_env *env, const char *folder, uint64_t digest, int num_envs)
{
    int arch = 0;
    GBX_TRY(gbx_read_game(env, folder, digest));
    gbx_set_symbols(env, num_envs);
    GBX_TRY(gbx_open_driver(&arch));
    GBX_TRY(gbx_lay_out_arrays(env));
    gbx_patch_arguments(env);
    GBX_TRY(gbx_prepare_launches(env, folder, arch));
    GBX_TRY(gbx_fill_arrays(env, 1, NULL));
    return gbx_check(gbx_cu.wait(NULL), "upload");
}

int gbx_create(gbx_env **env, const char *folder, uint64_t digest, int num_envs, const gbx_arrays *arrays)
{
    int error;
    if (!env || !folder || num_envs < 1 || num_envs > GBX_MOST_ENVS)
        return gbx_fail(GBX_BAD_ARGUMENT, "num_envs is %d: give 1 to %d", num_envs, GBX_MOST_ENVS);
    if (arrays && (arrays->log_stride % 4 || (uintptr_t)arrays->observations % 4))
        return gbx_fail(GBX_BAD_ARGUMENT, "log_stride and the address of observations must be multiples of 4");
    *env = (gbx_env *)calloc(1, sizeof **env);
    if (!*env)
        return gbx_fail(GBX_NO_MEMORY, "no memory for the env");
    if (arrays)
        (*env)->given = *arrays;
    error = gbx_open(*env, folder, digest, num_envs);
    if (error) {
        gbx_close(*env);
        *env = NULL;
    }
    return error;
}

const gbx_arrays *gbx_arrays_of(const gbx_env *env) { return &env->given; }

int gbx_reset(gbx_env *env, int64_t seed, void *stream)
{
    env->symbols[GBX_SEED] = seed;
    gbx_patch_arguments(env);
    GBX_TRY(gbx_fill_arrays(env, 0, stream));
    return gbx_launch_all(env, 0, env->head->resets, stream);
}

int gbx_step(gbx_env *env, void *stream)
{
    return gbx_launch_all(env, env->head->resets, env->head->launches, stream);
}

int gbx_observe(gbx_env *env, int index, void *observation, void *stream)
{
    const size_t size = env->head->obs_size;
    const gbx_address rows = (gbx_address)(uintptr_t)env->given.observations;
    if (index < 0 || index >= env->symbols[GBX_ENVS])
        return gbx_fail(GBX_BAD_ARGUMENT, "env %d does not exist: give 0 to %lld", index,
                        (long long)env->symbols[GBX_ENVS] - 1);
    GBX_TRY(gbx_check(gbx_cu.download(observation, rows + (size_t)index * size, size, stream), "observe"));
    return gbx_check(gbx_cu.wait(stream), "observe");
}

typedef struct { uint64_t digest; int64_t num_envs, seed, size; } gbx_state;

/* Moves arrays between the GPU and a state behind its head: those that change, but for actions. */
static int gbx_move(gbx_env *env, unsigned char *state, int back, void *stream, size_t *size)
{
    size_t end = sizeof(gbx_state);
    uint32_t i;
    for (i = 0; i < env->head->arrays; i++) {
        const size_t bytes = gbx_size_of(env, &env->arrays[i]);
        if (env->arrays[i].content || env->arrays[i].given == GBX_ACTIONS || env->arrays[i].given == GBX_LOG_ROWS)
            continue;
        if (state && back)
            GBX_TRY(gbx_check(gbx_cu.upload(env->addresses[i], state + end, bytes, stream), "load"));
        else if (state)
            GBX_TRY(gbx_check(gbx_cu.download(state + end, env->addresses[i], bytes, stream), "save"));
        end += bytes;
    }
    if (size)
        *size = end;
    return state ? gbx_check(gbx_cu.wait(stream), "save or load") : GBX_OK;
}

size_t gbx_state_size(const gbx_env *env)
{
    size_t size = 0;
    gbx_move((gbx_env *)env, NULL, 0, NULL, &size);
    return size;
}

int gbx_save(gbx_env *env, void *state, void *stream)
{
    gbx_state head = {env->head->digest, env->symbols[GBX_ENVS], env->symbols[GBX_SEED], 0};
    head.size = (int64_t)gbx_state_size(env);
    memcpy(state, &head, sizeof head);
    return gbx_move(env, (unsigned char *)state, 0, stream, NULL);
}

int gbx_load(gbx_env *env, const void *state, size_t size, void *stream)
{
    gbx_state head;
    if (size != gbx_state_size(env))
        return gbx_fail(GBX_BAD_ARGUMENT, "a state has %zu bytes, this env's %zu", size, gbx_state_size(env));
    memcpy(&head, state, sizeof head);
    if (head.digest != env->head->digest || head.num_envs != env->symbols[GBX_ENVS])
        return gbx_fail(GBX_OTHER_VERSION, "the state is of another folder or number of envs");
    env->symbols[GBX_SEED] = head.seed;
    gbx_patch_arguments(env);
    return gbx_move(env, (unsigned char *)state, 1, stream, NULL);
}

void gbx_close(gbx_env *env)
{
    uint32_t i;
    if (!env)
        return;
    for (i = 0; env->modules && i < env->head->kernels; i++)
        if (env->modules[i])
            gbx_cu.unload(env->modules[i]);
    if (env->block)
        gbx_cu.release(env->block);
    if (env->file)
        munmap(env->file, env->file_size);
    free(env->raw);
    free(env->modules);
    free(env->ready);
    free(env->addresses);
    free(env);
}
