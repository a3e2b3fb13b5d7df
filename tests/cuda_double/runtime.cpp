/* A double of CUDA's runtime, for device.cu on the emulator. Streams do what they are given in its
 * order, and wait for events and for the sums of other GPUs: at once where nothing is to be waited
 * for, or (cuda_runtime_late) as late as a seed decides, and before the host sees a stream at its
 * end. The threads of the host take turns.
 *
 * It checks the calls: that what they are given was made and is not destroyed, that memory is the
 * device's or the host's as it should be, and of the right GPU, that nothing is freed that a stream
 * may still use, and that nothing is called while a graph is captured that a graph cannot have, or
 * that would wait for it: in relaxed capture CUDA itself does not say all of that. */
#include "runtime_words.h"
#include "cuda_double.h"
#include "device/cuda/libraries.h"
#include "double.h"
#include "emulator.h"
#include "machine.h"
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

typedef std::function<bool()> work; /* false: it waits, and is asked again */
struct emu_stream {
    bool live;
    int device;
    std::deque<work> queue;
};
struct emu_event {
    bool live;
    int device;
    std::shared_ptr<bool> reached; /* what was recorded last; NULL: nothing */
};
struct emu_graph {
    std::vector<std::function<void()>> node;
};

namespace
{
struct locked {
    char *at;
    size_t bytes;
    bool shared; /* with the device: the emulator's memory */
    int device;
};
std::vector<locked> host;
struct allocation {
    void *at;
    size_t bytes;
    int device;
};
std::vector<allocation> memory;
thread_local int device;
/* Never freed, so that an address is that of one stream only. */
std::vector<emu_stream *> &streams = *new std::vector<emu_stream *>;
std::vector<emu_stream *> living;
std::vector<emu_event *> events;
std::vector<emu_graph *> graphs;
int64_t live, captures, replays, calls, fail_in;
bool hangs, refuses, fails_for_good;
int graphs_left = -1; /* that find memory; -1: all do */
const char *failing = "nothing";
bool dead[CUDA_DOUBLE_GPUS];
uint32_t late; /* 0: never */
thread_local emu_graph *captured;
thread_local cudaStream_t capturing;
thread_local cudaError_t last = cudaSuccess;

cudaError_t failed(cudaError_t e)
{
    last = e;
    return e;
}

/* A call that may fail begins. */
bool begins(const char *f, cudaError_t as = cudaErrorLaunchFailure)
{
    calls++;
    if (dead[device]) return failed(cudaErrorLaunchFailure), false;
    if (fail_in == 0 || --fail_in > 0) return true;
    failing = f;
    if (fails_for_good) {
        dead[device] = true;
        as = cudaErrorLaunchFailure;
        for (emu_stream *s : living)
            if (s->device == device) s->queue.clear();
    }
    return failed(as), false;
}

/* False, and told: it must not be called now. */
bool outside(const char *f)
{
    if (!captured) return true;
    double_wrong(f, "is called while a graph is captured");
    failed(cudaErrorStreamCaptureUnsupported);
    return false;
}

bool may(const char *f, cudaError_t as = cudaErrorLaunchFailure)
{
    return outside(f) && begins(f, as);
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
    if (!captured || s == capturing) return true;
    return double_wrong(f, "is called for another stream while a graph is captured");
}

bool is_locked(const void *at, size_t bytes)
{
    const char *from = static_cast<const char *>(at);
    for (const locked &x : host)
        if (from >= x.at && from + bytes <= x.at + x.bytes) return true;
    return false;
}

/* What is next on a stream. False: nothing, or it waits. */
bool step(emu_stream *s)
{
    if (s->queue.empty()) return false;
    emu.gpu = s->device;
    if (!s->queue.front()()) return false;
    s->queue.pop_front();
    return true;
}

void go_on()
{
    for (bool any = true; any;) {
        any = false;
        for (emu_stream *s : living)
            while (step(s)) any = true;
    }
}

uint32_t draw(size_t n)
{
    late = late * 1664525u + 1013904223u;
    late += late == 0;
    return (uint32_t)((uint64_t)late * n >> 32);
}

void enqueue(cudaStream_t s, work w)
{
    s->queue.push_back(std::move(w));
    if (!late) return go_on();
    for (uint32_t n = draw(4); n > 0; n--) step(living[draw(living.size())]);
}

cudaError_t give(cudaStream_t s, std::function<void()> what)
{
    if (captured)
        captured->node.push_back(std::move(what));
    else
        enqueue(s, [what = std::move(what)] {
            what();
            return true;
        });
    return cudaSuccess;
}

bool at_end(int of)
{
    go_on();
    for (const emu_stream *s : living)
        if (s->device == of && !s->queue.empty()) return false;
    return true;
}

/* For what waits in a call of CUDA. */
void finish(cudaStream_t s)
{
    for (go_on(); !s->queue.empty(); go_on()) emu_turn_pass();
}

/* What a stream may still use is freed, for which CUDA would wait without an end. */
void frees(const char *f, int of)
{
    if (!at_end(of)) double_wrong(f, "a stream of the GPU is not at its end");
}

bool knows(cudaStream_t s)
{
    return std::find(streams.begin(), streams.end(), s) != streams.end() && s->live;
}

/* As gpu_launch does for a GPU: what failed before in this thread, and nobody has asked for, is
 * taken for the launch's failure. */
const char *launch(cudaStream_t s, std::function<void()> what)
{
    const char *f = "a launch";
    const bool only = s == emu_only_stream();
    if (!only && !takes(f, s)) return cudaGetErrorString(cudaErrorInvalidResourceHandle);
    if (!only && s->device != device)
        double_wrong(f, "the stream is of GPU %d, and the thread's is GPU %d", s->device, device);
    else if (begins(f))
        double_give(s, std::move(what));
    const cudaError_t e = last;
    last = cudaSuccess;
    return e == cudaSuccess ? nullptr : cudaGetErrorString(e);
}
} // namespace

