/* tf.data's group_by_window: rows are collected by a key that a callback gives them. A group that
 * has as many rows as its window becomes a dataset, or one batch; what is left when the data ends
 * comes in the order of the keys. */
#include "base/memory.h"
#include "data/elements.h"
#include "data/inner.h"
#include "data/sources/called.h"
#include "keel/pipeline_calls.h"
#include <string.h>

enum { WINDOW_MAX = 1 << 30 };

typedef struct group_args {
    keel_group f; /* `like` is not used after infer */
} group_args;

static const keel_group *group_of(const keel_applied *s)
{
    return &((const group_args *)s->args)->f;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const keel_group *f = group_of(s);
    const bool endless = spec->endless, one_shot = spec->one_shot;
    if (spec->batched)
        return keel_fail(KEEL_EUNSUP, "its elements are batches: unbatch them first");
    if (f->reduce) {
        if (f->like) KEEL_TRY(keel_inner_spec(spec, f->like));
    } else {
        spec->batched = true;
        spec->max_rows = f->window_size;
    }
    spec->endless |= endless;
    spec->one_shot = one_shot;
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

static bool is_random(const keel_applied *s)
{
    return group_of(s)->random;
}

typedef struct group {
    int64_t key, window;
    keel_collect rows;
} group;

typedef struct group_iter {
    group *at; /* [n], by key */
    int64_t n, room;
    keel_element *in; /* whose key or window was not found */
    int64_t taken;    /* rows */
    int64_t given;    /* windows */
    int64_t full;     /* the group that is to be given; -1: none */
    keel_inner inner; /* of the window that is being given */
    bool ended, told; /* told: the inner dataset has failed */
} group_iter;

static keel_status begin(keel_iter *it)
{
    ((group_iter *)it->own)->full = -1;
    return keel_iter_begin(it->parent[0], it->at.pass);
}

static void end(keel_iter *it)
{
    group_iter *w = it->own;
    keel_inner_close(&w->inner);
    for (int64_t i = 0; i < w->n; i++) keel_collect_free(&w->at[i].rows);
    keel_free(w->at);
    keel_element_release(w->in);
    *w = (group_iter){ 0 };
}

/* The first group whose key is not below. */
static int64_t find(const group_iter *w, int64_t key)
{
    int64_t low = 0, high = w->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (w->at[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static keel_status window_of(const keel_group *f, int64_t key, int64_t *out)
{
    const int64_t most = f->window_size ? f->window_size : WINDOW_MAX;
    *out = f->window_size;
    if (!f->window_size_of) return KEEL_OK;
    const unsigned texts = keel_error_count();
    const keel_status s = f->window_size_of(f->context, key, out);
    if (s != KEEL_OK) return keel_callback_failed(texts, s, "%s: window_size_of", f->name);
    if (*out >= 1 && *out <= most) return KEEL_OK;
    return keel_fail(KEEL_ECALLBACK,
                     "%s: the window of key %lld has %lld rows; 1 to %lld are allowed", f->name,
                     (long long)key, (long long)*out, (long long)most);
}

static keel_status insert(group_iter *w, int64_t at, const keel_group *f, int64_t key)
{
    group new = { .key = key };
    KEEL_TRY(window_of(f, key, &new.window));
    if (w->n == w->room) {
        const int64_t room = w->room ? 2 * w->room : 16;
        group *more = keel_grow(w->at, (size_t)room, sizeof *more);
        if (!more) return KEEL_ENOMEM;
        w->at = more;
        w->room = room;
    }
    memmove(w->at + at + 1, w->at + at, (size_t)(w->n - at) * sizeof *w->at);
    w->at[at] = new;
    w->n++;
    return KEEL_OK;
}

/* Put the row w->in into its group. */
static keel_status sort_in(keel_iter *it)
{
    group_iter *w = it->own;
    const keel_group *f = group_of(it->applied);
    const keel_data_spec *from = &it->applied->parent[0]->origin->spec;
    keel_position at = it->at;
    at.index = w->taken;
    const keel_chance c = keel_stage_chance(it->applied, &at);
    const keel_element_place place = { at.seed, at.pass, at.index, c.stream };
    keel_tensor in[KEEL_FIELDS_MAX];
    int64_t key = 0;
    for (int i = 0; i < from->n_field; i++)
        in[i] = (keel_tensor){ from->field[i].dtype, w->in->field[i].shape, w->in->field[i].data };
    const unsigned texts = keel_error_count();
    const keel_status s = f->key(f->context, in, &key, &place);
    if (s != KEEL_OK) return keel_callback_failed(texts, s, "%s:", f->name);
    const int64_t k = find(w, key);
    if (k == w->n || w->at[k].key != key) KEEL_TRY(insert(w, k, f, key));
    keel_element *e = w->in;
    w->in = NULL;
    w->taken++;
    KEEL_TRY(keel_collect_add(&w->at[k].rows, e));
    if (w->at[k].rows.n >= w->at[k].window) w->full = k;
    return KEEL_OK;
}

/* Take rows until a group is full; at the end of the data the first group is. KEEL_END: no group is
 * left. */
static keel_status collect(keel_iter *it)
{
    group_iter *w = it->own;
    while (w->full < 0 && !w->ended) {
        keel_status s = KEEL_OK;
        if (!w->in) s = keel_iter_next(it->parent[0], &w->in);
        if (s < 0) return s;
        w->ended = s == KEEL_END;
        if (!w->ended) KEEL_TRY(sort_in(it));
    }
    if (w->full >= 0) return KEEL_OK;
    w->full = w->n ? 0 : -1;
    return w->n ? KEEL_OK : KEEL_END;
}

static void remove_full(group_iter *w)
{
    group *g = &w->at[w->full];
    keel_collect_free(&g->rows);
    memmove(g, g + 1, (size_t)(w->n - w->full - 1) * sizeof *g);
    w->n--;
    w->full = -1;
}

/* Open the dataset that `reduce` makes of the full group. */
static keel_status reduce(keel_iter *it)
{
    group_iter *w = it->own;
    const keel_group *f = group_of(it->applied);
    group *g = &w->at[w->full];
    const int64_t key = g->key;
    keel_position at = it->at;
    at.index = w->given++;
    keel_dataset *window, *made = NULL;
    keel_status s =
        keel_elements_dataset(&window, &g->rows, &it->applied->parent[0]->origin->spec, f->name);
    remove_full(w);
    if (s < 0) return s;
    const unsigned texts = keel_error_count();
    s = f->reduce(f->context, key, window, &made);
    keel_dataset_destroy(window);
    if (s != KEEL_OK) {
        keel_dataset_destroy(made);
        return keel_callback_failed(texts, s, "%s: reduce", f->name);
    }
    return keel_inner_open(&w->inner, it, made, &at);
}

static keel_status next(keel_iter *it, keel_element **out)
{
    group_iter *w = it->own;
    w->told = false;
    for (;;) {
        if (w->inner.it) {
            const keel_status s = keel_inner_next(&w->inner, it, out);
            w->told = s < 0;
            if (s != KEEL_END) return s;
            keel_inner_close(&w->inner);
        }
        const keel_status s = collect(it);
        if (s != KEEL_OK) return s;
        if (group_of(it->applied)->reduce) {
            KEEL_TRY(reduce(it));
            continue;
        }
        KEEL_TRY(keel_collect_batch(&w->at[w->full].rows, it, out));
        remove_full(w);
        return KEEL_OK;
    }
}

static void pass(keel_iter *it)
{
    group_iter *w = it->own;
    if (w->told) {
        keel_iter_pass(w->inner.it);
    } else if (w->in) {
        keel_element_release(w->in);
        w->in = NULL;
        w->taken++;
    } else if (w->full < 0 && !w->ended) {
        keel_iter_pass(it->parent[0]);
    }
    w->told = false;
}

/* At least the rows of one window; how many groups there are is only known at the end. */
static int64_t holds(const keel_applied *s)
{
    return group_of(s)->window_size + 1;
}

static const char *label(const keel_applied *s)
{
    return group_of(s)->name;
}

static void release_args(void *args)
{
    const group_args *a = args;
    if (a->f.release) a->f.release(a->f.context);
}

const keel_stage keel_stage_group_by_window = {
    .type = { .name = "group_by_window",
              .module = "keel.data",
              .help = "Windows of rows with the same key; only from C, by "
                      "keel_dataset_group_by_window.",
              .args_size = sizeof(group_args),
              .release = release_args },
    .n_parent = 1,
    .no_index = true,
    .is_random = is_random,
    .infer = infer,
    .iter_size = sizeof(group_iter),
    .begin = begin,
    .next = next,
    .end = end,
    .pass = pass,
    .holds = holds,
    .label = label,
};

keel_status keel_dataset_group_by_window(keel_dataset **out, keel_dataset *d, const keel_group *by)
{
    group_args a = { 0 };
    if (!out || !d || !by)
        return keel_fail(KEEL_EARG, "group_by_window: out, d and group must not be NULL");
    if (by->size < sizeof a.f)
        return keel_fail(KEEL_EARG, "group_by_window: size must be sizeof(keel_group)");
    a.f = *by;
    if (!a.f.name) a.f.name = "group_by_window";
    if (!a.f.key) return keel_fail(KEEL_EARG, "%s: key is NULL", a.f.name);
    if (!a.f.window_size && (!a.f.window_size_of || !a.f.reduce))
        return keel_fail(KEEL_EARG, "%s: window_size is 0", a.f.name);
    if (a.f.window_size < 0 || a.f.window_size > WINDOW_MAX)
        return keel_fail(KEEL_EARG, "%s: a window has 1 to %d rows", a.f.name, WINDOW_MAX);
    a.f.release = NULL; /* after a failure the caller still owns the context */
    KEEL_TRY(keel_stage_apply_args(out, &keel_stage_group_by_window, &a, &d, 1));
    group_args *kept = (*out)->origin->applied->args;
    kept->f.release = by->release;
    kept->f.like = NULL;
    return KEEL_OK;
}
