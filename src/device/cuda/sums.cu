/* See sums.h. */
#include "device/cuda/sums.h"
#include "device/cuda/libraries.h"
#include "device/cuda/waiting.h"
#include <mutex>
#include <new>
#include <stdio.h>
#include <string.h>
extern "C" {
#include "base/memory.h"
}

#ifdef KEEL_NO_NCCL
keel_status keel_cuda_join(keel_device *const *, int, keel_device_group **)
{
    return keel_fail(KEEL_EUNSUP, "the plug-in for GPUs was built without nccl.h");
}
void keel_cuda_sum(keel_device *, keel_device_group *, int, keel_dtype, const keel_device_range *,
                   int)
{
}
void keel_cuda_give_up(keel_device_group *)
{
}
void keel_cuda_leave(keel_device_group *)
{
}
bool keel_cuda_sums_failed(const cuda_member *)
{
    return false;
}
void keel_cuda_sums_why(const cuda_member *, char *out, size_t)
{
    *out = 0;
}
#else

namespace
{
enum { RANKS = 64 };

struct cuda_rank {
    std::mutex lock; /* of comm: whoever calls NCCL with it has that */
    keel_device *device;
    ncclComm_t comm; /* NULL: aborted, or never made */
};

struct cuda_group {
    keel_device_group base; /* first: a keel_device_group is a cuda_group */
    const nccl_functions *of;
    int n;
    cuda_rank rank[RANKS];
    std::mutex telling; /* of why */
    char why[160];      /* NCCL says that it ends; empty: it does not */
};

cuda_group *group_of(keel_device_group *g)
{
    return reinterpret_cast<cuda_group *>(g);
}

ncclResult_t state_of(cuda_group *g, cuda_rank *r)
{
    ncclResult_t state = ncclSuccess;
    std::lock_guard<std::mutex> held(r->lock);
    if (!r->comm) return ncclRemoteError;
    const ncclResult_t asked = g->of->ncclCommGetAsyncError(r->comm, &state);
    return asked == ncclSuccess ? state : asked;
}

/* Until a call is done that returned before: with a limit. ncclInProgress: it is not. */
ncclResult_t settle(cuda_group *g, cuda_rank *r)
{
    const timespec nap = { 0, 20000 };
    const double begin = cuda_seconds();
    for (;;) {
        const ncclResult_t s = state_of(g, r);
        if (s != ncclInProgress) return s;
        if (!keel_device_group_works(&g->base)) return ncclRemoteError;
        if (cuda_seconds() - begin > r->device->patience) return ncclInProgress;
        nanosleep(&nap, nullptr);
    }
}

bool is_bad(ncclResult_t s)
{
    return s != ncclSuccess && s != ncclInProgress;
}

/* All communicators at once, in one group: each waits for the others while it is made. */
ncclResult_t begin_all(cuda_group *g, keel_device *const *device)
{
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t s = g->of->ncclGetUniqueId(&id);
    if (s != ncclSuccess) return s;
    s = g->of->ncclGroupStart();
    if (s != ncclSuccess) return s;
    for (int r = 0; r < g->n && !is_bad(s); r++) {
        const bool set = cuda_taken(cudaSetDevice(keel_cuda_number(device[r]))) == cudaSuccess;
        s = set ? g->of->ncclCommInitRankConfig(&g->rank[r].comm, g->n, id, r, &config)
                : ncclUnhandledCudaError;
    }
    const ncclResult_t ended = g->of->ncclGroupEnd();
    if (is_bad(s)) return s;
    s = is_bad(ended) ? ended : ncclSuccess;
    for (int r = 0; r < g->n && s == ncclSuccess; r++) s = settle(g, &g->rank[r]);
    return s;
}

/* All ranges in one launch. A group that was begun is closed, whatever happens in it. */
ncclResult_t add_up(const cuda_group *g, const cuda_rank *r, keel_dtype real,
                    const keel_device_range *range, int n)
{
    const ncclDataType_t type = real == KEEL_FLOAT64 ? ncclFloat64 : ncclFloat32;
    ncclResult_t s = g->of->ncclGroupStart();
    if (s != ncclSuccess) return s;
    for (int i = 0; i < n && !is_bad(s); i++)
        s = g->of->ncclAllReduce(range[i].at, range[i].at, (size_t)range[i].count, type, ncclSum,
                                 r->comm, keel_cuda_copy_out_stream(r->device));
    const ncclResult_t ended = g->of->ncclGroupEnd();
    return is_bad(s) ? s : ended;
}

const char *why_not(keel_device *const *device, int n)
{
    if (n > RANKS) return "there are more than 64 of them";
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (keel_cuda_number(device[i]) == keel_cuda_number(device[k]))
                return "NCCL does not add up among parts of one GPU";
    return nullptr;
}
} // namespace