void double_give(cudaStream_t s, std::function<void()> what)
{
    if (s == emu_only_stream())
        what();
    else
        give(s, std::move(what));
}

void double_give_waiting(cudaStream_t s, std::function<bool()> what)
{
    enqueue(s, std::move(what));
}

void double_goes_on()
{
    if (!late) go_on();
}

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
    *out = CUDA_DOUBLE_GPUS;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int number)
{
    const emu_turn turn;
    if (number < 0 || number >= CUDA_DOUBLE_GPUS) return failed(cudaErrorInvalidValue);
    const int before = device;
    device = number;
    if (begins("cudaSetDevice", cudaErrorInvalidDevice)) return cudaSuccess;
    if (!dead[number]) device = before;
    return last;
}

int double_device()
{
    return device;
}

int double_device_of(cudaStream_t s)
{
    return s->device;
}

bool double_is_dead(int of)
{
    return dead[of];
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int)
{
    const emu_turn turn;
    if (!begins("cudaGetDeviceProperties", cudaErrorInvalidDevice)) return last;
    *out = { "double", 9, 0, (size_t)16 << 30 };
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    const emu_turn turn;
    if (!may("cudaDeviceSynchronize")) return last;
    while (!at_end(device)) emu_turn_pass();
    return cudaSuccess;
}

