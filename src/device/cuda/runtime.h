/* CUDA's runtime for the host's code of a device; in tests its double (tests/cuda_double), which
 * has what device.cu calls and no more. */
#ifndef KEEL_DEVICE_CUDA_RUNTIME_H
#define KEEL_DEVICE_CUDA_RUNTIME_H
#include "device/cuda/gpu.h"
#ifndef __CUDACC__
#include <runtime_words.h>
#endif

/* Of a call that may fail. CUDA keeps an error for the thread until somebody asks for it, as each
 * launch does: what is not taken would be told of a launch that has done well. */
static inline cudaError_t cuda_taken(cudaError_t e)
{
    if (e != cudaSuccess) cudaGetLastError();
    return e;
}
#endif
