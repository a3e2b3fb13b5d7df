/* See account.h. */
#include "base/account.h"
#include "base/error.h"
#include <stddef.h>

static _Thread_local keel_relief *relief;

keel_relief *keel_account_relief(keel_relief *r)
{
    keel_relief *before = relief;
    relief = r;
    return before;
}

static void raise_peak(keel_account *a, int64_t used)
{
    int64_t peak = atomic_load_explicit(&a->peak, memory_order_relaxed);
    while (used > peak && !atomic_compare_exchange_weak(&a->peak, &peak, used)) continue;
}

bool keel_account_try(keel_account *a, int64_t n_bytes)
{
    if (!a) return true;
    int64_t sum, used = atomic_load_explicit(&a->used, memory_order_relaxed);
    do {
        if (__builtin_add_overflow(used, n_bytes, &sum) || (a->limit && !a->soft && sum > a->limit))
            return false;
    } while (!atomic_compare_exchange_weak(&a->used, &used, sum));
    raise_peak(a, sum);
    return true;
}

bool keel_account_take(keel_account *a, int64_t n_bytes)
{
    if (keel_account_try(a, n_bytes)) return true;
    keel_relief *r = keel_account_relief(NULL); /* which may take bytes itself */
    if (r) r->let_go(r->context);
    keel_account_relief(r);
    if (r && keel_account_try(a, n_bytes)) return true;
    keel_fail(KEEL_ENOMEM,
              "the input may hold %lld bytes (input_memory), %lld are in use, and this needs %lld "
              "more: allow more, or use smaller batches or shuffle buffers",
              (long long)a->limit, (long long)atomic_load(&a->used), (long long)n_bytes);
    return false;
}

void keel_account_give(keel_account *a, int64_t n_bytes)
{
    if (a) atomic_fetch_sub(&a->used, n_bytes);
}

int64_t keel_account_room(const keel_account *a)
{
    if (!a || !a->limit) return INT64_MAX;
    const int64_t used = atomic_load_explicit(&a->used, memory_order_relaxed);
    return used < a->limit ? a->limit - used : 0;
}
