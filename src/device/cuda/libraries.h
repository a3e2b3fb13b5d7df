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

extern "C" {
#include "device/device.h"
}

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
    int64_t workspace; /* bytes that an algorithm may ask for */
};

struct cuda_dnn {
    const cudnn_functions *of;
    cudnnHandle_t handle; /* on the device's stream */
    int64_t workspace;    /* bytes that an engine may ask for */
};

/* For a kernel's prepare: makes the device the thread's. NULL: the library is not there, which the
 * device says from now on (keel_device.lacks); what needs it then runs on the host. */
const cuda_blas *keel_cuda_blas(keel_device *d);
const cuda_dnn *keel_cuda_dnn(keel_device *d);

/* Inside the plug-in: a device's own, and how libraries.cu gets at it, for which the device becomes
 * the thread's. */
struct cuda_libraries {
    int64_t budget; /* bytes of the GPU that one call may have as workspace */
    bool asked_blas, asked_dnn;
    cuda_blas blas; /* `of` NULL: it is not there */
    cuda_dnn dnn;
};

cuda_libraries *keel_cuda_libraries(keel_device *d, cudaStream_t *stream);
void cuda_libraries_close(cuda_libraries *l);

/* What a library has taken of the device's memory, for good: bytes that were free before. */
void keel_cuda_libraries_took(keel_device *d, keel_device_own kind, int64_t free_before);
int64_t keel_cuda_free_bytes(keel_device *d);

/* Workspaces are part of the planned scratch. With more, a library may choose a faster algorithm;
 * NVIDIA names 32 MiB for products, and the filter gradients of convolutions need most. No more
 * than a 64th of the GPU: of all of it, not of what is free, or the choice, and with it the bits,
 * would depend on other programs. */
enum { CUDA_BLAS_WORKSPACE = 32 << 20, CUDA_DNN_WORKSPACE = 256 << 20, CUDA_WORKSPACE_PART = 64 };

#endif
