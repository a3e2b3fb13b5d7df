/* tf.data's cache in memory: elements are made once, and kept while they fit. A row by index that
 * found no room is made again each time, so a cache that is too small still saves the work of those
 * that it has, and never throws one out. Behind random stages it is refused, because every pass
 * would have the same random numbers. */
#include "base/memory.h"
#include "data/elements.h"
#include "data/stage.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct cache_args {
    int64_t memory;
} cache_args;

typedef struct cache {
    pthread_mutex_t lock;
    _Atomic int64_t used;
    _Atomic(keel_element *) *at; /* [rows] */
} cache;

/* The name of a stage before this one that gives other elements in each pass, or NULL. */
static const char *random_stage(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    if (!s) return NULL;
    if (s->stage->is_random && s->stage->is_random(s)) return s->stage->type.name;
    for (int i = 0; i < s->n_parent; i++) {
        const char *name = random_stage(s->parent[i]);
        if (name) return name;
    }
    return NULL;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const char *random = random_stage(s->parent[0]);
    if (random)
        return keel_fail(KEEL_EARG,
                         "behind %s, which draws random numbers, every pass would be the same: put "
                         "the cache before it",
                         random);
    if (!s->by_index || spec->batched || spec->endless)
        return keel_fail(KEEL_EUNSUP, "only rows that are read by number can be cached: put it "
                                      "before filters, batches and endless repeats");
    cache *c = s->made = keel_calloc(1, sizeof *c);
    if (!c) return KEEL_ENOMEM;
    pthread_mutex_init(&c->lock, NULL);
    c->at = keel_calloc((size_t)spec->rows, sizeof *c->at);
    return c->at ? KEEL_OK : KEEL_ENOMEM;
}

static void release(keel_applied *s)
{
    cache *c = s->made;
    for (int64_t i = 0; c->at && i < s->parent[0]->rows; i++)
        keel_element_release(atomic_load(&c->at[i]));
    keel_free(c->at);
    pthread_mutex_destroy(&c->lock);
    keel_free(c);
}

/* The row in the cache, made now if there is room; *out NULL: there is none. */
static keel_status get(const keel_applied *s, keel_position at, keel_element **out,
                       keel_scratch *scratch)
{
    cache *c = s->made;
    const int64_t limit = ((const cache_args *)s->args)->memory;
    *out = atomic_load_explicit(&c->at[at.index], memory_order_acquire);
    if (*out || (limit != KEEL_INT_NULL && atomic_load(&c->used) >= limit)) return KEEL_OK;
    keel_scratch *inner = keel_scratch_inner(scratch);
    if (!inner) return KEEL_ENOMEM;
    keel_element *made, *none = NULL;
    KEEL_TRY(keel_element_read(&made, s->parent[0], keel_stage_into(s, 0, &at), NULL, inner));
    const int64_t n = (int64_t)made->n_bytes;
    if (limit != KEEL_INT_NULL && atomic_fetch_add(&c->used, n) + n > limit) {
        atomic_fetch_sub(&c->used, n); /* there is no room for this one: read it again */
        keel_element_release(made);
        return KEEL_OK;
    }
    if (!atomic_compare_exchange_strong(&c->at[at.index], &none, made)) {
        keel_element_release(made); /* another thread was faster */
        if (limit != KEEL_INT_NULL) atomic_fetch_sub(&c->used, n);
        made = none;
    }
    *out = made;
    return KEEL_OK;
}

static keel_status read(const keel_applied *s, keel_position at, const keel_row *row,
                        keel_scratch *scratch)
{
    keel_element *e;
    KEEL_TRY(get(s, at, &e, scratch));
    if (!e) {
        keel_scratch *inner = keel_scratch_inner(scratch);
        return inner ? keel_dataset_read(s->parent[0], keel_stage_into(s, 0, &at), row, inner)
                     : KEEL_ENOMEM;
    }
    return keel_elements_write(e, s->spec, row);
}

#define T cache_args
static const keel_field fields[] = {
    KEEL_INT(T, memory, "null", 0, 1e15,
             "bytes that it may take; rows that do not fit are read again; null: no limit"),
    { .key = NULL },
};

const keel_stage keel_stage_cache = {
    .type = { .name = "cache",
              .module = "keel.data",
              .help = "Keeps the rows in memory, so that they are made once.",
              .args_size = sizeof(cache_args),
              .fields = fields },
    .n_parent = 1,
    .infer = infer,
    .read = read,
    .release = release,
};
