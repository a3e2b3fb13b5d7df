/* An NVIDIA GPU as a keel_device. Streams and events are CUDA's. A copy from memory that the driver
 * does not know has read it when it returns; one from page-locked memory goes on by itself. */
#include "device/cuda/faults.h"
#include "device/cuda/fold.h"
#include "device/cuda/graphs.h"
#include "device/cuda/libraries.h"
#include "device/cuda/account.h"
#include "device/cuda/move.h"
#include "device/cuda/sums.h"
#include "device/cuda/waiting.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern "C" {
#include "base/memory.h"
#include "device/cuda_plugin.h"

extern const keel_kernel *const keel_cuda_kernels[];
cudaStream_t keel_cuda_stream(const keel_call *c);
cuda_faults *keel_cuda_faults(const keel_call *c);
}

namespace
{
struct gpu {
    keel_device base; /* first: a keel_device is a gpu */
    int number;
    cudaStream_t stream[KEEL_DEVICE_STREAMS];
    cudaEvent_t event[KEEL_DEVICE_EVENTS];
    cuda_faults faults;
    cuda_libraries libraries;
    cuda_account *account; /* of the GPU's memory, which its other parts share */
    cuda_member member;    /* of the GPUs that add up gradients with it */
    cudaError_t first;     /* of enqueueing, since the last finish */
    const char *what;      /* it was */
    char said[160];        /* what a library said of it; empty: CUDA says it */
    bool lost;             /* it does not answer any more, so nobody asks or gives it anything */
};

gpu *gpu_of(keel_device *d)
{
    return reinterpret_cast<gpu *>(d);
}

/* The thread's device is CUDA's own state. */
cudaError_t set_device(const gpu *g)
{
    return cuda_taken(cudaSetDevice(g->number));
}

void note(gpu *g, cudaError_t e, const char *what)
{
    if (cuda_taken(e) == cudaSuccess || g->first != cudaSuccess) return;
    g->first = e;
    g->what = what;
}

bool use(gpu *g, const char *what)
{
    if (g->first != cudaSuccess || g->lost) return false; /* nothing more until finish */
    note(g, set_device(g), what);
    return g->first == cudaSuccess;
}

/* Memory of a GPU that is lost stays until the process ends: to free it may take for ever, and the
 * GPU may still write to what it has of the host. */
void release(keel_device *d, void *at)
{
    if (gpu_of(d)->lost) return;
    set_device(gpu_of(d));
    const int64_t before = cuda_free_bytes();
    cuda_taken(cudaFree(at));
    cuda_account_took(gpu_of(d)->account, CUDA_TOOK_ARENAS, before);
}

keel_status allocate(keel_device *d, int64_t bytes, const char *what, void **out)
{
    gpu *g = gpu_of(d);
    cudaError_t e = set_device(g);
    const int64_t before = cuda_free_bytes();
    if (e == cudaSuccess) e = cuda_taken(cudaMalloc(out, bytes > 0 ? (size_t)bytes : 1));
    const bool there = e == cudaSuccess;
    if (there) cuda_account_took(g->account, CUDA_TOOK_ARENAS, before);
    if (e == cudaErrorMemoryAllocation) {
        size_t left = 0, all = 0;
        cuda_taken(cudaMemGetInfo(&left, &all));
        return keel_fail(KEEL_ENOMEM,
                         "%s has no room for %lld bytes (%s): %zu of %zu are free; use smaller "
                         "batches or more GPUs",
                         d->name, (long long)bytes, what, left, all);
    }
    /* before step 1: every stream finds zeros */
    if (e == cudaSuccess) e = cuda_taken(cudaMemset(*out, 0, (size_t)bytes));
    if (e == cudaSuccess) e = cuda_taken(cudaDeviceSynchronize());
    if (e == cudaSuccess) return KEEL_OK;
    if (there) release(d, *out);
    *out = nullptr;
    return keel_fail(KEEL_EDEVICE, "%s: %s, while memory was allocated", d->name,
                     cudaGetErrorString(e));
}

keel_status allocate_host(keel_device *d, int64_t bytes, void **out)
{
    const size_t n = bytes > 0 ? (size_t)bytes : 1;
    cudaError_t e = set_device(gpu_of(d));
    if (e == cudaSuccess) e = cuda_taken(cudaHostAlloc(out, n, cudaHostAllocPortable));
    if (e != cudaSuccess)
        return keel_fail(KEEL_ENOMEM, "%s: %s, while %lld bytes were page-locked", d->name,
                         cudaGetErrorString(e), (long long)bytes);
    memset(*out, 0, n);
    return KEEL_OK;
}

void release_host(keel_device *d, void *at)
{
    if (gpu_of(d)->lost) return;
    set_device(gpu_of(d));
    cuda_taken(cudaFreeHost(at));
}

void copy_in(keel_device *d, keel_device_stream s, void *to, const void *from_host, int64_t bytes)
{
    gpu *g = gpu_of(d);
    if (use(g, "a copy to it"))
        note(g, cudaMemcpyAsync(to, from_host, (size_t)bytes, cudaMemcpyHostToDevice, g->stream[s]),
             "a copy to it");
}

void copy_out(keel_device *d, keel_device_stream s, void *to_host, const void *from, int64_t bytes)
{
    gpu *g = gpu_of(d);
    if (use(g, "a copy from it"))
        note(g, cudaMemcpyAsync(to_host, from, (size_t)bytes, cudaMemcpyDeviceToHost, g->stream[s]),
             "a copy from it");
}

void record(keel_device *d, keel_device_stream s, int event)
{
    gpu *g = gpu_of(d);
    if (use(g, "an event was recorded"))
        note(g, cudaEventRecord(g->event[event], g->stream[s]), "an event was recorded");
}

void wait(keel_device *d, keel_device_stream s, int event)
{
    gpu *g = gpu_of(d);
    if (use(g, "a stream was told to wait"))
        note(g, cudaStreamWaitEvent(g->stream[s], g->event[event], 0), "a stream was told to wait");
}

int passed(keel_device *d, int event)
{
    gpu *g = gpu_of(d);
    if (!use(g, "an event was asked for")) return -1;
    const cudaError_t e = cuda_taken(cudaEventQuery(g->event[event]));
    if (e == cudaErrorNotReady) return 0;
    note(g, e, "an event was asked for");
    return e == cudaSuccess ? 1 : -1;
}

void clear(keel_device *d, void *at, int64_t bytes)
{
    gpu *g = gpu_of(d);
    if (use(g, "a gradient was cleared"))
        note(g, cudaMemsetAsync(at, 0, (size_t)bytes, g->stream[KEEL_COMPUTE_STREAM]),
             "a gradient was cleared");
}

template <class T> __global__ void add_to(T *to, const T *from, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        to[i] += from[i];
}

void add(keel_device *d, keel_dtype real, void *to, const void *from, int64_t count)
{
    const int threads = 256;
    const int64_t blocks = (count + threads - 1) / threads;
    const dim3 grid(gpu_blocks(blocks, 4096)), block(threads);
    gpu *g = gpu_of(d);
    const cudaStream_t stream = g->stream[KEEL_COMPUTE_STREAM];
    if (count == 0 || !use(g, "gradients were added")) return;
    const char *why =
        real == KEEL_FLOAT64
            ? gpu_launch(add_to<double>, grid, block, 0, stream, static_cast<double *>(to),
                         static_cast<const double *>(from), count)
            : gpu_launch(add_to<float>, grid, block, 0, stream, static_cast<float *>(to),
                         static_cast<const float *>(from), count);
    if (why) note(g, cudaErrorLaunchFailure, "gradients were added");
}

void copy(keel_device *d, void *to, const void *from, int64_t bytes)
{
    gpu *g = gpu_of(d);
    if (use(g, "a copy within it"))
        note(g,
             cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice,
                             g->stream[KEEL_COMPUTE_STREAM]),
             "a copy within it");
}

