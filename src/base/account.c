/* See account.h. */
#include "base/account.h"
#include "base/error.h"
#include "base/memory.h"
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
    const int64_t limit = atomic_load_explicit(&a->limit, memory_order_relaxed);
    do {
        if (__builtin_add_overflow(used, n_bytes, &sum) || (limit && !a->soft && sum > limit))
            return false;
    } while (!atomic_compare_exchange_weak(&a->used, &used, sum));
    raise_peak(a, sum);
    return true;
}

bool keel_account_take(keel_account *a, int64_t n_bytes)
{
    if (keel_account_try(a, n_bytes)) return true;
    keel_account_drop(a);
    if (keel_account_try(a, n_bytes)) return true;
    keel_relief *r = keel_account_relief(NULL); /* which may take bytes itself */
    if (r) r->let_go(r->context);
    keel_account_drop(a);
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

static void enter(keel_account *a)
{
    while (atomic_flag_test_and_set_explicit(&a->busy, memory_order_acquire)) continue;
}

static void leave(keel_account *a)
{
    atomic_flag_clear_explicit(&a->busy, memory_order_release);
}

static bool may_keep(const keel_account *a, size_t n_bytes)
{
    return a && n_bytes >= KEEL_BLOCK_LEAST;
}

/* A block of that size that was kept; NULL: there is none. */
static void *take_kept(keel_account *a, size_t n_bytes)
{
    void *block = NULL;
    enter(a);
    for (int i = 0; i < KEEL_BLOCKS_KEPT && !block; i++) {
        if (a->kept[i].n_bytes != n_bytes) continue;
        block = a->kept[i].at;
        a->kept[i].at = NULL;
    }
    leave(a);
    return block;
}

/* False: all places are taken. */
static bool keep(keel_account *a, void *block, size_t n_bytes)
{
    bool kept = false;
    enter(a);
    for (int i = 0; i < KEEL_BLOCKS_KEPT && !kept; i++) {
        if (a->kept[i].at) continue;
        a->kept[i].at = block;
        a->kept[i].n_bytes = n_bytes;
        kept = true;
    }
    leave(a);
    return kept;
}

void *keel_account_block(keel_account *a, size_t n_bytes)
{
    void *block = may_keep(a, n_bytes) ? take_kept(a, n_bytes) : NULL;
    if (block) return block;
    if (!keel_account_take(a, (int64_t)n_bytes)) return NULL;
    if (!(block = keel_aligned_calloc(1, n_bytes))) keel_account_give(a, (int64_t)n_bytes);
    return block;
}

void keel_account_free(keel_account *a, void *block, size_t n_bytes)
{
    if (!block || (may_keep(a, n_bytes) && keep(a, block, n_bytes))) return;
    keel_free(block); /* first, so that there is never more than the account says */
    keel_account_give(a, (int64_t)n_bytes);
}

void keel_account_drop(keel_account *a)
{
    for (int i = 0; a && i < KEEL_BLOCKS_KEPT; i++) {
        enter(a);
        void *block = a->kept[i].at;
        const size_t n_bytes = a->kept[i].n_bytes;
        a->kept[i].at = NULL;
        leave(a);
        keel_free(block);
        if (block) keel_account_give(a, (int64_t)n_bytes);
    }
}

int64_t keel_account_room(const keel_account *a)
{
    const int64_t limit = a ? atomic_load_explicit(&a->limit, memory_order_relaxed) : 0;
    if (!limit) return INT64_MAX;
    const int64_t used = atomic_load_explicit(&a->used, memory_order_relaxed);
    return used < limit ? limit - used : 0;
}
