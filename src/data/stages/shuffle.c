/* tf.data's shuffle. With a buffer as large as the data, or none given, the order is a keyed
 * permutation, which needs no memory and no filling. With a smaller one it is what a buffer gives:
 * element k is drawn from the first buffer_size + k elements. Of rows by index only their numbers
 * go through the buffer, so that a run begins anywhere at once. */
#include "base/memory.h"
#include "data/collect.h"
#include "data/stage.h"
#include <pthread.h>

typedef struct shuffle_args {
    int64_t buffer_size, seed;
    bool reshuffle_each_iteration;
} shuffle_args;

enum { KEPT = 2 }; /* orders of passes: reading ahead reaches into the next */

typedef struct order { /* through a buffer */
    uint64_t key[2];
    bool set;
    int64_t *at; /* [rows] */
} order;

typedef struct orders {
    pthread_mutex_t lock;
    order kept[KEPT];
    int next;
} orders;

static bool is_whole(const keel_applied *s)
{
    const shuffle_args *a = s->args;
    const int64_t n = s->parent[0]->rows;
    return a->buffer_size == KEEL_INT_NULL || (n >= 0 && a->buffer_size >= n);
}

/* The key of a pass: that of the run or its own, the same for all passes if it is not reshuffled.
 */
static keel_chance chance_at(const keel_applied *s, const keel_position *at)
{
    const shuffle_args *a = s->args;
    keel_chance c = keel_stage_chance(s, at);
    if (a->seed != KEEL_INT_NULL) c.seed = (uint64_t)a->seed;
    if (!a->reshuffle_each_iteration) c.epoch = 0;
    return c;
}

/* Draw k of a shuffle through a buffer, below n. */
static int64_t draw(const keel_chance *c, int64_t k, int64_t n)
{
    uint32_t word[4];
    keel_philox(word, c, (uint64_t)k / 2 + 1, 0); /* row 0 keys permutations */
    const uint64_t wide = (uint64_t)word[k % 2 * 2] << 32 | word[k % 2 * 2 + 1];
    return (int64_t)(((unsigned __int128)wide * (uint64_t)n) >> 64);
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const shuffle_args *a = s->args;
    if (a->buffer_size == KEEL_INT_NULL && (spec->rows < 0 || spec->endless))
        return keel_fail(KEEL_EARG, "the number of elements is not known or has no end: give a "
                                    "buffer_size");
    if (spec->endless || !s->by_index) {
        s->by_index = false;
        return KEEL_OK;
    }
    if (is_whole(s)) return KEEL_OK;
    orders *all = s->made = keel_calloc(1, sizeof *all);
    if (!all) return KEEL_ENOMEM;
    pthread_mutex_init(&all->lock, NULL);
    for (int i = 0; i < KEPT; i++)
        if (!(all->kept[i].at = keel_calloc((size_t)spec->rows, sizeof(int64_t))))
            return KEEL_ENOMEM;
    return KEEL_OK;
}

static bool is_random(const keel_applied *s)
{
    return ((const shuffle_args *)s->args)->reshuffle_each_iteration;
}

static void release(keel_applied *s)
{
    orders *all = s->made;
    for (int i = 0; i < KEPT; i++) keel_free(all->kept[i].at);
    pthread_mutex_destroy(&all->lock);
    keel_free(all);
}

/* The order of a pass through a buffer. */
static void fill(const keel_applied *s, const keel_chance *c, int64_t *at)
{
    const int64_t n = s->parent[0]->rows, size = ((const shuffle_args *)s->args)->buffer_size;
    /* at[k ..] holds the buffer: what is drawn is swapped with its first element. */
    for (int64_t k = 0; k < n; k++) at[k] = k;
    for (int64_t k = 0; k < n; k++) {
        const int64_t in = n - k < size ? n - k : size;
        const int64_t j = k + draw(c, k, in), drawn = at[j];
        at[j] = at[k];
        at[k] = drawn;
    }
}

static int64_t through_buffer(const keel_applied *s, const keel_chance *c, int64_t index)
{
    orders *all = s->made;
    const uint64_t key[2] = { c->seed, (uint64_t)c->epoch << 16 | c->stream };
    pthread_mutex_lock(&all->lock);
    order *o = NULL;
    for (int i = 0; i < KEPT && !o; i++)
        if (all->kept[i].set && all->kept[i].key[0] == key[0] && all->kept[i].key[1] == key[1])
            o = &all->kept[i];
    if (!o) {
        o = &all->kept[all->next++ % KEPT];
        fill(s, c, o->at);
        o->key[0] = key[0];
        o->key[1] = key[1];
        o->set = true;
    }
    const int64_t got = o->at[index];
    pthread_mutex_unlock(&all->lock);
    return got;
}

