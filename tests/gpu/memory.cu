/* tests/emulator/emulator.h on a GPU: tests of kernels run on one as they run on the emulator. For
 * compute-sanitizer (KEEL_SANITIZED) each array is memory of its own, so that it sees what lies
 * behind it; else arrays are pieces of one, since to allocate takes longer than to compute. What
 * they hold is written on the stream that kernels run on, so that none comes before it. */
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>
#include "emulator.h"
#include "device/cuda/gpu.h"
#include "device/cuda/libraries.h"
extern "C" {
#include "base/error.h"
#include "device/cuda_plugin.h"

extern const keel_cuda_plugin keel_cuda;
}

static std::vector<void *> arrays;
static char *room; /* of all arrays */
static int64_t used;
static const int64_t ROOM = 2LL << 30, GAP = 256;

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

static cudaStream_t stream(void)
{
    cudaStream_t s;
    keel_cuda_libraries(emu_device(), &s);
    return s;
}

/* No number is written there, so what a kernel has not written shows. */
void *emu_allocate(int64_t bytes, const char *name)
{
    void *at;
    const int64_t piece = (bytes / GAP + 2) * GAP;
    if (getenv("KEEL_SANITIZED")) {
        must(cudaMalloc(&at, bytes > 0 ? (size_t)bytes : 1), name);
        arrays.push_back(at);
        return at;
    }
    if (!room) must(cudaMalloc(&at, (size_t)ROOM), "room"), room = static_cast<char *>(at);
    if (used + piece > ROOM) must(cudaErrorMemoryAllocation, name);
    at = room + used;
    used += piece;
    must(cudaMemsetAsync(at, 0xff, (size_t)piece, stream()), name);
    return at;
}

void emu_release_all(void)
{
    for (void *at : arrays) must(cudaFree(at), "release");
    arrays.clear();
    used = 0;
}

void emu_copy_in(void *to, const void *from, int64_t bytes)
{
    must(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyHostToDevice, stream()), "copy in");
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
