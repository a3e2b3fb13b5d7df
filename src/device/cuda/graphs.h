/* Graphs of what a stream is given. Capture is relaxed: a kernel that is launched for the first
 * time is loaded then, for which the driver may allocate, and stricter ways refuse that, also where
 * another thread does it. What a graph must not have is checked by the double of the tests. */
#ifndef KEEL_DEVICE_CUDA_GRAPHS_H
#define KEEL_DEVICE_CUDA_GRAPHS_H
#include "device/cuda/runtime.h"

static inline cudaError_t cuda_graph_begin(cudaStream_t stream)
{
    return cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
}

/* Whether it says only that these calls cannot be a graph. */
static inline bool cuda_graph_refused(cudaError_t e)
{
    return e >= cudaErrorStreamCaptureUnsupported && e <= cudaErrorCapturedEvent;
}

/* The graph, which is on the device already, so that its first launch is as fast as others. */
static inline cudaError_t cuda_graph_end(cudaStream_t stream, cudaGraphExec_t *out)
{
    cudaGraph_t graph = nullptr;
    *out = nullptr;
    cudaError_t e = cudaStreamEndCapture(stream, &graph);
    if (e == cudaSuccess) e = cudaGraphInstantiate(out, graph, 0);
    if (e == cudaSuccess) e = cudaGraphUpload(*out, stream);
    if (graph) cudaGraphDestroy(graph);
    if (e != cudaSuccess && *out) cudaGraphExecDestroy(*out);
    if (e != cudaSuccess) *out = nullptr;
    return cuda_taken(e);
}

#endif
