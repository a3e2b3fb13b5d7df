/* A double of CUDA's runtime, for device.cu on the emulator. What is enqueued runs at once, so it
 * shows no missing wait: that is the stand-in's part. It checks the calls: that what they are given
 * was made and is not destroyed, that memory is the device's or the host's as it should be, and
 * that nothing is called while a graph is captured that a graph cannot have, or that would wait for
 * it: in relaxed capture CUDA itself does not say all of that. One thread calls it. */
#include "runtime_words.h"
#include "cuda_double.h"
#include "device/cuda/libraries.h"
#include "double.h"
#include "emulator.h"
#include "machine.h"
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <vector>

struct emu_stream {
    bool live;
};
struct emu_event {
    bool live, recorded;
};

namespace
{
struct locked {
    char *at;
    size_t bytes;
    bool shared; /* with the device: the emulator's memory */
};
std::vector<locked> host;
std::vector<void *> memory;
/* Never freed, so that an address is that of one stream only. */
std::vector<emu_stream *> &streams = *new std::vector<emu_stream *>;
std::vector<emu_event *> events;
std::vector<emu_graph *> graphs;
int64_t live, captures, replays;
bool hangs, refuses;
cudaStream_t capturing;
cudaError_t last = cudaSuccess;

cudaError_t failed(cudaError_t e)
{
    last = e;
    return e;
}

/* False, and told: it must not be called now. */
bool outside(const char *f)
{
    if (!emu_captured) return true;
    double_wrong(f, "is called while a graph is captured");
    failed(cudaErrorStreamCaptureUnsupported);
    return false;
}

bool is_stream(const char *f, cudaStream_t s)
{
    if (s && s->live) return true;
    return double_wrong(f, "the stream was destroyed, or never made");
}

bool is_event(const char *f, cudaEvent_t e)
{
    if (e && e->live) return true;
    return double_wrong(f, "the event was destroyed, or never made");
}

bool is_graph(const char *f, const emu_graph *g)
{
    if (std::find(graphs.begin(), graphs.end(), g) != graphs.end()) return true;
    return double_wrong(f, "the graph was destroyed, or never made");
}

/* Only the stream that is captured may be used meanwhile. */
bool takes(const char *f, cudaStream_t s)
{
    if (!is_stream(f, s)) return false;
    if (!emu_captured || s == capturing) return true;
    return double_wrong(f, "is called for another stream while a graph is captured");
}

bool is_locked(const void *at, size_t bytes)
{
    const char *from = static_cast<const char *>(at);
    for (const locked &x : host)
        if (from >= x.at && from + bytes <= x.at + x.bytes) return true;
    return false;
}

template <class F> cudaError_t enqueue(F what)
{
    if (emu_captured)
        emu_captured->node.push_back(what);
    else
        what();
    return cudaSuccess;
}

bool knows(cudaStream_t s)
{
    return std::find(streams.begin(), streams.end(), s) != streams.end() && s->live;
}
} // namespace

/* ---- devices --------------------------------------------------------------------------------- */

cudaError_t cudaGetLastError()
{
    const cudaError_t e = last;
    last = cudaSuccess;
    return e;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess                 ? "no error"
           : e == cudaErrorMemoryAllocation ? "out of memory"
           : e == cudaErrorStreamCaptureUnsupported
               ? "operation not permitted when stream is capturing"
               : "an error of the double";
}

cudaError_t cudaDriverGetVersion(int *out)
{
    *out = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *out)
{
    *out = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int number)
{
    return number == 0 ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int)
{
    *out = { "double", 9, 0 };
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    return outside("cudaDeviceSynchronize") ? cudaSuccess : last;
}

