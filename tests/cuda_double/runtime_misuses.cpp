/* What must not be done while a graph is captured, and other wrong calls of CUDA's runtime. */
#include "cuda_double.h"
#include "runtime_words.h"
#include <stdlib.h>

namespace
{
cudaStream_t stream, other;
cudaEvent_t event;
void *there, *locked;
char ordinary[64];

/* Runs f between begin and end of a capture. */
template <class F> void captured(F f)
{
    cudaGraph_t graph = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaMalloc(&there, 64);
    cudaMemset(there, 0, 64);
    cudaHostAlloc(&locked, 64, cudaHostAllocPortable);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    f();
    cudaStreamEndCapture(stream, &graph);
    cudaGraphDestroy(graph);
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
    cudaStreamDestroy(other);
    cudaFreeHost(locked);
    cudaFree(there);
}

void right()
{
    captured([] {
        cudaMemsetAsync(there, 0, 64, stream);
        cudaMemcpyAsync(locked, there, 64, cudaMemcpyDeviceToHost, stream);
    });
}

void allocates()
{
    captured([] {
        void *at;
        if (cudaMalloc(&at, 64) == cudaSuccess) abort();
    });
}

void copies_ordinary_memory()
{
    captured([] { cudaMemcpyAsync(there, ordinary, 64, cudaMemcpyHostToDevice, stream); });
}

void waits()
{
    captured([] { cudaStreamQuery(stream); });
}

void asks_for_an_event()
{
    captured([] { cudaEventQuery(event); });
}

void synchronizes()
{
    captured([] { cudaDeviceSynchronize(); });
}

void uses_another_stream()
{
    captured([] { cudaMemsetAsync(there, 0, 64, other); });
}

void records()
{
    captured([] { cudaEventRecord(event, stream); });
}

void sets_at_once()
{
    captured([] { cudaMemset(there, 0, 64); });
}

void captures_twice()
{
    captured([] { cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed); });
}

void launches_what_is_gone()
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    cudaGraphExecDestroy(exec);
    cudaGraphLaunch(exec, stream);
    cudaStreamDestroy(stream);
}

/* Runs f with a stream of GPU 1, and with memory and an event of GPU 0. */
template <class F> void on_another(F f)
{
    cudaMalloc(&there, 64);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    f();
    cudaStreamDestroy(stream);
    cudaSetDevice(0);
    cudaEventDestroy(event);
    cudaFree(there);
}

void sets_anothers_memory()
{
    on_another([] { cudaMemsetAsync(there, 0, 64, stream); });
}

void records_anothers_event()
{
    on_another([] { cudaEventRecord(event, stream); });
}
} // namespace

const cuda_misuse runtime_misuses[] = {
    { "a right capture", right, nullptr },
    { "memory is allocated", allocates, "cudaMalloc: is called while a graph is captured" },
    { "memory that is not page-locked", copies_ordinary_memory, "is not page-locked" },
    { "the host asks whether it is done", waits, "cudaStreamQuery: is called while" },
    { "the host asks for an event", asks_for_an_event, "cudaEventQuery: is called while" },
    { "the host waits", synchronizes, "cudaDeviceSynchronize: is called while" },
    { "another stream", uses_another_stream, "for another stream while a graph is captured" },
    { "an event", records, "cudaEventRecord: is called while" },
    { "memory is set at once", sets_at_once, "cudaMemset: is called while" },
    { "a capture within another", captures_twice, "cudaStreamBeginCapture: is called while" },
    { "a graph that is gone", launches_what_is_gone, "the graph was destroyed, or never made" },
    { "another GPU's memory", sets_anothers_memory, "which GPU 0 has, by GPU 1" },
    { "another GPU's event", records_anothers_event, "the event is of GPU 0, and the stream of" },
    { nullptr, nullptr, nullptr }
};
