/* See largest.h. */
#include "data/largest.h"
#include "base/memory.h"
#include <pthread.h>
#include <stdatomic.h>

struct keel_largest {
    _Atomic int64_t n_bytes; /* changed with the lock */
    int64_t row;
    pthread_mutex_t lock;
};

keel_largest *keel_largest_create(void)
{
    keel_largest *l = keel_calloc(1, sizeof *l);
    if (!l) return NULL;
    pthread_mutex_init(&l->lock, NULL);
    l->row = -1;
    return l;
}

void keel_largest_destroy(keel_largest *l)
{
    if (!l) return;
    pthread_mutex_destroy(&l->lock);
    keel_free(l);
}

void keel_largest_note(keel_largest *l, int64_t n_bytes, int64_t row)
{
    if (n_bytes <= atomic_load_explicit(&l->n_bytes, memory_order_relaxed)) return;
    pthread_mutex_lock(&l->lock);
    if (n_bytes > l->n_bytes) {
        l->n_bytes = n_bytes;
        l->row = row;
    }
    pthread_mutex_unlock(&l->lock);
}

int64_t keel_largest_bytes(const keel_largest *l, int64_t *row)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&l->lock; /* l is what it guards */
    pthread_mutex_lock(lock);
    const int64_t n = l->n_bytes;
    if (row) *row = l->row;
    pthread_mutex_unlock(lock);
    return n;
}