/* ---- memory ---------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    if (!outside("cudaMalloc")) return last;
    memory.push_back(*out = emu_allocate((int64_t)bytes, "memory of cudaMalloc"));
    live++;
    return cudaSuccess;
}

cudaError_t cudaFree(void *at)
{
    if (!outside("cudaFree")) return last;
    const auto i = std::find(memory.begin(), memory.end(), at);
    if (i == memory.end()) {
        double_wrong("cudaFree", "%p is not of cudaMalloc, or was freed", at);
        return failed(cudaErrorInvalidValue);
    }
    memory.erase(i);
    live--;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *all = EMU_HEAP;
    *left = EMU_HEAP - emu.used;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    if (!outside("cudaHostAlloc")) return last;
    const bool shared = flags & cudaHostAllocMapped;
    void *at = shared ? emu_allocate((int64_t)bytes, "memory of the host") : malloc(bytes);
    if (!at) abort();
    if (shared) emu_mark(at, bytes, true, true);
    host.push_back({ static_cast<char *>(at), bytes, shared });
    live++;
    *out = at;
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **out, void *at, unsigned)
{
    *out = at;
    return is_locked(at, 1) ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaFreeHost(void *at)
{
    if (!outside("cudaFreeHost")) return last;
    for (size_t i = 0; i < host.size(); i++) {
        if (host[i].at != at) continue;
        if (!host[i].shared) free(at);
        host.erase(host.begin() + (ptrdiff_t)i);
        live--;
        return cudaSuccess;
    }
    double_wrong("cudaFreeHost", "%p is not of cudaHostAlloc, or was freed", at);
    return failed(cudaErrorInvalidValue);
}

namespace
{
bool set(const char *f, void *at, int value, size_t bytes)
{
    if (!double_writes(f, "the memory", at, bytes)) return false;
    memset(at, value, bytes);
    emu_mark(at, bytes, true, true);
    return true;
}
} // namespace

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    const char *f = "cudaMemset";
    if (!outside(f)) return last;
    return set(f, at, value, bytes) ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t s)
{
    if (!takes("cudaMemsetAsync", s)) return failed(cudaErrorInvalidResourceHandle);
    return enqueue([=] { set("cudaMemsetAsync", at, value, bytes); });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t s)
{
    const char *f = "cudaMemcpyAsync";
    if (!takes(f, s)) return failed(cudaErrorInvalidResourceHandle);
    const void *of_host = kind == cudaMemcpyHostToDevice   ? from
                          : kind == cudaMemcpyDeviceToHost ? to
                                                           : nullptr;
    if (emu_captured && of_host && !is_locked(of_host, bytes)) {
        double_wrong(f, "memory that is not page-locked is copied while a graph is captured");
        return failed(cudaErrorStreamCaptureUnsupported);
    }
    return enqueue([=] {
        if (kind != cudaMemcpyHostToDevice && !double_reads(f, "the source", from, bytes)) return;
        if (kind != cudaMemcpyDeviceToHost && !double_writes(f, "the target", to, bytes)) return;
        memmove(to, from, bytes);
        if (kind != cudaMemcpyDeviceToHost) emu_mark(to, bytes, true, true);
    });
}

/* ---- streams and events ---------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    if (!outside("cudaStreamCreateWithFlags")) return last;
    emu_knows_stream = knows;
    streams.push_back(*out = new emu_stream{ true });
    live++;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    const char *f = "cudaStreamDestroy";
    if (!outside(f) || !is_stream(f, s)) return failed(cudaErrorInvalidResourceHandle);
    s->live = false;
    live--;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
    const char *f = "cudaStreamQuery";
    if (!outside(f) || !is_stream(f, s)) return failed(cudaErrorInvalidResourceHandle);
    return hangs ? failed(cudaErrorNotReady) : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    const char *f = "cudaStreamWaitEvent";
    if (!outside(f) || !is_stream(f, s) || !is_event(f, e))
        return failed(cudaErrorInvalidResourceHandle);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
    if (!outside("cudaEventCreateWithFlags")) return last;
    events.push_back(*out = new emu_event{ true, false });
    live++;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    const char *f = "cudaEventDestroy";
    if (!outside(f) || !is_event(f, e)) return failed(cudaErrorInvalidResourceHandle);
    events.erase(std::find(events.begin(), events.end(), e));
    delete e;
    live--;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    const char *f = "cudaEventRecord";
    if (!outside(f) || !is_stream(f, s) || !is_event(f, e))
        return failed(cudaErrorInvalidResourceHandle);
    e->recorded = true;
    return cudaSuccess;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
    const char *f = "cudaStreamBeginCapture";
    if (!outside(f) || !is_stream(f, s)) return failed(cudaErrorInvalidResourceHandle);
    graphs.push_back(emu_captured = new emu_graph);
    capturing = s;
    live++;
    captures++;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out)
{
    *out = nullptr;
    if (!emu_captured || s != capturing) {
        double_wrong("cudaStreamEndCapture", "the stream is not captured");
        return failed(cudaErrorInvalidValue);
    }
    emu_graph *g = emu_captured;
    emu_captured = nullptr;
    if (refuses) {
        cudaGraphDestroy(g);
        return failed(cudaErrorStreamCaptureInvalidated);
    }
    *out = g;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long)
{
    const char *f = "cudaGraphInstantiate";
    if (!outside(f) || !is_graph(f, g)) return failed(cudaErrorInvalidValue);
    graphs.push_back(*out = new emu_graph(*g));
    live++;
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t g, cudaStream_t s)
{
    const char *f = "cudaGraphUpload";
    return outside(f) && is_graph(f, g) && is_stream(f, s) ? cudaSuccess
                                                           : failed(cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s)
{
    const char *f = "cudaGraphLaunch";
    if (!outside(f) || !is_graph(f, g) || !is_stream(f, s)) return failed(cudaErrorInvalidValue);
    for (const auto &node : g->node) node();
    replays++;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    if (!is_graph("cudaGraphDestroy", g)) return failed(cudaErrorInvalidValue);
    graphs.erase(std::find(graphs.begin(), graphs.end(), g));
    delete g;
    live--;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g)
{
    return cudaGraphDestroy(g);
}

void cuda_libraries_close(cuda_libraries *) /* the doubles of the libraries are nobody's */
{
}

/* ---- for tests ------------------------------------------------------------------------------- */

void cuda_runtime_hangs(bool does)
{
    hangs = does;
}

void cuda_runtime_ends(void)
{
    for (const locked &x : host)
        if (!x.shared) free(x.at);
    for (const emu_event *e : events) delete e;
    for (const emu_graph *g : graphs) delete g;
    for (emu_stream *s : streams) s->live = false; /* their addresses are not used again */
    host.clear();
    events.clear();
    graphs.clear();
    memory.clear();
    hangs = false;
    live = 0;
}

void cuda_runtime_refuses(bool does)
{
    refuses = does;
}

int64_t cuda_runtime_live(void)
{
    return live;
}

int64_t cuda_runtime_captures(void)
{
    return captures;
}

int64_t cuda_runtime_replays(void)
{
    return replays;
}