/* Has a kernel enqueued that is described by m. */
template <class M>
void enqueue(keel_device *d, const char *(*launch)(cudaStream_t, const M *), const M *m,
             const char *what)
{
    gpu *g = gpu_of(d);
    if (use(g, what) && launch(g->stream[KEEL_COMPUTE_STREAM], m))
        note(g, cudaErrorLaunchFailure, what);
}

void fold(keel_device *d, const keel_device_fold *f)
{
    enqueue(d, keel_cuda_fold, f, "records were folded");
}

void move(keel_device *d, const keel_device_move *m, int n)
{
    gpu *g = gpu_of(d);
    const char *what = "weights were moved";
    if (use(g, what) && keel_cuda_move(g->stream[KEEL_COMPUTE_STREAM], m, n))
        note(g, cudaErrorLaunchFailure, what);
}

void measure(keel_device *d, const keel_device_measure *m)
{
    enqueue(d, keel_cuda_measure, m, "weights were measured");
}

void orthogonalize(keel_device *d, const keel_device_orthogonal *o)
{
    enqueue(d, keel_cuda_orthogonalize, o, "steps were made orthogonal");
}

void factor(keel_device *d, const keel_device_factored *f)
{
    enqueue(d, keel_cuda_factor, f, "weights were moved by factors");
}

