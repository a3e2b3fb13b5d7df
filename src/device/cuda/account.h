/* Who has taken the memory of a GPU, by what is free before and after: cudaMemGetInfo knows of no
 * owners. What nobody else has taken since the GPU was opened is code that CUDA has loaded, which
 * it does when a kernel is first asked for. Parts of one GPU have one account, and equal parts of
 * what libraries and kernels have. Memory that another program takes meanwhile counts as loaded
 * code. */
#ifndef KEEL_DEVICE_CUDA_ACCOUNT_H
#define KEEL_DEVICE_CUDA_ACCOUNT_H
#include "device/cuda/runtime.h"
#include <mutex>
extern "C" {
#include "device/device.h"
}

enum { CUDA_TOOK_ARENAS = KEEL_OWN_KERNELS, CUDA_ACCOUNTS = 64 };

struct cuda_account {
    int parts;                          /* that are open */
    int64_t opened, all;                /* free bytes when the first was opened, and all bytes */
    int64_t took[KEEL_OWN_KERNELS + 1]; /* by libraries, and by Keel itself */
};

static std::mutex cuda_accounts_lock;

/* Of the thread's GPU. -1: CUDA does not say, and nobody is told: what fails here fails again. */
static inline int64_t cuda_free_bytes()
{
    size_t left = 0, all = 0;
    return cuda_taken(cudaMemGetInfo(&left, &all)) == cudaSuccess ? (int64_t)left : -1;
}

static inline cuda_account *cuda_account_join(int number, int64_t left, int64_t all)
{
    static cuda_account accounts[CUDA_ACCOUNTS];
    std::lock_guard<std::mutex> held(cuda_accounts_lock);
    cuda_account *a = &accounts[number % CUDA_ACCOUNTS];
    if (a->parts++ == 0) *a = { 1, left, all, {} };
    return a;
}

static inline void cuda_account_leave(cuda_account *a)
{
    std::lock_guard<std::mutex> held(cuda_accounts_lock);
    a->parts--;
}

/* kind: of KEEL_OWN_, or CUDA_TOOK_ARENAS. */
static inline void cuda_account_took(cuda_account *a, int kind, int64_t free_before)
{
    std::lock_guard<std::mutex> held(cuda_accounts_lock);
    const int64_t now = cuda_free_bytes();
    if (a && free_before >= 0 && now >= 0) a->took[kind] += free_before - now;
}

static inline void cuda_account_read(const cuda_account *a, int64_t own[KEEL_OWN_KINDS])
{
    std::lock_guard<std::mutex> held(cuda_accounts_lock);
    const int64_t now = cuda_free_bytes();
    if (now < 0) return; /* they stay as they were */
    int64_t rest = a->opened - now;
    for (int k = 0; k <= CUDA_TOOK_ARENAS; k++) rest -= a->took[k];
    for (int k = 0; k < KEEL_OWN_KERNELS; k++) own[k] = a->took[k] > 0 ? a->took[k] / a->parts : 0;
    own[KEEL_OWN_KERNELS] = rest > 0 ? rest / a->parts : 0;
    own[KEEL_OWN_BEFORE] = a->all - a->opened;
}

#endif
