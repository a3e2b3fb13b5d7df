/* What the double has of CUDA's runtime: the functions that device.cu calls. */
#ifndef CUDA_DOUBLE_RUNTIME_WORDS_H
#define CUDA_DOUBLE_RUNTIME_WORDS_H
#include "gpu.h"
#include <stddef.h>

enum cudaError_t { /* with CUDA's numbers */
                   cudaSuccess = 0,
                   cudaErrorInvalidValue = 1,
                   cudaErrorMemoryAllocation = 2,
                   cudaErrorStubLibrary = 34,
                   cudaErrorInsufficientDriver = 35,
                   cudaErrorNoDevice = 100,
                   cudaErrorInvalidDevice = 101,
                   cudaErrorInvalidResourceHandle = 400,
                   cudaErrorNotReady = 600,
                   cudaErrorLaunchFailure = 719,
                   cudaErrorStreamCaptureUnsupported = 900,
                   cudaErrorStreamCaptureInvalidated = 901,
                   cudaErrorCapturedEvent = 907
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };
enum {
    cudaHostAllocPortable = 1,
    cudaHostAllocMapped = 2,
    cudaStreamNonBlocking = 1,
    cudaEventDisableTiming = 2
};
#define CUDART_VERSION 13000

typedef struct emu_event *cudaEvent_t;
typedef struct emu_graph *cudaGraph_t, *cudaGraphExec_t;
struct cudaDeviceProp {
    char name[256];
    int major, minor;
    size_t totalGlobalMem;
};

cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaDriverGetVersion(int *out);
cudaError_t cudaGetDeviceCount(int *out);
cudaError_t cudaSetDevice(int number);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int number);
cudaError_t cudaDeviceSynchronize();

cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *at);
cudaError_t cudaMemGetInfo(size_t *left, size_t *all);
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned flags);
cudaError_t cudaFreeHost(void *at);
cudaError_t cudaMemset(void *at, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
#endif
