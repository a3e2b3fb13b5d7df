/* See arena.h. */
#include "graph/arena.h"
#include "base/memory.h"

keel_status keel_arenas_create(keel_arenas **out, int n_worker)
{
    keel_arenas *a = keel_calloc(1, sizeof *a);
    if (!a) return KEEL_ENOMEM;
    a->n_worker = n_worker;
    a->buffer = keel_calloc((size_t)n_worker * KEEL_ARENA_KINDS, sizeof *a->buffer);
    if (!a->buffer) {
        keel_free(a);
        return KEEL_ENOMEM;
    }
    *out = a;
    return KEEL_OK;
}

void keel_arenas_destroy(keel_arenas *a)
{
    if (!a) return;
    for (int i = 0; i < a->n_worker * KEEL_ARENA_KINDS; i++) keel_free(a->buffer[i].at);
    keel_free(a->buffer);
    keel_free(a);
}

keel_status keel_arenas_take(keel_arenas *a, int worker, keel_arena_kind kind, int64_t n,
                             int64_t size, void **out)
{
    struct keel_arena *b = &a->buffer[worker * KEEL_ARENA_KINDS + (int)kind];
    int64_t bytes;
    if (!keel_mul_i64(n, size, &bytes))
        return keel_fail(KEEL_ESHAPE, "%lld times %lld bytes are more than memory can hold",
                         (long long)n, (long long)size);
    if (!b->at ||
        b->bytes <
            bytes) { /* The old buffer is freed first, because there may not be room for both. */
        keel_free(b->at);
        a->moved++;
        b->bytes = 0;
        if (!(b->at = keel_aligned_calloc((size_t)bytes, 1))) return KEEL_ENOMEM;
        b->bytes = bytes;
    }
    *out = b->at;
    return KEEL_OK;
}

int64_t keel_arenas_bytes(const keel_arenas *a)
{
    int64_t n = 0;
    for (int i = 0; i < a->n_worker * KEEL_ARENA_KINDS; i++) n += a->buffer[i].bytes;
    return n;
}
