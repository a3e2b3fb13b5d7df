/* GPUs of one process that add up gradients among themselves, by NCCL: the group of device.h.
 *
 * NCCL's calls return before they are done (`blocking` 0), so that no call waits for another GPU
 * where it could not be ended: this file polls, with the device's patience, and watches for what
 * others give up. A communicator is aborted once, and by whoever gives the group up; its own thread
 * asks for that, under a lock, before each call. */
#ifndef KEEL_DEVICE_CUDA_SUMS_H
#define KEEL_DEVICE_CUDA_SUMS_H
#include "device/cuda/runtime.h"
#if defined(__CUDACC__) && !__has_include(<nccl.h>)
#define KEEL_NO_NCCL 1 /* the host adds gradients */
#else
#ifdef __CUDACC__
#include <nccl.h>
#else
#include <nccl_words.h> /* tests/cuda_double */
#endif
#endif
extern "C" {
#include "device/device.h"
}

/* What a device has of the group that it belongs to; group NULL: none. */
struct cuda_member {
    keel_device_group *group;
    int rank;
    bool waits; /* it was given sums that the host has not waited for */
};

/* Of device.cu. */
cuda_member *keel_cuda_member(keel_device *d);
int keel_cuda_number(const keel_device *d);
cudaStream_t keel_cuda_copy_out_stream(const keel_device *d);
/* The device fails when the host waits: "cuda:0: ..., while gradients were added". */
void keel_cuda_failed(keel_device *d, const char *why);

/* NULL of all: built without NCCL. */
keel_status keel_cuda_join(keel_device *const *device, int n, keel_device_group **out);
void keel_cuda_sum(keel_device *d, keel_device_group *g, int rank, keel_dtype real,
                   const keel_device_range *range, int n);
void keel_cuda_give_up(keel_device_group *g);
void keel_cuda_leave(keel_device_group *g);

/* While a device waits for its stream of sums: whether NCCL has failed meanwhile, or another device
 * has given up. The first to see a failure gives the group up. */
bool keel_cuda_sums_failed(const cuda_member *m);
/* What NCCL itself has said of it, with a colon before; else empty. m has a group. */
void keel_cuda_sums_why(const cuda_member *m, char *out, size_t size);

#ifndef KEEL_NO_NCCL
#define NCCL_FUNCTIONS(X)                                                                          \
    X(ncclGetUniqueId)                                                                             \
    X(ncclCommInitRankConfig)                                                                      \
    X(ncclCommGetAsyncError)                                                                       \
    X(ncclCommFinalize)                                                                            \
    X(ncclCommAbort)                                                                               \
    X(ncclCommDestroy)                                                                             \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)                                                                                \
    X(ncclAllReduce)                                                                               \
    X(ncclGetErrorString)

#define NCCL_MEMBER(name) decltype(&::name) name;
struct nccl_functions {
    NCCL_FUNCTIONS(NCCL_MEMBER)
};
#undef NCCL_MEMBER

/* libnccl.so.2, or a double of it. NULL: it is not there, and why. */
const nccl_functions *keel_cuda_nccl(char *why, size_t size);
#endif
#endif
