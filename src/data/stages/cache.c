/* tf.data's cache in memory: elements are made once, and kept while they fit. A row by index that
 * found no room is made again each time, so a cache that is too small still saves the work of those
 * that it has, and never throws one out. Behind random stages it is refused, because every pass
 * would have the same random numbers. */
#include "base/memory.h"
#include "data/iter.h"
#include "data/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct cache_args {
    int64_t memory;
} cache_args;

typedef struct cache {
    pthread_mutex_t lock;  /* of the account */
    keel_account *account; /* of the run that reads it; NULL: none */
    int64_t charged;       /* taken from it */
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

/* Keep an element, if there is room in what the stage may take and in the account of the run, from
 * which its bytes were taken when it was made. */
static bool take(cache *c, int64_t limit, keel_element *e)
{
    const int64_t n = (int64_t)e->n_bytes;
    if (atomic_fetch_add(&c->used, n) + n > limit && limit != KEEL_INT_NULL) {
        atomic_fetch_sub(&c->used, n);
        return false;
    }
    pthread_mutex_lock(&c->lock);
    keel_account *a = c->account;
    const bool has =
        !a || (keel_account_room(a) >= a->reserve && (a == e->account || keel_account_try(a, n)));
    if (has && a != e->account) keel_account_give(e->account, n);
    if (has && a) c->charged += n;
    if (has) e->account = NULL;
    pthread_mutex_unlock(&c->lock);
    if (!has) atomic_fetch_sub(&c->used, n);
    return has;
}

static void give(cache *c, int64_t n)
{
    atomic_fetch_sub(&c->used, n);
    pthread_mutex_lock(&c->lock);
    if (c->account) {
        keel_account_give(c->account, n);
        c->charged -= n;
    }
    pthread_mutex_unlock(&c->lock);
}

static int64_t keeps(const keel_applied *s)
{
    cache *c = s->made;
    return atomic_load(&c->used) + s->parent[0]->rows * (int64_t)sizeof *c->at;
}

/* A cache has one account at a time: that of the first run, until it ends. */
static void charge(const keel_applied *s, keel_account *a, bool on)
{
    cache *c = s->made;
    pthread_mutex_lock(&c->lock);
    if (on && !c->account) {
        c->account = a;
    } else if (!on && c->account == a) {
        keel_account_give(a, c->charged);
        c->account = NULL;
        c->charged = 0;
    }
    pthread_mutex_unlock(&c->lock);
}

/* The row in the cache, made now if there is room; *out NULL: there is none. */
static keel_status get(const keel_applied *s, keel_position at, keel_element **out,
                       keel_scratch *scratch)
{
    cache *c = s->made;
    const int64_t limit = ((const cache_args *)s->args)->memory;
    *out = atomic_load_explicit(&c->at[at.index], memory_order_acquire);
    if (*out || (limit != KEEL_INT_NULL && atomic_load(&c->used) >= limit)) return KEEL_OK;
    if (!keel_spec_is_open(&s->parent[0]->origin->spec)) { /* known without making it */
        const int64_t n = keel_element_size(&s->parent[0]->origin->spec, 0);
        const keel_account *a = scratch->account;
        if (a && a->limit && keel_account_room(a) - a->reserve < n) return KEEL_OK;
    }
    keel_scratch *inner = keel_scratch_inner(scratch);
    if (!inner) return KEEL_ENOMEM;
    keel_element *made, *none = NULL;
    const keel_status got =
        keel_element_read(&made, s->parent[0], keel_stage_into(s, 0, &at), scratch->account, inner);
    if (got == KEEL_ENOMEM && scratch->account && scratch->account->limit) return KEEL_OK;
    if (got < 0) return got;
    if (!take(c, limit, made)) { /* there is no room for this one: read it again */
        keel_element_release(made);
        return KEEL_OK;
    }
    if (!atomic_compare_exchange_strong(&c->at[at.index], &none, made)) {
        give(c, (int64_t)made->n_bytes);
        keel_element_release(made); /* another thread was faster */
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
    for (int i = 0; i < s->spec->n_field; i++) {
        if (!row->at[i]) continue;
        const int64_t n = keel_shape_count(&e->field[i].shape);
        const size_t each = keel_dtype_size(row->want[i]);
        KEEL_TRY(
            keel_field_write(row->at[i], row->want[i], e->field[i].data, &s->spec->field[i], n));
        if (keel_shape_is_open(&s->spec->field[i].shape) && n < row->count[i])
            memset((char *)row->at[i] + (size_t)n * each, 0, (size_t)(row->count[i] - n) * each);
    }
    return KEEL_OK;
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
    .keeps = keeps,
    .charge = charge,
};
