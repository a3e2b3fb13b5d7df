/* Records of rows are folded by a GPU: see keel_device_fold. */
#ifndef KEEL_DEVICE_CUDA_FOLD_H
#define KEEL_DEVICE_CUDA_FOLD_H
#include "device/cuda/gpu.h"
extern "C" {
#include "device/device.h"

/* Enqueues the pushes. NULL, or why the launch failed. */
const char *keel_cuda_fold(cudaStream_t stream, const keel_device_fold *f);
}

#endif
