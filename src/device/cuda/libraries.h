/* NVIDIA's libraries for kernels: cuBLASLt for products of matrices, cuDNN for convolutions. The
 * plug-in loads one when a kernel asks for it first, so that a machine without it runs all the rest
 * (libraries.cu); tests have doubles of them (tests/cuda_double), which compute on the emulator's
 * memory and check each call. Kernels call their functions through these tables. */
#ifndef KEEL_DEVICE_CUDA_LIBRARIES_H
#define KEEL_DEVICE_CUDA_LIBRARIES_H
#include "device/cuda/gpu.h"
#ifdef __CUDACC__
#include <cublasLt.h>
#include <cudnn.h>
#else
#include <cublaslt_words.h> /* tests/cuda_double */
#include <cudnn_words.h>
#endif

struct keel_device;

#define CUBLASLT_FUNCTIONS(X)                                                                      \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtGetStatusString)                                                                     \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatrixLayoutSetAttribute)                                                            \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmul)

#define CUDNN_FUNCTIONS(X)                                                                         \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnGetLastErrorString)                                                                     \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

#define LIBRARY_MEMBER(name) decltype(&::name) name;
struct cublaslt_functions {
    CUBLASLT_FUNCTIONS(LIBRARY_MEMBER)
};

struct cudnn_functions {
    CUDNN_FUNCTIONS(LIBRARY_MEMBER)
};
#undef LIBRARY_MEMBER

/* Of one device. The functions stay for the life of the process, so that what was made can be
 * destroyed after the device is closed. */
struct cuda_blas {
    const cublaslt_functions *of;
    cublasLtHandle_t handle;
};

struct cuda_dnn {
    const cudnn_functions *of;
    cudnnHandle_t handle; /* on the device's stream */
};

/* For a kernel's prepare: makes the device the thread's. NULL: the library is not there, which the
 * device says from now on (keel_device.lacks); what needs it then runs on the host. */
const cuda_blas *keel_cuda_blas(keel_device *d);
const cuda_dnn *keel_cuda_dnn(keel_device *d);

/* Inside the plug-in: a device's own, and how libraries.cu gets at it, for which the device becomes
 * the thread's. */
struct cuda_libraries {
    bool asked_blas, asked_dnn;
    cuda_blas blas; /* `of` NULL: it is not there */
    cuda_dnn dnn;
};

cuda_libraries *keel_cuda_libraries(keel_device *d, cudaStream_t *stream);
void cuda_libraries_close(cuda_libraries *l);

/* What kernels get of a device's memory for a library's own use, so that it may choose an algorithm
 * that needs some. It is part of the planned scratch. */
static const size_t CUDA_WORKSPACE = (size_t)32 << 20;

#endif
