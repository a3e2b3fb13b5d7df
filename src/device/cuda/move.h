/* Moves of weights on a GPU: see device/move.h and optimizers/rules.h. */
#ifndef KEEL_DEVICE_CUDA_MOVE_H
#define KEEL_DEVICE_CUDA_MOVE_H
#include "device/cuda/gpu.h"
extern "C" {
#include "device/move.h"

/* NULL, or why the launch failed. */
const char *keel_cuda_move(cudaStream_t stream, const keel_device_move *m, int n);
const char *keel_cuda_measure(cudaStream_t stream, const keel_device_measure *m);
const char *keel_cuda_orthogonalize(cudaStream_t stream, const keel_device_orthogonal *o);
const char *keel_cuda_factor(cudaStream_t stream, const keel_device_factored *f);
const char *keel_cuda_project(cudaStream_t stream, const keel_device_project *p);
const char *keel_cuda_check(cudaStream_t stream, const keel_device_check *c);
}

static __device__ __forceinline__ float root(float x)
{
    return sqrtf(x);
}

static __device__ __forceinline__ double root(double x)
{
    return sqrt(x);
}

#endif