/* ---- memory ---------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    const emu_turn turn;
    if (!may("cudaMalloc", cudaErrorMemoryAllocation)) return last;
    *out = emu_allocate_on(device, (int64_t)bytes, "memory of cudaMalloc");
    memory.push_back({ *out, bytes, device });
    double_takes(device, (int64_t)bytes);
    live++;
    return cudaSuccess;
}

cudaError_t cudaFree(void *at)
{
    const emu_turn turn;
    if (!outside("cudaFree")) return last;
    const auto i = std::find_if(memory.begin(), memory.end(),
                                [at](const allocation &x) { return x.at == at; });
    if (i == memory.end()) {
        double_wrong("cudaFree", "%p is not of cudaMalloc, or was freed", at);
        return failed(cudaErrorInvalidValue);
    }
    frees("cudaFree", i->device);
    double_takes(i->device, -(int64_t)i->bytes);
    memory.erase(i);
    live--;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    const emu_turn turn;
    if (!begins("cudaMemGetInfo", cudaErrorInvalidDevice)) return last;
    *all = EMU_HEAP;
    *left = EMU_HEAP - (size_t)double_takes(device, 0);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    const emu_turn turn;
    if (!may("cudaHostAlloc", cudaErrorMemoryAllocation)) return last;
    const bool shared = flags & cudaHostAllocMapped;
    void *at =
        shared ? emu_allocate_on(device, (int64_t)bytes, "memory of the host") : malloc(bytes);
    if (!at) abort();
    if (shared) emu_mark(at, bytes, true, true);
    host.push_back({ static_cast<char *>(at), bytes, shared, device });
    live++;
    *out = at;
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **out, void *at, unsigned)
{
    const emu_turn turn;
    if (!begins("cudaHostGetDevicePointer", cudaErrorInvalidDevice)) return last;
    *out = at;
    return is_locked(at, 1) ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaFreeHost(void *at)
{
    const emu_turn turn;
    if (!outside("cudaFreeHost")) return last;
    for (size_t i = 0; i < host.size(); i++) {
        if (host[i].at != at) continue;
        frees("cudaFreeHost", host[i].device);
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
    const emu_turn turn;
    if (!may(f)) return last;
    emu.gpu = device;
    return set(f, at, value, bytes) ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t s)
{
    const emu_turn turn;
    if (!takes("cudaMemsetAsync", s)) return failed(cudaErrorInvalidResourceHandle);
    if (!begins("cudaMemsetAsync")) return last;
    return give(s, [=] { set("cudaMemsetAsync", at, value, bytes); });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t s)
{
    const char *f = "cudaMemcpyAsync";
    const emu_turn turn;
    if (!takes(f, s)) return failed(cudaErrorInvalidResourceHandle);
    if (!begins(f)) return last;
    const void *of_host = kind == cudaMemcpyHostToDevice   ? from
                          : kind == cudaMemcpyDeviceToHost ? to
                                                           : nullptr;
    const bool ordinary = of_host && !is_locked(of_host, bytes);
    if (captured && ordinary) {
        double_wrong(f, "memory that is not page-locked is copied while a graph is captured");
        return failed(cudaErrorStreamCaptureUnsupported);
    }
    std::shared_ptr<std::vector<char>>
        own; /* such memory is read now, and written before it returns */
    if (ordinary && kind == cudaMemcpyHostToDevice) {
        const char *at = static_cast<const char *>(from);
        own = std::make_shared<std::vector<char>>(at, at + bytes);
    }
    give(s, [=] {
        const void *source = own ? own->data() : from;
        if (kind != cudaMemcpyHostToDevice && !double_reads(f, "the source", from, bytes)) return;
        if (kind != cudaMemcpyDeviceToHost && !double_writes(f, "the target", to, bytes)) return;
        memmove(to, source, bytes);
        if (kind != cudaMemcpyDeviceToHost) emu_mark(to, bytes, true, true);
    });
    if (ordinary && kind == cudaMemcpyDeviceToHost) finish(s);
    return cudaSuccess;
}

/* ---- streams and events ---------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    const emu_turn turn;
    if (!may("cudaStreamCreateWithFlags", cudaErrorMemoryAllocation)) return last;
    emu_knows_stream = knows;
    emu_gives = launch;
    streams.push_back(*out = new emu_stream{ true, device, {} });
    living.push_back(*out);
    live++;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    const char *f = "cudaStreamDestroy";
    const emu_turn turn;
    if (!outside(f) || !is_stream(f, s)) return failed(cudaErrorInvalidResourceHandle);
    go_on();
    if (!s->queue.empty()) double_wrong(f, "the stream is not at its end");
    living.erase(std::find(living.begin(), living.end(), s));
    s->queue.clear();
    s->live = false;
    live--;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
    const char *f = "cudaStreamQuery";
    const emu_turn turn;
    if (!outside(f) || !is_stream(f, s)) return failed(cudaErrorInvalidResourceHandle);
    go_on();
    if (!dead[device] && (hangs || !s->queue.empty())) return failed(cudaErrorNotReady);
    return begins(f) ? cudaSuccess : last; /* how often it was asked before does not count */
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    const char *f = "cudaStreamWaitEvent";
    const emu_turn turn;
    if (!outside(f) || !is_stream(f, s) || !is_event(f, e))
        return failed(cudaErrorInvalidResourceHandle);
    if (!begins(f)) return last;
    const std::shared_ptr<bool> reached = e->reached; /* not of what is recorded later */
    if (reached) enqueue(s, [=] { return *reached || dead[e->device]; });
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
    const emu_turn turn;
    if (!may("cudaEventCreateWithFlags", cudaErrorMemoryAllocation)) return last;
    events.push_back(*out = new emu_event{ true, device, nullptr });
    live++;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    const char *f = "cudaEventDestroy";
    const emu_turn turn;
    if (!outside(f) || !is_event(f, e)) return failed(cudaErrorInvalidResourceHandle);
    events.erase(std::find(events.begin(), events.end(), e));
    delete e;
    live--;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    const char *f = "cudaEventRecord";
    const emu_turn turn;
    if (!outside(f) || !is_stream(f, s) || !is_event(f, e))
        return failed(cudaErrorInvalidResourceHandle);
    if (e->device != s->device) {
        double_wrong(f, "the event is of GPU %d, and the stream of GPU %d", e->device, s->device);
        return failed(cudaErrorInvalidResourceHandle);
    }
    if (!begins(f)) return last;
    const std::shared_ptr<bool> reached = e->reached = std::make_shared<bool>(false);
    enqueue(s, [=] { return *reached = true; });
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    const char *f = "cudaEventQuery";
    const emu_turn turn;
    if (!outside(f) || !is_event(f, e)) return failed(cudaErrorInvalidResourceHandle);
    go_on();
    if (!dead[e->device] && (hangs || (e->reached && !*e->reached)))
        return failed(cudaErrorNotReady);
    return begins(f) ? cudaSuccess : last; /* as cudaStreamQuery */
}