void project(keel_device *d, const keel_device_project *p)
{
    enqueue(d, keel_cuda_project, p, "weights were constrained");
}

void check(keel_device *d, const keel_device_check *c)
{
    enqueue(d, keel_cuda_check, c, "gradients were checked");
}

/* What has failed before is not of the graph, and stays for whoever waits. */
keel_status capture_begin(keel_device *d)
{
    gpu *g = gpu_of(d);
    if (g->first != cudaSuccess)
        return keel_fail(KEEL_EDEVICE, "%s: %s, while %s", d->name,
                         *g->said ? g->said : cudaGetErrorString(g->first), g->what);
    cudaError_t e = set_device(g);
    if (e == cudaSuccess) e = cuda_taken(cuda_graph_begin(g->stream[KEEL_COMPUTE_STREAM]));
    if (e == cudaSuccess) return KEEL_OK;
    return keel_fail(KEEL_EDEVICE, "%s: %s, while a graph was begun", d->name,
                     cudaGetErrorString(e));
}

keel_status capture_end(keel_device *d, void **out)
{
    gpu *g = gpu_of(d);
    cudaGraphExec_t graph;
    const cudaError_t ended = cuda_graph_end(g->stream[KEEL_COMPUTE_STREAM], &graph);
    const cudaError_t e = g->first != cudaSuccess ? g->first : ended;
    const char *what = g->first != cudaSuccess ? g->what : "a graph was made";
    g->first = cudaSuccess;
    *out = graph;
    if (e == cudaSuccess) return KEEL_OK;
    if (graph) cudaGraphExecDestroy(graph);
    *out = nullptr;
    if (cuda_graph_refused(e))
        return keel_fail(KEEL_EUNSUP, "CUDA has no graph of them: %s, while %s",
                         cudaGetErrorString(e), what);
    if (e == cudaErrorMemoryAllocation)
        return keel_fail(KEEL_EUNSUP, "its memory has no room for a graph of them");
    return keel_fail(KEEL_EDEVICE, "%s: %s, while %s", d->name, cudaGetErrorString(e), what);
}

void replay(keel_device *d, void *graph)
{
    gpu *g = gpu_of(d);
    if (use(g, "a graph was launched"))
        note(g,
             cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), g->stream[KEEL_COMPUTE_STREAM]),
             "a graph was launched");
}

