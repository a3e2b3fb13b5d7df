/* tests/emulator/emulator.h on a GPU: tests of kernels run on one as they run on the emulator. Each
 * array is memory of its own, so that compute-sanitizer sees what lies behind it. */
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>
#include "emulator.h"
#include "device/cuda/gpu.h"
extern "C" {
#include "base/error.h"
#include "device/cuda_plugin.h"

extern const keel_cuda_plugin keel_cuda;
}

static std::vector<void *> arrays;

static void must(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

void emu_seed(uint32_t seed) /* a GPU has its own order */
{
    (void)seed;
}

/* No number is written there, so what a kernel has not written shows. */
void *emu_allocate(int64_t bytes, const char *name)
{
    void *at;
    must(cudaMalloc(&at, bytes > 0 ? (size_t)bytes : 1), name);
    if (!getenv("KEEL_SANITIZED")) must(cudaMemset(at, 0xff, (size_t)bytes), name);
    arrays.push_back(at);
    return at;
}

void emu_release_all(void)
{
    for (void *at : arrays) must(cudaFree(at), "release");
    arrays.clear();
}

void emu_copy_in(void *to, const void *from, int64_t bytes)
{
    must(cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyHostToDevice), "copy in");
}

void emu_copy_out(void *to, const void *from, int64_t bytes)
{
    must(cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyDeviceToHost), "copy out");
}

const char *emu_report(void)
{
    static std::string text;
    const cudaError_t e = cudaDeviceSynchronize();
    if (e == cudaSuccess) return nullptr;
    text = cudaGetErrorString(e);
    return text.c_str();
}

int64_t emu_launches(void) /* they are not counted, so each time there were some */
{
    static int64_t n;
    return ++n;
}

keel_device *emu_device(void)
{
    static keel_device *device;
    if (!device && keel_cuda.open(&device, 0) < 0) {
        fprintf(stderr, "%s\n", keel_error());
        exit(1);
    }
    return device;
}

keel_status emu_data_fault(void)
{
    return emu_device()->type->finish(emu_device());
}
