/* tf.data's cache: elements are made once, and kept in memory or in a file (_kept.h). In memory a
 * row by index that found no room is made again each time, so a cache that is too small still saves
 * the work of those that it has, and never throws one out. A stream is kept when a whole pass had
 * room. Behind random stages a cache is refused, because every pass would have the same random
 * numbers; snapshot is for that. */
#include "base/memory.h"
#include "data/elements.h"
#include "data/stages/_kept.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct cache_args {
    int64_t memory;
    char *filename;
} cache_args;

typedef struct cache {
    pthread_mutex_t lock;  /* of the account */
    keel_account *account; /* of the run that reads it; NULL: none */
    int64_t charged;       /* taken from it */
    _Atomic int64_t used;
    _Atomic(keel_element *) *at; /* [rows]; NULL: of a stream */
    _Atomic bool ready, full; /* of a stream: `pass` has all elements; there is no room for them */
    keel_collect pass;
} cache;

static bool is_file(const keel_applied *s)
{
    return ((const cache_args *)s->args)->filename != NULL;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const cache_args *a = s->args;
    const char *random = keel_stage_random(s->parent[0]);
    if (random)
        return keel_fail(KEEL_EARG,
                         "behind %s, which draws random numbers, every pass would be the same: put "
                         "the cache before it, or use snapshot",
                         random);
    if (a->filename && a->memory != KEEL_INT_NULL)
        return keel_fail(KEEL_EARG, "memory is the limit of a cache without a filename");
    if (a->filename) return keel_kept_infer(s, spec, a->filename, false);
    if (spec->endless) return keel_fail(KEEL_EUNSUP, "data without end cannot be kept");
    if (spec->batched) s->by_index = false;
    if (a->memory == KEEL_INT_NULL) spec->one_shot = false; /* its second pass is in memory */
    cache *c = s->made = keel_calloc(1, sizeof *c);
    if (!c) return KEEL_ENOMEM;
    pthread_mutex_init(&c->lock, NULL);
    if (!s->by_index) return KEEL_OK;
    /* a shuffle in the same order for all passes has the order of its run */
    s->drawn_once |= keel_stage_draws(s->parent[0]);
    c->at = keel_calloc((size_t)spec->rows, sizeof *c->at);
    return c->at ? KEEL_OK : KEEL_ENOMEM;
}

static void release(keel_applied *s)
{
    cache *c = s->made;
    if (is_file(s)) {
        keel_kept_release(s);
        return;
    }
    for (int64_t i = 0; c->at && i < s->parent[0]->rows; i++)
        keel_element_release(atomic_load(&c->at[i]));
    keel_free(c->at);
    keel_collect_free(&c->pass);
    pthread_mutex_destroy(&c->lock);
    keel_free(c);
}

/* Take the bytes of an element that is kept from the account of the run, unless they were taken
 * when it was made. False: there is no room. */
static bool keep_bytes(cache *c, keel_element *e)
{
    const int64_t n = (int64_t)e->n_bytes;
    pthread_mutex_lock(&c->lock);
    keel_account *a = c->account;
    const bool has =
        !a || (keel_account_room(a) >= a->reserve && (a == e->account || keel_account_try(a, n)));
    if (has && a != e->account) keel_account_give(e->account, n);
    if (has && a) c->charged += n;
    if (has) e->account = NULL;
    pthread_mutex_unlock(&c->lock);
    return has;
}

/* Keep an element, if there is room in what the stage may take and in the account. */
static bool take(cache *c, int64_t limit, keel_element *e)
{
    const int64_t n = (int64_t)e->n_bytes;
    if (atomic_fetch_add(&c->used, n) + n <= limit || limit == KEEL_INT_NULL)
        if (keep_bytes(c, e)) return true;
    atomic_fetch_sub(&c->used, n);
    return false;
}

static void give(cache *c, int64_t n)
{
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
    if (is_file(s)) return 0;
    return atomic_load(&c->used) + (c->at ? s->parent[0]->rows * (int64_t)sizeof *c->at : 0);
}