void forget(keel_device *d, void *graph)
{
    if (gpu_of(d)->lost) return;
    set_device(gpu_of(d));
    cuda_taken(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
}

keel_status is_lost(gpu *g)
{
    g->lost = true;
    return keel_fail(KEEL_EDEVICE,
                     "%s has not answered for %g seconds (--timeout): it hangs, or the machine has "
                     "lost it (see dmesg, nvidia-smi)",
                     g->base.name, g->base.patience);
}

/* On a stream. The sums of gradients are on that of copies out, and wait for other GPUs: if only
 * they are left, these are given up, and then the stream must come to its end. */
cudaError_t wait_on(gpu *g, int s)
{
    const cuda_member *m = &g->member;
    const bool sums = s == KEEL_COPY_OUT_STREAM && m->group;
    cudaError_t e =
        cuda_wait(g->stream[s], g->base.patience, [=] { return sums && keel_cuda_sums_failed(m); });
    if (e != cudaErrorNotReady || !sums) return e;
    if (cuda_taken(cudaStreamQuery(g->stream[KEEL_COMPUTE_STREAM])) != cudaSuccess) return e;
    keel_cuda_give_up(m->group);
    return cuda_wait(g->stream[s], g->base.patience);
}

/* Whether sums that the host has waited for were given up. What comes after them, such as weights
 * that are fetched, waits for no other GPU. */
bool gave_up(gpu *g)
{
    cuda_member *m = &g->member;
    const bool waited = m->waits;
    m->waits = false;
    return waited && m->group && !keel_device_group_works(m->group);
}

/* What fails in a kernel shows here. */
keel_status wait_for(gpu *g, int first, int end)
{
    keel_device *d = &g->base;
    if (g->lost) return is_lost(g);
    cudaError_t ran = set_device(g);
    for (int s = first; s < end; s++) {
        const cudaError_t one = wait_on(g, s);
        if (one == cudaErrorNotReady) return is_lost(g);
        if (ran == cudaSuccess) ran = one;
    }
    const cudaError_t e = g->first != cudaSuccess ? g->first : ran;
    const char *what = g->first != cudaSuccess ? g->what : "a step ran";
    const bool said = g->first != cudaSuccess && *g->said;
    const bool sums = first <= KEEL_COPY_OUT_STREAM && KEEL_COPY_OUT_STREAM < end;
    const bool given_up = sums && gave_up(g);
    g->first = cudaSuccess;
    if (e == cudaSuccess && !given_up) return cuda_faults_take(&g->faults);
    if (e == cudaSuccess) {
        char why[200];
        keel_cuda_sums_why(&g->member, why, sizeof why);
        return keel_fail(KEEL_EREMOTE, "%s has waited for the gradients of other GPUs%s", d->name,
                         why);
    }
    keel_fail(KEEL_EDEVICE, "%s: %s, while %s", d->name, said ? g->said : cudaGetErrorString(e),
              what);
    *g->said = 0;
    return KEEL_EDEVICE;
}

keel_status finish(keel_device *d)
{
    return wait_for(gpu_of(d), 0, KEEL_DEVICE_STREAMS);
}

keel_status reach(keel_device *d, keel_device_stream s)
{
    gpu *g = gpu_of(d);
    if (g->first != cudaSuccess) return finish(d);
    const keel_status failed = wait_for(g, s, s + 1);
    if (failed >= 0) return failed;
    for (int i = 0; i < KEEL_DEVICE_STREAMS && !g->lost; i++)
        g->lost = cuda_wait(g->stream[i], d->patience) == cudaErrorNotReady;
    return failed;
}

void close(keel_device *d)
{
    gpu *g = gpu_of(d);
    if (g->lost) { /* what it has on the GPU stays, as its memory */
        keel_free(g);
        return;
    }
    set_device(g);
    cuda_libraries_close(&g->libraries);
    if (g->account) cuda_account_leave(g->account);
    for (int i = 0; i < KEEL_DEVICE_EVENTS; i++)
        if (g->event[i]) cudaEventDestroy(g->event[i]);
    for (int i = 0; i < KEEL_DEVICE_STREAMS; i++)
        if (g->stream[i]) cudaStreamDestroy(g->stream[i]);
    if (g->faults.word) cudaFreeHost(const_cast<cuda_word *>(g->faults.on_host));
    keel_free(g);
}

void look(keel_device *d)
{
    if (gpu_of(d)->lost || set_device(gpu_of(d)) != cudaSuccess) return;
    cuda_account_read(gpu_of(d)->account, d->own);
}

/* A word of the host's memory that the device writes to when something is wrong. */
cudaError_t share_faults(gpu *g)
{
    void *host = nullptr, *device = nullptr;
    cudaError_t e = cuda_taken(cudaHostAlloc(&host, sizeof(cuda_word), cudaHostAllocMapped));
    if (e != cudaSuccess) return e;
    e = cuda_taken(cudaHostGetDevicePointer(&device, host, 0));
    if (e != cudaSuccess) {
        cudaFreeHost(host);
        return e;
    }
    g->faults.word = static_cast<cuda_word *>(device);
    g->faults.on_host = static_cast<volatile cuda_word *>(host);
    *g->faults.on_host = CUDA_NO_FAULT;
    return cudaSuccess;
}

keel_device_type make_type()
{
    keel_device_type t = {};
    t.name = "cuda";
    t.allocate = allocate;
    t.release = release;
    t.allocate_host = allocate_host;
    t.release_host = release_host;
    t.copy_in = copy_in;
    t.copy_out = copy_out;
    t.clear = clear;
    t.add = add;
    t.copy = copy;
    t.move = move;
    t.measure = measure;
    t.orthogonalize = orthogonalize;
    t.factor = factor;
    t.project = project;
    t.check = check;
    t.fold = fold;
    t.record = record;
    t.wait = wait;
    t.passed = passed;
    t.capture_begin = capture_begin;
    t.capture_end = capture_end;
    t.replay = replay;
    t.forget = forget;
    t.reach = reach;
    t.finish = finish;
    t.look = look;
    t.join = keel_cuda_join;
    t.sum = keel_cuda_sum;
    t.give_up = keel_cuda_give_up;
    t.leave = keel_cuda_leave;
    t.kernels = keel_cuda_kernels;
    t.close = close;
    return t;
}

const keel_device_type type = make_type();

keel_status count(int *out)
{
    int driver = 0;
    *out = 0;
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0); /* as NVML counts them */
    cudaDriverGetVersion(&driver);
    const cudaError_t e = cuda_taken(cudaGetDeviceCount(out));
    switch (e) {
    case cudaSuccess:
        if (*out > 0) return KEEL_OK;
        [[fallthrough]];
    case cudaErrorNoDevice:
        return keel_fail(KEEL_EDEVICE, "the driver shows no GPU%s; use --devices cpu",
                         getenv("CUDA_VISIBLE_DEVICES") ? " (see CUDA_VISIBLE_DEVICES)" : "");
    case cudaErrorInsufficientDriver:
        return driver == 0
                   ? keel_fail(KEEL_EDEVICE, "the driver for NVIDIA GPUs does not answer; is its "
                                             "kernel module loaded (nvidia-smi)?")
                   : keel_fail(KEEL_EDEVICE,
                               "the driver is for CUDA %d.%d and too old for CUDA %d; update it",
                               driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000);
    case cudaErrorStubLibrary:
        return keel_fail(KEEL_EDEVICE, "libcuda.so.1 is the stub for linking, not a driver; remove "
                                       "its folder from LD_LIBRARY_PATH");
    default:
        return keel_fail(KEEL_EDEVICE, "%s", cudaGetErrorString(e));
    }
}

