/* CUDA's runtime for the host's code of a device; in tests its double (tests/cuda_double), which
 * has what device.cu calls and no more. */
#ifndef KEEL_DEVICE_CUDA_RUNTIME_H
#define KEEL_DEVICE_CUDA_RUNTIME_H
#include "device/cuda/gpu.h"
#ifndef __CUDACC__
#include <runtime_words.h>
#endif
#endif
