/* Moves of weights on a GPU: see device/move.h and optimizers/rules.h. */
#ifndef KEEL_DEVICE_CUDA_MOVE_H
#define KEEL_DEVICE_CUDA_MOVE_H
#include "device/cuda/gpu.h"
extern "C" {
#include "device/move.h"

/* NULL, or why the launch failed. */
const char *keel_cuda_move(cudaStream_t stream, const keel_device_move *m);
}

#endif