keel_status keel_cuda_join(keel_device *const *device, int n, keel_device_group **out)
{
    char why[300] = "";
    int64_t before[RANKS];
    const char *not_these = why_not(device, n);
    if (not_these) return keel_fail(KEEL_EUNSUP, "%s", not_these);
    const nccl_functions *of = keel_cuda_nccl(why, sizeof why);
    if (!of) return keel_fail(KEEL_EUNSUP, "%s; install NCCL 2.14 or newer", why);
    cuda_group *g = new (std::nothrow) cuda_group{};
    if (!g) return keel_fail(KEEL_ENOMEM, "no memory for a group of %d GPUs", n);
    g->base.type = device[0]->type;
    g->of = of;
    g->n = n;
    for (int r = 0; r < n; r++) {
        g->rank[r].device = device[r];
        before[r] = keel_cuda_free_bytes(device[r]);
    }
    const ncclResult_t s = begin_all(g, device);
    if (s != ncclSuccess) {
        keel_cuda_leave(&g->base);
        return keel_fail(KEEL_EUNSUP, "NCCL cannot begin: %s",
                         s == ncclInProgress ? "it has not answered in time"
                                             : of->ncclGetErrorString(s));
    }
    for (int r = 0; r < n; r++) {
        keel_cuda_libraries_took(device[r], KEEL_OWN_SUMS, before[r]);
        *keel_cuda_member(device[r]) = { &g->base, r, false };
    }
    *out = &g->base;
    return KEEL_OK;
}

void keel_cuda_sum(keel_device *d, keel_device_group *group, int rank, keel_dtype real,
                   const keel_device_range *range, int n)
{
    cuda_group *g = group_of(group);
    cuda_rank *r = &g->rank[rank];
    const bool set = cuda_taken(cudaSetDevice(keel_cuda_number(d))) == cudaSuccess;
    keel_cuda_member(d)->waits = true;
    ncclResult_t s = ncclUnhandledCudaError;
    if (set) {
        std::lock_guard<std::mutex> held(r->lock);
        if (!r->comm) return; /* given up, which the host is told when it waits */
        s = add_up(g, r, real, range, n);
    }
    if (s == ncclInProgress) s = settle(g, r);
    if (s == ncclSuccess) return;
    keel_cuda_failed(d, s == ncclInProgress ? "NCCL has not answered in time"
                                            : g->of->ncclGetErrorString(s));
    keel_cuda_give_up(group);
}

void keel_cuda_give_up(keel_device_group *group)
{
    cuda_group *g = group_of(group);
    __atomic_store_n(&g->base.broken, 1, __ATOMIC_RELEASE);
    for (int k = 0; k < g->n; k++) {
        cuda_rank *r = &g->rank[k];
        std::lock_guard<std::mutex> held(r->lock);
        if (r->comm) g->of->ncclCommAbort(r->comm);
        r->comm = nullptr;
    }
}

void keel_cuda_leave(keel_device_group *group)
{
    cuda_group *g = group_of(group);
    int64_t before[RANKS];
    bool good = g->n > 0 && keel_cuda_member(g->rank[0].device)->group == group;
    for (int k = 0; k < g->n; k++) {
        before[k] = keel_cuda_free_bytes(g->rank[k].device);
        good = good && g->rank[k].comm; /* each waits for the others in its end, too */
    }
    for (int k = 0; k < g->n && good; k++) good = !is_bad(g->of->ncclCommFinalize(g->rank[k].comm));
    for (int k = 0; k < g->n && good; k++) good = settle(g, &g->rank[k]) == ncclSuccess;
    for (int k = 0; k < g->n; k++) {
        cuda_rank *r = &g->rank[k];
        cuda_member *m = keel_cuda_member(r->device);
        if (r->comm) (good ? g->of->ncclCommDestroy : g->of->ncclCommAbort)(r->comm);
        if (m->group != group) continue;
        keel_cuda_libraries_took(r->device, KEEL_OWN_SUMS, before[k]);
        *m = {};
    }
    delete g;
}

bool keel_cuda_sums_failed(const cuda_member *m)
{
    if (!m->group) return false;
    if (!keel_device_group_works(m->group)) return true;
    cuda_group *g = group_of(m->group);
    const ncclResult_t s = state_of(g, &g->rank[m->rank]);
    if (!is_bad(s)) return false;
    if (keel_device_group_works(m->group)) {
        std::lock_guard<std::mutex> held(g->telling);
        snprintf(g->why, sizeof g->why, ": NCCL: %s", g->of->ncclGetErrorString(s));
    }
    keel_cuda_give_up(m->group);
    return true;
}

void keel_cuda_sums_why(const cuda_member *m, char *out, size_t size)
{
    cuda_group *g = group_of(m->group);
    std::lock_guard<std::mutex> held(g->telling);
    snprintf(out, size, "%s", g->why);
}
#endif
