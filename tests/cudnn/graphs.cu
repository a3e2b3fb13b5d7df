/* See graphs.h. Kernels are given cuDNN's own functions but for one: what is finalized is noted,
 * and heuristics, the first that need a device, are refused. */
#include "cudnn/graphs.h"
#include "device/cuda/libraries.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <set>
extern "C" {
#include "ops/op.h"

extern const keel_kernel keel_kernel_conv2d_cuda, keel_kernel_conv3d_cuda,
    keel_kernel_conv_transpose_cuda, keel_kernel_dense_cuda, keel_kernel_dense_transposed_cuda,
    keel_kernel_matmul_cuda;
cudaStream_t keel_cuda_stream(const keel_call *c);
}

const keel_kernel *const cudnn_graph_kernels[] = { &keel_kernel_conv2d_cuda,
                                                   &keel_kernel_conv3d_cuda,
                                                   &keel_kernel_conv_transpose_cuda, nullptr };

const keel_kernel *const cublaslt_kernels[] = { &keel_kernel_dense_cuda,
                                                &keel_kernel_dense_transposed_cuda,
                                                &keel_kernel_matmul_cuda, nullptr };

namespace
{
cublaslt_functions products;
int asked;

cublasStatus_t refuse(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                      cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                      cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t[], int *)
{
    asked++;
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

cudnn_functions real;
std::set<cudnnBackendDescriptor_t> graphs, heuristics;
int accepted;
char text[400];

cudnnStatus_t create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    const cudnnStatus_t s = real.cudnnBackendCreateDescriptor(type, out);
    if (s != CUDNN_STATUS_SUCCESS) return s;
    graphs.erase(*out); /* an address may come again */
    heuristics.erase(*out);
    if (type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) graphs.insert(*out);
    if (type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) heuristics.insert(*out);
    return s;
}

cudnnStatus_t finalize(cudnnBackendDescriptor_t d)
{
    if (heuristics.count(d)) return CUDNN_STATUS_NOT_SUPPORTED;
    const cudnnStatus_t s = real.cudnnBackendFinalize(d);
    accepted += s == CUDNN_STATUS_SUCCESS && graphs.count(d);
    if (s == CUDNN_STATUS_SUCCESS) return s;
    snprintf(text, sizeof text, "%s: ", real.cudnnGetErrorString(s));
    const size_t at = strlen(text);
    real.cudnnGetLastErrorString(text + at, sizeof text - at);
    return s;
}
} // namespace

#define FIND_IN(functions, name)                                                                   \
    {                                                                                              \
        void *at = dlsym(library, #name);                                                          \
        memcpy(&functions.name, &at, sizeof at);                                                   \
        if (!at) return "it has no " #name;                                                        \
    }
#define FIND_PRODUCT(name) FIND_IN(products, name)
#define FIND_GRAPH(name)   FIND_IN(real, name)

const char *cublaslt_open(void)
{
    void *library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "libcublasLt.so.13 cannot be loaded";
    CUBLASLT_FUNCTIONS(FIND_PRODUCT)
    products.cublasLtMatmulAlgoGetHeuristic = refuse;
    return nullptr;
}

int cublaslt_asked(void)
{
    const int n = asked;
    asked = 0;
    return n;
}

const cuda_blas *keel_cuda_blas(keel_device *)
{
    static const cuda_blas one = { &products, nullptr, CUDA_BLAS_WORKSPACE };
    return &one;
}

const char *cudnn_graphs_open(void)
{
    static char why[300];
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, sizeof why, "%s", dlerror());
        return why;
    }
    CUDNN_FUNCTIONS(FIND_GRAPH)
    return nullptr;
}

int cudnn_graphs_accepted(char refused[400])
{
    const int n = accepted;
    snprintf(refused, sizeof text, "%s", text);
    accepted = 0;
    *text = 0;
    return n;
}

const cuda_dnn *keel_cuda_dnn(keel_device *)
{
    static cudnn_functions noting;
    static const cuda_dnn one = { &noting, nullptr, CUDA_DNN_WORKSPACE };
    noting = real;
    noting.cudnnBackendCreateDescriptor = create;
    noting.cudnnBackendFinalize = finalize;
    return &one;
}

cudaStream_t keel_cuda_stream(const keel_call *)
{
    return nullptr; /* nothing runs */
}
