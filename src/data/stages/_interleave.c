/* Going through several datasets in turn; see interleave.c. */
#include "data/stages/_interleave.h"
#include "base/memory.h"
#include "data/sources/called.h"

enum { OPEN_FILES = 4 };

static bool is_files(const keel_applied *s)
{
    return s->n_parent == 1 && !((const keel_interleave_args *)s->args)->calls;
}

static int64_t cycle_of(const keel_applied *s)
{
    const int64_t n = ((const keel_interleave_args *)s->args)->cycle_length;
    if (s->n_parent > 1) return n == KEEL_INT_NULL || n > s->n_parent ? s->n_parent : n;
    return n == KEEL_INT_NULL ? OPEN_FILES : n;
}

static keel_status infer_given(keel_applied *s, keel_data_spec *spec)
{
    int64_t sum = 0;
    bool endless = false;
    for (int i = 0; i < s->n_parent; i++) {
        const keel_data_spec b = keel_stage_spec(s->parent[i]);
        KEEL_TRY(keel_stage_check_same(spec, &b, s->parent[i]));
        if (b.max_rows > spec->max_rows) spec->max_rows = b.max_rows;
        spec->one_shot |= b.one_shot;
        endless |= b.endless;
        sum = sum < 0 || b.rows < 0 ? -1 : sum + b.rows;
    }
    spec->endless = endless;
    spec->rows = endless ? -1 : sum;
    spec->yields = -1;
    return KEEL_OK;
}

