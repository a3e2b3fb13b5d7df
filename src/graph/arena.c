/* See arena.h. */
#include "graph/arena.h"
#include "base/memory.h"
#include <string.h>

keel_status keel_arenas_create(keel_arenas **out, keel_device *const *device, int n_worker)
{
    keel_arenas *a = keel_calloc(1, sizeof *a);
    if (!a) return KEEL_ENOMEM;
    a->n_worker = n_worker;
    a->device = device;
    a->buffer = keel_calloc((size_t)n_worker * KEEL_ARENA_KINDS, sizeof *a->buffer);
    a->ahead = keel_calloc((size_t)n_worker, sizeof *a->ahead);
    if (!a->buffer || !a->ahead) {
        keel_arenas_destroy(a);
        return KEEL_ENOMEM;
    }
    *out = a;
    return KEEL_OK;
}

const char *keel_arena_name(keel_arena_kind kind)
{
    static const char *const name[KEEL_ARENA_KINDS] = {
        [KEEL_ARENA_ROWS] = "activations",
        [KEEL_ARENA_SHARD] = "activations of a block",
        [KEEL_ARENA_SCRATCH] = "scratch",
        [KEEL_ARENA_GRAD] = "gradients",
        [KEEL_ARENA_FOLD] = "gradients of shards",
        [KEEL_ARENA_MERGED] = "merged records",
        [KEEL_ARENA_ROW_RECORDS] = "records of rows",
        [KEEL_ARENA_INPUTS] = "inputs",
        [KEEL_ARENA_WEIGHTS] = "weights",
        [KEEL_ARENA_FACTS] = "facts of the step",
        [KEEL_ARENA_SLOTS] = "state of the optimizer",
        [KEEL_ARENA_DEVICE_RECORD] = "folded records",
        [KEEL_ARENA_DEVICE_RECORD_LAST] = "folded records of the node before",
    };
    return name[kind] ? name[kind] : "memory of the host";
}

/* The device that has buffer i; NULL: the host has it. */
static keel_device *owner(const keel_arenas *a, int i)
{
    return i % KEEL_ARENA_KINDS < KEEL_ARENA_HOST ? a->device[i / KEEL_ARENA_KINDS] : NULL;
}

/* Whether the worker's device copies from or to buffer i, which is the host's. */
static bool is_copied(const keel_arenas *a, int i)
{
    const keel_device *d = a->device[i / KEEL_ARENA_KINDS];
    return i % KEEL_ARENA_KINDS >= KEEL_ARENA_RECORD && d && d->type->allocate_host;
}

static void give_back(keel_arenas *a, int i)
{
    const int worker = i / KEEL_ARENA_KINDS;
    keel_device *d = a->device[worker];
    struct keel_arena *b = &a->buffer[i];
    if (b->at && i % KEEL_ARENA_KINDS == KEEL_ARENA_INPUTS) a->ahead[worker].batch = 0;
    if (b->locked)
        d->type->release_host(d, b->at);
    else if (!owner(a, i))
        keel_free(b->at);
    else if (b->at)
        d->type->release(d, b->at);
    *b = (struct keel_arena){ 0 };
}

/* All zero. */
static keel_status get(keel_arenas *a, int i, int64_t bytes)
{
    keel_device *d = owner(a, i), *copies = a->device[i / KEEL_ARENA_KINDS];
    struct keel_arena *b = &a->buffer[i];
    if (d)
        KEEL_TRY(d->type->allocate(d, bytes, keel_arena_name(i % KEEL_ARENA_KINDS), &b->at));
    else if (is_copied(a, i) && copies->type->allocate_host(copies, bytes, &b->at) >= 0)
        b->locked = true;
    else if (!(b->at = keel_aligned_calloc((size_t)bytes, 1)))
        return KEEL_ENOMEM;
    if (is_copied(a, i) && !b->locked) a->unlocked += bytes;
    b->bytes = bytes;
    return KEEL_OK;
}

void keel_arenas_destroy(keel_arenas *a)
{
    if (!a) return;
    for (int i = 0; a->buffer && i < a->n_worker * KEEL_ARENA_KINDS; i++) give_back(a, i);
    keel_free(a->buffer);
    keel_free(a->ahead);
    keel_free(a);
}

keel_status keel_arenas_take(keel_arenas *a, int worker, keel_arena_kind kind, int64_t n,
                             int64_t size, void *pointer)
{
    const int i = worker * KEEL_ARENA_KINDS + (int)kind;
    const struct keel_arena *b = &a->buffer[i];
    int64_t bytes;
    if (!keel_mul_i64(n, size, &bytes))
        return keel_fail(KEEL_ESHAPE, "%lld times %lld bytes are more than memory can hold",
                         (long long)n, (long long)size);
    if (!b->at || b->bytes < bytes) {
        give_back(a, i); /* first, because there may not be room for both */
        a->moved++;
        KEEL_TRY(get(a, i, bytes));
    }
    memcpy(pointer, &b->at, sizeof b->at);
    return KEEL_OK;
}

int64_t keel_arenas_bytes(const keel_arenas *a)
{
    int64_t n = 0;
    for (int i = 0; i < a->n_worker * KEEL_ARENA_KINDS; i++)
        if (!owner(a, i)) n += a->buffer[i].bytes;
    return n;
}

int64_t keel_arenas_device_bytes(const keel_arenas *a, int worker)
{
    int64_t n = 0;
    for (int k = 0; k < KEEL_ARENA_HOST && a->device[worker]; k++)
        n += a->buffer[worker * KEEL_ARENA_KINDS + k].bytes;
    return n;
}