keel_status open(keel_device **out, int number)
{
    cudaDeviceProp p;
    gpu *g = static_cast<gpu *>(keel_calloc(1, sizeof *g));
    if (!g) return KEEL_ENOMEM;
    g->base.type = &type;
    g->number = number;
    snprintf(g->base.name, sizeof g->base.name, "cuda:%d", number);
    size_t left = 0, all = 0;
    cudaError_t e = cuda_taken(cudaSetDevice(number));
    if (e == cudaSuccess) e = cuda_taken(cudaGetDeviceProperties(&p, number));
    if (e == cudaSuccess && p.major < 8) {
        close(&g->base);
        return keel_fail(KEEL_EDEVICE,
                         "cuda:%d (%s) has compute capability %d.%d; 8.0 (A100) is the least that "
                         "Keel has kernels for",
                         number, p.name, p.major, p.minor);
    }
    for (int i = 0; i < KEEL_DEVICE_STREAMS && e == cudaSuccess; i++)
        e = cuda_taken(cudaStreamCreateWithFlags(&g->stream[i], cudaStreamNonBlocking));
    for (int i = 0; i < KEEL_DEVICE_EVENTS && e == cudaSuccess; i++)
        e = cuda_taken(cudaEventCreateWithFlags(&g->event[i], cudaEventDisableTiming));
    if (e == cudaSuccess) e = share_faults(g);
    if (e == cudaSuccess) e = cuda_taken(cudaMemGetInfo(&left, &all));
    if (e != cudaSuccess) {
        close(&g->base);
        return keel_fail(KEEL_EDEVICE, "cuda:%d cannot be opened: %s", number,
                         cudaGetErrorString(e));
    }
    snprintf(g->base.kind, sizeof g->base.kind, "%.63s", p.name);
    g->base.memory = (int64_t)left;
    g->account = cuda_account_join(number, (int64_t)left, (int64_t)all);
    cuda_account_read(g->account, g->base.own);
    g->libraries.budget = (int64_t)(p.totalGlobalMem / CUDA_WORKSPACE_PART);
    g->base.bucket_bytes = 1 << 20;
    g->base.patience = KEEL_DEVICE_PATIENCE;
    *out = &g->base;
    return KEEL_OK;
}
} // namespace