keel_status keel_interleave_infer(keel_applied *s, keel_data_spec *spec)
{
    const keel_interleave_args *a = s->args;
    if (s->n_parent > 1) return infer_given(s, spec);
    if (is_files(s)) return keel_files_infer(s, spec);
    const bool endless = spec->endless, one_shot = spec->one_shot;
    if (a->f.like) KEEL_TRY(keel_inner_spec(spec, a->f.like));
    spec->endless |= endless;
    spec->one_shot = one_shot;
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

bool keel_interleave_is_random(const keel_applied *s)
{
    const keel_interleave_args *a = s->args;
    return a->calls && (a->f.random || a->f.sequential);
}

bool keel_interleave_is_sequential(const keel_applied *s)
{
    const keel_interleave_args *a = s->args;
    return a->calls && a->f.sequential;
}

/* ---- going through --------------------------------------------------------------------------- */

keel_status keel_interleave_begin(keel_iter *it)
{
    keel_interleave_iter *w = it->own;
    w->cycle = cycle_of(it->applied);
    w->at = keel_calloc((size_t)w->cycle, sizeof *w->at);
    if (!w->at) return KEEL_ENOMEM;
    return it->n_parent > 1 ? KEEL_OK : keel_iter_begin(it->parent[0], it->at.pass);
}

void keel_interleave_end(keel_iter *it)
{
    keel_interleave_iter *w = it->own;
    for (int64_t i = 0; w->at && i < w->cycle; i++) keel_inner_close(&w->at[i].inner);
    keel_free(w->at);
    keel_element_release(w->in);
    *w = (keel_interleave_iter){ 0 };
}

static keel_status make(keel_iter *it, const keel_element *e, const keel_position *at,
                        keel_dataset **out)
{
    const keel_flat_map *f = &((const keel_interleave_args *)it->applied->args)->f;
    const keel_data_spec *from = &it->applied->parent[0]->origin->spec;
    if (is_files(it->applied)) return keel_files_open(out, it->applied, e);
    const keel_chance c = keel_stage_chance(it->applied, at);
    const keel_element_place there = { at->seed, at->pass, at->index, c.stream };
    keel_tensor in[KEEL_FIELDS_MAX];
    for (int i = 0; i < from->n_field; i++)
        in[i] = (keel_tensor){ from->field[i].dtype, e->field[i].shape, e->field[i].data };
    const unsigned texts = keel_error_count();
    const keel_status s = f->call(f->context, in, out, &there);
    return s == KEEL_OK ? KEEL_OK : keel_callback_failed(texts, s, "%s:", f->name);
}

/* Open the next dataset at a free place. KEEL_END: there is none. */
static keel_status open_next(keel_iter *it, keel_interleave_place *p)
{
    keel_interleave_iter *w = it->own;
    keel_position at = it->at;
    keel_dataset *d = NULL;
    at.index = w->taken;
    if (it->n_parent > 1) {
        if (w->taken == it->n_parent) return KEEL_END;
        KEEL_TRY(keel_iter_begin(it->parent[w->taken], it->at.pass));
        p->it = it->parent[w->taken++];
        return KEEL_OK;
    }
    if (!w->in) {
        const keel_status s = keel_iter_next(it->parent[0], &w->in);
        if (s != KEEL_OK) return s;
    }
    KEEL_TRY(make(it, w->in, &at, &d));
    KEEL_TRY(keel_inner_open(&p->inner, it, d, &at));
    keel_element_release(w->in);
    w->in = NULL;
    w->taken++;
    p->it = p->inner.it;
    return KEEL_OK;
}

static void advance(keel_interleave_iter *w)
{
    w->given = 0;
    w->k = (w->k + 1) % w->cycle;
}

keel_status keel_interleave_next(keel_iter *it, keel_element **out)
{
    keel_interleave_iter *w = it->own;
    const int64_t block = ((const keel_interleave_args *)it->applied->args)->block_length;
    while (!w->ended || w->open) {
        keel_interleave_place *p = &w->at[w->k];
        if (p->it) {
            const keel_status s =
                p->inner.it ? keel_inner_next(&p->inner, it, out) : keel_iter_next(p->it, out);
            w->told = s < 0;
            if (s < 0) return s;
            if (s == KEEL_OK) {
                if (++w->given == block) advance(w);
                return KEEL_OK;
            }
            keel_inner_close(&p->inner);
            p->it = NULL;
            w->open--;
            advance(w);
        } else if (w->ended) {
            advance(w);
        } else {
            const keel_status s = open_next(it, p);
            if (s < 0) return s;
            w->ended = s == KEEL_END;
            w->open += s == KEEL_OK;
        }
    }
    return KEEL_END;
}

void keel_interleave_pass(keel_iter *it)
{
    keel_interleave_iter *w = it->own;
    if (w->told) {
        keel_iter_pass(w->at[w->k].it);
    } else if (w->in) {
        keel_element_release(w->in);
        w->in = NULL;
        w->taken++;
    } else if (it->n_parent == 1) {
        keel_iter_pass(it->parent[0]);
    }
    w->told = false;
}

void keel_interleave_release_args(void *args)
{
    const keel_interleave_args *a = args;
    if (a->f.release) a->f.release(a->f.context);
}

keel_status keel_interleave_apply(keel_dataset **out, const keel_stage *stage, keel_dataset *d,
                                  const keel_flat_map *map, bool cycles)
{
    const char *name = stage->type.name;
    keel_interleave_args a = { .cycle_length = 1, .block_length = 1, .calls = true };
    if (!out || !d || !map)
        return keel_fail(KEEL_EARG, "%s: out, d and map must not be NULL", name);
    if (map->size < sizeof a.f)
        return keel_fail(KEEL_EARG, "%s: size must be sizeof(keel_flat_map)", name);
    a.f = *map;
    if (!a.f.name) a.f.name = name;
    if (!a.f.call) return keel_fail(KEEL_EARG, "%s: call is NULL", a.f.name);
    if (!cycles && (map->cycle_length || map->block_length))
        return keel_fail(KEEL_EARG, "%s: cycle_length and block_length are those of interleave",
                         a.f.name);
    if (map->cycle_length) a.cycle_length = map->cycle_length;
    if (map->block_length) a.block_length = map->block_length;
    if (a.cycle_length < 1 || a.cycle_length > KEEL_INTERLEAVE_MOST || a.block_length < 1)
        return keel_fail(KEEL_EARG, "%s: cycle_length is 1 to %d, block_length 1 or more", a.f.name,
                         KEEL_INTERLEAVE_MOST);
    a.f.release = NULL; /* after a failure the caller still owns the context */
    KEEL_TRY(keel_stage_apply_args(out, stage, &a, &d, 1));
    keel_interleave_args *kept = (*out)->origin->applied->args;
    kept->f.release = map->release;
    kept->f.like = NULL;
    return KEEL_OK;
}
