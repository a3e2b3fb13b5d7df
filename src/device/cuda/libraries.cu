/* See libraries.h. A library is looked for where the linker looks, and in the folder of the CUDA
 * that the plug-in was built with. It stays loaded, as CUDA does. */
#include "device/cuda/libraries.h"
#include "device/cuda/sums.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
extern "C" {
#include "device/device.h"
}

#define TEXT_OF(x)     #x
#define NUMBER_TEXT(x) TEXT_OF(x)

namespace
{
const char BLAS[] = "libcublasLt.so." NUMBER_TEXT(CUBLAS_VER_MAJOR);
const char DNN[] = "libcudnn.so." NUMBER_TEXT(CUDNN_MAJOR);

/* Says once, on the device, what is missing, what it is for and what to do. */
void lacks(keel_device *d, const char *what, const char *why, const char *todo)
{
    const size_t at = strlen(d->lacks);
    snprintf(d->lacks + at, sizeof d->lacks - at, "%s%s: %s run on the host, since %s; %s",
             at ? "; " : "", d->name, what, why, todo);
}

bool find(void *library, const char *name, void *out)
{
    void *at = dlsym(library, name);
    memcpy(out, &at, sizeof at);
    return at;
}

/* Opens a library; fills `why` if it cannot be. */
void *open(const char *name, char *why, size_t size)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *text = dlerror();
        snprintf(why, size, "%s", text ? text : name);
    }
    return library;
}

#define FIND(function)                                                                             \
    if (library && !find(library, #function, &f.function)) {                                       \
        snprintf(why, size, "%s has no %s", name, #function);                                      \
        library = nullptr;                                                                         \
    }

const cublaslt_functions *load_blas(char *why, size_t size)
{
    static cublaslt_functions f;
    const char *name = BLAS;
    void *library = open(name, why, size);
    CUBLASLT_FUNCTIONS(FIND)
    return library ? &f : nullptr;
}

const cudnn_functions *load_dnn(char *why, size_t size)
{
    static cudnn_functions f;
    const char *name = DNN;
    void *library = open(name, why, size);
    CUDNN_FUNCTIONS(FIND)
    return library ? &f : nullptr;
}

void open_blas(keel_device *d, cuda_libraries *l)
{
    char why[300] = "";
    const int64_t before = keel_cuda_free_bytes(d);
    cuda_blas x = { load_blas(why, sizeof why), nullptr, 0 };
    if (!x.of)
        return lacks(d, "products of matrices", why,
                     "install cuBLAS of CUDA " NUMBER_TEXT(CUBLAS_VER_MAJOR));
    const cublasStatus_t s = x.of->cublasLtCreate(&x.handle);
    x.workspace = l->budget < CUDA_BLAS_WORKSPACE ? l->budget : CUDA_BLAS_WORKSPACE;
    if (s == CUBLAS_STATUS_SUCCESS) {
        keel_cuda_libraries_took(d, KEEL_OWN_PRODUCTS, before);
        l->blas = x;
        return;
    }
    snprintf(why, sizeof why, "cuBLASLt cannot begin (%s)", x.of->cublasLtGetStatusString(s));
    lacks(d, "products of matrices", why, "is its memory full (nvidia-smi)?");
}

void open_dnn(keel_device *d, cuda_libraries *l, cudaStream_t stream)
{
    char why[300] = "";
    const int64_t before = keel_cuda_free_bytes(d);
    cuda_dnn x = { load_dnn(why, sizeof why), nullptr, 0 };
    if (!x.of)
        return lacks(
            d, "convolutions", why,
            "install cuDNN " NUMBER_TEXT(CUDNN_MAJOR) " for CUDA " NUMBER_TEXT(CUBLAS_VER_MAJOR));
    cudnnStatus_t s = x.of->cudnnCreate(&x.handle);
    if (s == CUDNN_STATUS_SUCCESS) {
        s = x.of->cudnnSetStream(x.handle, stream);
        if (s != CUDNN_STATUS_SUCCESS) x.of->cudnnDestroy(x.handle);
    }
    x.workspace = l->budget < CUDA_DNN_WORKSPACE ? l->budget : CUDA_DNN_WORKSPACE;
    if (s == CUDNN_STATUS_SUCCESS) {
        keel_cuda_libraries_took(d, KEEL_OWN_CONVOLUTIONS, before);
        l->dnn = x;
        return;
    }
    snprintf(why, sizeof why, "cuDNN cannot begin (%s)", x.of->cudnnGetErrorString(s));
    lacks(d, "convolutions", why, "is its memory full (nvidia-smi)?");
}
} // namespace

const cuda_blas *keel_cuda_blas(keel_device *d)
{
    cudaStream_t stream;
    cuda_libraries *l = keel_cuda_libraries(d, &stream);
    if (!l->asked_blas) open_blas(d, l);
    l->asked_blas = true;
    return l->blas.of ? &l->blas : nullptr;
}

const cuda_dnn *keel_cuda_dnn(keel_device *d)
{
    cudaStream_t stream;
    cuda_libraries *l = keel_cuda_libraries(d, &stream);
    if (!l->asked_dnn) open_dnn(d, l, stream);
    l->asked_dnn = true;
    return l->dnn.of ? &l->dnn : nullptr;
}

#ifndef KEEL_NO_NCCL
const nccl_functions *keel_cuda_nccl(char *why, size_t size)
{
    static nccl_functions f;
    const char *name = "libnccl.so.2";
    void *library = open(name, why, size);
    NCCL_FUNCTIONS(FIND)
    return library ? &f : nullptr;
}
#endif

void cuda_libraries_close(cuda_libraries *l)
{
    if (l->blas.of) l->blas.of->cublasLtDestroy(l->blas.handle);
    if (l->dnn.of) l->dnn.of->cudnnDestroy(l->dnn.handle);
    *l = {};
}
