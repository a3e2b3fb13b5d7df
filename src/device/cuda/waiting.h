/* Waits with a limit. A GPU that hangs, or is gone from its bus without a word to the driver, would
 * hold the host for ever in cudaStreamSynchronize; so the host asks. At first without a pause,
 * since steps of small networks take some 100 us; after 5 ms it naps between questions, which costs
 * a long step 1 % at most. Time in which this process did not run does not count: the GPU may have
 * waited for it. */
#ifndef KEEL_DEVICE_CUDA_WAITING_H
#define KEEL_DEVICE_CUDA_WAITING_H
#include "device/cuda/runtime.h"
#include <sched.h>
#include <time.h>

static inline double cuda_seconds()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Until the stream is empty. cudaErrorNotReady: it still is not after so many seconds. ended() is
 * asked while that takes long, and has what the stream waits for end where it cannot come. */
template <class Ended> cudaError_t cuda_wait(cudaStream_t stream, double limit, Ended ended)
{
    const double gap = 0.1; /* more between two questions: the process was stopped */
    const timespec nap = { 0, 20000 };
    double waited = 0, last = cuda_seconds();
    for (;;) {
        const cudaError_t e = cuda_taken(cudaStreamQuery(stream));
        if (e != cudaErrorNotReady) return e;
        const double now = cuda_seconds();
        waited += now - last < gap ? now - last : gap;
        last = now;
        if (waited > limit) return e;
        if (waited < 5e-3)
            sched_yield();
        else {
            ended();
            nanosleep(&nap, nullptr);
        }
    }
}

static inline cudaError_t cuda_wait(cudaStream_t stream, double limit)
{
    return cuda_wait(stream, limit, [] { return false; });
}

#endif