/* ---- graphs ---------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
    const char *f = "cudaStreamBeginCapture";
    const emu_turn turn;
    if (!outside(f) || !is_stream(f, s)) return failed(cudaErrorInvalidResourceHandle);
    if (!begins(f)) return last;
    graphs.push_back(captured = new emu_graph);
    capturing = s;
    live++;
    captures++;
    return cudaSuccess;
}

/* A capture that fails is at its end, too. */
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out)
{
    const emu_turn turn;
    *out = nullptr;
    if (!captured || s != capturing) {
        double_wrong("cudaStreamEndCapture", "the stream is not captured");
        return failed(cudaErrorInvalidValue);
    }
    emu_graph *g = captured;
    captured = nullptr;
    if (refuses) {
        cudaGraphDestroy(g);
        return failed(cudaErrorStreamCaptureInvalidated);
    }
    if (!begins("cudaStreamEndCapture", cudaErrorStreamCaptureInvalidated)) {
        cudaGraphDestroy(g);
        return last;
    }
    *out = g;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long)
{
    const char *f = "cudaGraphInstantiate";
    const emu_turn turn;
    if (!outside(f) || !is_graph(f, g)) return failed(cudaErrorInvalidValue);
    if (!begins(f, cudaErrorMemoryAllocation)) return last;
    if (graphs_left == 0) return failed(cudaErrorMemoryAllocation);
    graphs_left -= graphs_left > 0;
    graphs.push_back(*out = new emu_graph(*g));
    live++;
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t g, cudaStream_t s)
{
    const char *f = "cudaGraphUpload";
    const emu_turn turn;
    if (!outside(f) || !is_graph(f, g) || !is_stream(f, s)) return failed(cudaErrorInvalidValue);
    return begins(f, cudaErrorMemoryAllocation) ? cudaSuccess : last;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s)
{
    const char *f = "cudaGraphLaunch";
    const emu_turn turn;
    if (!outside(f) || !is_graph(f, g) || !is_stream(f, s)) return failed(cudaErrorInvalidValue);
    if (!begins(f)) return last;
    const auto nodes = std::make_shared<std::vector<std::function<void()>>>(g->node);
    give(s, [=] {
        for (const auto &node : *nodes) node();
    });
    replays++;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    const emu_turn turn;
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

/* The doubles of the libraries are nobody's, but they have memory: of the thread's GPU. */
void cuda_libraries_close(cuda_libraries *l)
{
    const emu_turn turn;
    if (l->asked_blas) double_takes(device, -CUDA_DOUBLE_CUBLASLT);
    if (l->asked_dnn) double_takes(device, -CUDA_DOUBLE_CUDNN);
    double_closes_cudnn(l);
    *l = {};
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
    for (emu_stream *s : streams) { /* their addresses are not used again */
        s->live = false;
        s->queue.clear();
    }
    living.clear();
    host.clear();
    events.clear();
    graphs.clear();
    for (const allocation &x : memory) double_takes(x.device, -(int64_t)x.bytes);
    memory.clear();
    hangs = false;
    live = 0;
}

void cuda_runtime_fail_at(int64_t call, bool for_good)
{
    fail_in = call;
    failing = "nothing";
    fails_for_good = for_good;
    for (bool &d : dead) d = false;
    last = cudaSuccess;
}

int64_t cuda_runtime_calls(void)
{
    return calls;
}

const char *cuda_runtime_failed(void)
{
    return failing;
}

void cuda_runtime_late(uint32_t seed)
{
    late = seed;
}

void cuda_runtime_refuses(bool does)
{
    refuses = does;
}

void cuda_runtime_graphs(int most)
{
    graphs_left = most;
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