cudaStream_t keel_cuda_stream(const keel_call *c)
{
    return gpu_of(c->device)->stream[KEEL_COMPUTE_STREAM];
}

cuda_faults *keel_cuda_faults(const keel_call *c)
{
    return &gpu_of(c->device)->faults;
}

cuda_member *keel_cuda_member(keel_device *d)
{
    return &gpu_of(d)->member;
}

int keel_cuda_number(const keel_device *d)
{
    return reinterpret_cast<const gpu *>(d)->number;
}

cudaStream_t keel_cuda_copy_out_stream(const keel_device *d)
{
    return reinterpret_cast<const gpu *>(d)->stream[KEEL_COPY_OUT_STREAM];
}

void keel_cuda_failed(keel_device *d, const char *why)
{
    gpu *g = gpu_of(d);
    if (g->first != cudaSuccess) return;
    snprintf(g->said, sizeof g->said, "%s", why);
    note(g, cudaErrorLaunchFailure, "gradients were added");
}

int64_t keel_cuda_free_bytes(keel_device *d)
{
    set_device(gpu_of(d));
    return cuda_free_bytes();
}

void keel_cuda_libraries_took(keel_device *d, keel_device_own kind, int64_t free_before)
{
    set_device(gpu_of(d)); /* its free bytes, now */
    cuda_account_took(gpu_of(d)->account, kind, free_before);
}

cuda_libraries *keel_cuda_libraries(keel_device *d, cudaStream_t *stream)
{
    gpu *g = gpu_of(d);
    set_device(g); /* what fails here fails again, and is told, when a step begins */
    *stream = g->stream[KEEL_COMPUTE_STREAM];
    return &g->libraries;
}

extern "C" {
extern const keel_cuda_plugin keel_cuda;
}
const keel_cuda_plugin keel_cuda = { KEEL_CUDA_ABI, KEEL_VERSION, count, open };
