/* The functions of CUDA's driver that gbxcule.c calls, for a CPU: memory is the host's, and a launch calls the program,
 * which runs the same kernel as Warp compiles it for CPUs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int (*launcher)(const char *kernel, void **arguments);
static launcher launch;

void set_launcher(launcher given) { launch = given; }

int cuInit(unsigned flags) { return (int)flags; }
int cuCtxGetCurrent(void **context) { *context = NULL; return 0; }
int cuCtxSetCurrent(void *context) { return context == NULL; }
int cuCtxGetDevice(int *device) { *device = 0; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &launch; return device; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 75 ? 9 : 0; return device; }
int cuModuleLoadData(void **module, const void *image) { *module = strdup(image); return 0; }
int cuModuleUnload(void *module) { free(module); return 0; }
int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    *address = (uint64_t)(uintptr_t)malloc(size);
    memset((void *)(uintptr_t)*address, 0xA5, size); /* as a GPU, it gives what was there before */
    return 0;
}
int cuMemFree_v2(uint64_t address) { free((void *)(uintptr_t)address); return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream)
{
    memcpy((void *)(uintptr_t)to, from, size);
    return stream != NULL;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream)
{
    memcpy(to, (void *)(uintptr_t)from, size);
    return stream != NULL;
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream)
{
    for (size_t i = 0; i < count; i++)
        ((unsigned *)(uintptr_t)to)[i] = value;
    return stream != NULL;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream)
{
    memset((void *)(uintptr_t)to, value, count);
    return stream != NULL;
}
int cuStreamSynchronize(void *stream) { return stream != NULL; }
int cuGetErrorString(int error, const char **text) { *text = error ? "an error" : "none"; return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = (void *)name; /* of the mapped file, as long as the env lives */
    return module == NULL;
}
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block, unsigned block_y, unsigned block_z,
                   unsigned shared, void *stream, void **arguments, void **extra)
{
    return shared || extra || stream || x * y * z * block * block_y * block_z == 0 || launch(function, arguments);
}