/* A cache has one account at a time: that of the first run, until it ends. */
static void charge(const keel_applied *s, keel_account *a, bool on)
{
    cache *c = s->made;
    if (is_file(s)) return;
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

static void note(const keel_applied *s, char *text, size_t size)
{
    const cache *c = s->made;
    if (is_file(s))
        keel_kept_note(s, text, size);
    else if (atomic_load(&c->full))
        snprintf(text, size, "cache: a pass of %s is more than it may take, and nothing is kept",
                 keel_dataset_name(s->parent[0]));
}

/* ---- by index -------------------------------------------------------------------------------- */

/* The row in the cache, made now if there is room; *out NULL: there is none. *own: if it was found
 * only then that there is none, *out is the caller's to release; texts are those of the dataset. */
static keel_status get(const keel_applied *s, keel_position at, keel_element **out, bool *own,
                       keel_scratch *scratch)
{
    cache *c = s->made;
    const int64_t limit = ((const cache_args *)s->args)->memory;
    const int64_t used = atomic_load(&c->used);
    *own = false;
    *out = atomic_load_explicit(&c->at[at.index], memory_order_acquire);
    if (*out || (limit != KEEL_INT_NULL && used >= limit)) return KEEL_OK;
    if (!keel_spec_is_open(&s->parent[0]->origin->spec)) { /* known without making it */
        const int64_t n = keel_element_size(&s->parent[0]->origin->spec, 0);
        const keel_account *a = scratch->account;
        if (limit != KEEL_INT_NULL && n > limit - used) return KEEL_OK;
        if (a && a->limit && keel_account_room(a) - a->reserve < n) return KEEL_OK;
    }
    keel_scratch *inner = keel_scratch_inner(scratch);
    if (!inner) return KEEL_ENOMEM;
    keel_element *made, *none = NULL;
    const keel_status got =
        keel_element_read(&made, s->parent[0], keel_stage_into(s, 0, &at), scratch->account, inner);
    if (got == KEEL_ENOMEM && scratch->account && scratch->account->limit) return KEEL_OK;
    if (got < 0) return got;
    *own = !take(c, limit, made);
    if (!*own && !atomic_compare_exchange_strong(&c->at[at.index], &none, made)) {
        give(c, (int64_t)made->n_bytes);
        atomic_fetch_sub(&c->used, (int64_t)made->n_bytes);
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
    bool own;
    if (is_file(s)) return keel_kept_read(s, at, row, scratch);
    KEEL_TRY(get(s, at, &e, &own, scratch));
    if (e) {
        const keel_status r = keel_elements_write(e, s->spec, row);
        if (own) keel_element_release(e);
        return r;
    }
    keel_scratch *inner = keel_scratch_inner(scratch);
    return inner ? keel_dataset_read(s->parent[0], keel_stage_into(s, 0, &at), row, inner)
                 : KEEL_ENOMEM;
}

static int64_t length(const keel_applied *s, int i, keel_position at)
{
    if (is_file(s)) return keel_kept_length(s, i, at);
    return keel_dataset_length(s->parent[0], i, keel_stage_into(s, 0, &at));
}

static int length_from(const keel_applied *s, int *i)
{
    return is_file(s) ? keel_kept_length_from(s, i) : 0;
}

/* ---- streams --------------------------------------------------------------------------------- */

typedef struct cache_iter {
    keel_kept_iter file; /* of a cache with a filename; of others the rest */
    keel_collect kept;   /* of this pass so far */
    int64_t used, next;
    keel_account *account; /* that the bytes of `kept` are taken from */
    bool from_memory, keeps;
} cache_iter;

static keel_status begin(keel_iter *it)
{
    cache_iter *w = it->own;
    const cache *c = it->applied->made;
    if (is_file(it->applied)) return keel_kept_begin(it);
    w->from_memory = atomic_load(&c->ready);
    w->keeps = !w->from_memory && !atomic_load(&c->full);
    w->account = c->account;
    /* always the first pass: a run that goes on in a later one keeps what the others had */
    return w->from_memory ? KEEL_OK : keel_iter_begin(it->parent[0], 0);
}

static void stop_keeping(keel_iter *it)
{
    cache_iter *w = it->own;
    cache *c = it->applied->made;
    if (w->account && w->account == c->account) give(c, w->used);
    keel_collect_free(&w->kept);
    w->used = 0;
    w->keeps = false;
}

static void end(keel_iter *it)
{
    cache_iter *w = it->own;
    if (is_file(it->applied)) {
        keel_kept_end(it);
        return;
    }
    stop_keeping(it);
    *w = (cache_iter){ .file = { 0 } };
}

/* A copy, since it outlives the run. */
static keel_status keep(keel_iter *it, const keel_element *e)
{
    cache_iter *w = it->own;
    cache *c = it->applied->made;
    const int64_t limit = ((const cache_args *)it->applied->args)->memory;
    const void *data[KEEL_FIELDS_MAX];
    keel_shape shape[KEEL_FIELDS_MAX];
    keel_element *copy;
    for (int i = 0; i < e->n_field; i++) {
        data[i] = e->field[i].data;
        shape[i] = e->field[i].shape;
    }
    KEEL_TRY(keel_element_copy(&copy, NULL, it->spec, data, shape));
    copy->place = e->place;
    const int64_t n = (int64_t)copy->n_bytes;
    if ((limit != KEEL_INT_NULL && w->used + n > limit) || !keep_bytes(c, copy)) {
        atomic_store(&c->full, true);
        keel_element_release(copy);
        stop_keeping(it);
        return KEEL_OK;
    }
    w->used += n;
    return keel_collect_add(&w->kept, copy);
}

/* The pass is complete; of several at once the first is kept. */
static void finish(keel_iter *it)
{
    cache_iter *w = it->own;
    cache *c = it->applied->made;
    pthread_mutex_lock(&c->lock);
    if (!atomic_load(&c->ready)) {
        c->pass = w->kept;
        w->kept = (keel_collect){ 0 };
        atomic_store(&c->used, w->used);
        w->used = 0;
        atomic_store(&c->ready, true);
    }
    pthread_mutex_unlock(&c->lock);
    stop_keeping(it);
}

static keel_status next(keel_iter *it, keel_element **out)
{
    cache_iter *w = it->own;
    const cache *c = it->applied->made;
    if (is_file(it->applied)) return keel_kept_next(it, out);
    if (w->from_memory) {
        if (w->next >= c->pass.n) return KEEL_END;
        *out = keel_element_share(c->pass.at[w->next++]);
        return KEEL_OK;
    }
    const keel_status s = keel_iter_next(it->parent[0], out);
    if (s == KEEL_END && w->keeps) finish(it);
    if (s != KEEL_OK || !w->keeps) return s;
    const keel_status kept = keep(it, *out);
    if (kept >= 0) return KEEL_OK;
    stop_keeping(it); /* the pass would lack this element */
    keel_element_release(*out);
    return kept;
}

/* A pass without an element that failed is not all of the data: it is not kept. */
static void pass(keel_iter *it)
{
    if (is_file(it->applied)) {
        keel_kept_pass(it);
        return;
    }
    stop_keeping(it);
    keel_iter_pass(it->parent[0]);
}

#define T cache_args
static const keel_field fields[] = {
    KEEL_INT(T, memory, "null", 0, 1e15,
             "bytes that it may take; rows that do not fit are read again; null: no limit"),
    KEEL_STRING(T, filename, "null", "keep them in this file, for later runs too; null: in memory"),
    { .key = NULL },
};

const keel_stage keel_stage_cache = {
    .type = { .name = "cache",
              .module = "keel.data",
              .help = "Keeps the elements in memory or in a file, so that they are made once.",
              .args_size = sizeof(cache_args),
              .fields = fields },
    .n_parent = 1,
    .one_pass = true,
    .infer = infer,
    .read = read,
    .length = length,
    .length_from = length_from,
    .iter_size = sizeof(cache_iter),
    .begin = begin,
    .next = next,
    .end = end,
    .pass = pass,
    .note = note,
    .release = release,
    .keeps = keeps,
    .charge = charge,
};