static int where(const keel_applied *s, keel_position *at)
{
    const keel_chance c = chance_at(s, at);
    if (s->made) {
        at->index = through_buffer(s, &c, at->index);
        return 0;
    }
    keel_permutation p;
    keel_permutation_init(&p, (uint64_t)s->parent[0]->rows, &c);
    at->index = (int64_t)keel_permutation_at(&p, (uint64_t)at->index);
    return 0;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* The same order as by index: position p of the data is at p % size, and what is drawn gives its
 * place to the first of the buffer, whose own place the next element takes. */
typedef struct shuffle_iter {
    keel_collect buffer;
    keel_element *ahead; /* the element behind the first full buffer: it tells whether all fit in */
    int64_t taken, drawn;
    bool begun, ended, whole;
    keel_permutation order; /* if whole */
} shuffle_iter;

static keel_status begin(keel_iter *it)
{
    *(shuffle_iter *)it->own = (shuffle_iter){ 0 };
    return keel_iter_begin(it->parent[0], it->at.pass);
}

/* Put e into its place. */
static keel_status put(shuffle_iter *w, keel_element *e, int64_t size)
{
    if (w->taken < size)
        KEEL_TRY(keel_collect_add(&w->buffer, e));
    else
        w->buffer.at[w->taken % size] = e;
    w->taken++;
    return KEEL_OK;
}

static keel_status fill_stream(keel_iter *it, int64_t size)
{
    shuffle_iter *w = it->own;
    while (!w->ended && w->taken - w->drawn < size) {
        keel_element *e = w->ahead;
        w->ahead = NULL;
        const keel_status s = e ? KEEL_OK : keel_iter_next(it->parent[0], &e);
        if (s < 0) return s;
        w->ended = s == KEEL_END;
        if (s == KEEL_OK) KEEL_TRY(put(w, e, size));
    }
    if (w->begun) return KEEL_OK;
    if (!w->ended) {
        const keel_status s = keel_iter_next(it->parent[0], &w->ahead);
        if (s < 0) return s;
        w->ended = s == KEEL_END;
    }
    w->begun = true;
    w->whole = w->ended;
    const keel_chance c = chance_at(it->applied, &it->at);
    if (w->whole && w->taken) keel_permutation_init(&w->order, (uint64_t)w->taken, &c);
    return KEEL_OK;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    shuffle_iter *w = it->own;
    const shuffle_args *a = it->applied->args;
    const int64_t size = a->buffer_size == KEEL_INT_NULL ? INT64_MAX : a->buffer_size;
    KEEL_TRY(fill_stream(it, size));
    const int64_t left = w->taken - w->drawn, k = w->drawn;
    if (!left) return KEEL_END;
    const keel_chance c = chance_at(it->applied, &it->at);
    const int64_t at = w->whole ? (int64_t)keel_permutation_at(&w->order, (uint64_t)k)
                                : (k + draw(&c, k, left)) % size;
    *out = w->buffer.at[at];
    w->buffer.at[at] = w->whole ? NULL : w->buffer.at[k % size];
    if (!w->whole) w->buffer.at[k % size] = NULL;
    w->drawn++;
    return KEEL_OK;
}

static int64_t holds(const keel_applied *s)
{
    const int64_t size = ((const shuffle_args *)s->args)->buffer_size, all = s->parent[0]->rows;
    return size == KEEL_INT_NULL || (all >= 0 && all < size) ? all : size;
}

/* The orders of passes through a buffer. */
static int64_t keeps(const keel_applied *s)
{
    return s->made ? KEPT * s->parent[0]->rows * (int64_t)sizeof(int64_t) : 0;
}

static void end(keel_iter *it)
{
    shuffle_iter *w = it->own;
    keel_collect_free(&w->buffer);
    keel_element_release(w->ahead);
    w->ahead = NULL;
}

#define T shuffle_args
static const keel_field fields[] = {
    KEEL_INT(T, buffer_size, "null", 1, 1e12,
             "elements that one is drawn from; null: all, which costs no more"),
    KEEL_INT(T, seed, "null", 0, 9e18, "of the order; null: that of the run"),
    KEEL_BOOL(T, reshuffle_each_iteration, "true", "another order in each pass"),
    { .key = NULL },
};

const keel_stage keel_stage_shuffle = {
    .type = { .name = "shuffle",
              .module = "keel.data",
              .help = "The elements in random order.",
              .args_size = sizeof(shuffle_args),
              .fields = fields },
    .n_parent = 1,
    .draws = true,
    .infer = infer,
    .is_random = is_random,
    .where = where,
    .iter_size = sizeof(shuffle_iter),
    .begin = begin,
    .next = next,
    .end = end,
    .release = release,
    .holds = holds,
    .keeps = keeps,
};
