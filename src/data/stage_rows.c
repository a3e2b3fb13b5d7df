/* Rows by index go down the chain of stages to a source: stages that only choose rows change the
 * place, those that compute have a `read` of their own. */
#include "data/stage_impl.h"
#include "data/trail.h"
#include "data/work.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

keel_position keel_stage_into(const keel_applied *s, int k, const keel_position *at)
{
    keel_position p = *at;
    if (s->stage->one_pass) p.stages = 0; /* what it keeps is the same for all who read it */
    for (int i = 0; i < k; i++) {
        const keel_applied *before = s->parent[i]->origin->applied;
        if (before) p.stages = (uint16_t)(p.stages + before->number);
    }
    return p;
}

keel_chance keel_stage_chance(const keel_applied *s, const keel_position *at)
{
    return (keel_chance){ .seed = at->seed,
                          .epoch = (uint32_t)(at->pass ^ at->pass >> 32),
                          .stream = (uint16_t)(KEEL_STREAM_STAGES + at->stages + s->number) };
}

const keel_dataset *keel_stage_down(const keel_applied *s, keel_position *at)
{
    const keel_position here = *at;
    const int k = s->stage->where(s, at);
    at->stages = keel_stage_into(s, k, &here).stages;
    return s->parent[k];
}

const keel_dataset *keel_dataset_resolve(const keel_dataset *d, keel_position *at)
{
    for (;;) {
        const keel_applied *s = d->origin->applied;
        at->index = keel_dataset_index(d, at->index);
        if (!s || !s->stage->where) return d;
        d = keel_stage_down(s, at);
    }
}

keel_status keel_dataset_read(const keel_dataset *d, keel_position at, const keel_row *row,
                              keel_scratch *scratch)
{
    d = keel_dataset_resolve(d, &at);
    const keel_data_origin *o = d->origin;
    if (!o->applied && o->source->in_memory) /* never waits or fails, and is quicker than a trail */
        return o->source->read(o->state, at.index, row, scratch);
    keel_probe *p = scratch->probe;
    const keel_trail_mark before = keel_trail_enter(scratch->trail, o, at.index);
    const keel_probe_mark m = keel_probe_enter(p, o, KEEL_PART_ALL);
    const keel_status s = o->applied ? o->applied->stage->read(o->applied, at, row, scratch)
                                     : o->source->read(o->state, at.index, row, scratch);
    keel_probe_leave(p, m);
    if (s < 0) keel_trail_failed(scratch->trail, o, at.index);
    keel_trail_leave(scratch->trail, before);
    return s;
}

const keel_data_origin *keel_stage_of_row(const keel_dataset *d, keel_position *at)
{
    const keel_data_origin *o = keel_dataset_resolve(d, at)->origin;
    return o->applied && o->applied->by_index && o->applied->stage->read ? o : NULL;
}

const void *keel_dataset_row_in_memory(const keel_dataset *d, keel_position at, int field)
{
    d = keel_dataset_resolve(d, &at);
    const keel_data_origin *o = d->origin;
    if (o->applied || !o->source->tensor || keel_shape_is_open(&o->spec.field[field].shape))
        return NULL;
    const keel_tensor *t = o->source->tensor(o->state, field);
    if (!t || t->dtype != o->spec.field[field].dtype) return NULL;
    const size_t count = (size_t)keel_shape_count(&o->spec.field[field].shape);
    return (const char *)t->data + (size_t)at.index * count * keel_dtype_size(t->dtype);
}

/* A stage that makes a row of several is followed to the first of them. */
const keel_data_origin *keel_dataset_origin_at(const keel_dataset *d, keel_position *at)
{
    for (;;) {
        const keel_applied *s = d->origin->applied;
        if (s && !s->by_index) return d->origin;
        d = keel_dataset_resolve(d, at);
        s = d->origin->applied;
        if (!s || !s->by_index) return d->origin;
        *at = s->spec->batched && s->stage->batch_row ? s->stage->batch_row(s, *at, 0)
                                                      : keel_stage_into(s, 0, at);
        d = s->parent[0];
    }
}

void keel_dataset_expect(const keel_dataset *d, keel_position at)
{
    d = keel_dataset_resolve(d, &at);
    const keel_data_origin *o = d->origin;
    if (!o->applied && o->source->expect) o->source->expect(o->state, at.index);
}

static const keel_applied *made_of_row(const keel_data_origin *o)
{
    return o->applied && o->applied->by_index && o->applied->stage->rowwise ? o->applied : NULL;
}

bool keel_dataset_has_files(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    if (!s) return d->origin->source->soon != NULL;
    for (int i = 0; (s->stage->where || made_of_row(d->origin)) && i < s->n_parent; i++)
        if (keel_dataset_has_files(s->parent[i])) return true;
    return false;
}

void keel_dataset_soon(const keel_dataset *d, keel_position at)
{
    for (;;) {
        d = keel_dataset_resolve(d, &at);
        const keel_applied *s = made_of_row(d->origin);
        if (!s) break;
        at = keel_stage_into(s, 0, &at);
        d = s->parent[0];
    }
    const keel_data_origin *o = d->origin;
    if (!o->applied && o->source->soon) o->source->soon(o->state, at.index);
}

int64_t keel_dataset_length(const keel_dataset *d, int i, keel_position at)
{
    d = keel_dataset_resolve(d, &at);
    const keel_data_origin *o = d->origin;
    if (!o->applied) return o->source->length ? o->source->length(o->state, i, at.index) : 0;
    if (o->applied->stage->length) return o->applied->stage->length(o->applied, i, at);
    return keel_dataset_length(o->applied->parent[0], i, keel_stage_into(o->applied, 0, &at));
}

int64_t keel_dataset_longest(const keel_dataset *d, int i, int64_t *row)
{
    const keel_applied *s = d->origin->applied;
    int64_t longest = 0;
    if (s && (s->stage->where || s->stage->batch_row)) { /* what its parents have, or less */
        for (int k = 0; k < s->n_parent; k++) {
            int64_t at;
            const int64_t n = keel_dataset_longest(s->parent[k], i, &at);
            if (n < 0) return n;
            if (n <= longest) continue;
            longest = n;
            *row = at;
        }
        return longest;
    }
    if (s) {
        const int k = !s->stage->length       ? 0
                      : s->stage->length_from ? s->stage->length_from(s, &i)
                                              : -1;
        if (k >= 0) return keel_dataset_longest(s->parent[k], i, row);
    }
    if (d->origin->spec.endless) return -1;
    for (int64_t k = 0; k < d->rows; k++) {
        const int64_t n = keel_dataset_length(d, i, (keel_position){ .index = k });
        if (n <= longest) continue;
        longest = n;
        *row = k;
    }
    return longest;
}

const keel_applied *keel_stage_of_batch(const keel_dataset *d, keel_position *at)
{
    if (!d->origin->spec.batched || !d->origin->applied || !d->origin->applied->by_index)
        return NULL;
    d = keel_dataset_resolve(d, at);
    const keel_applied *s = d->origin->applied;
    return s && s->stage->batch_row ? s : NULL;
}

int64_t keel_stage_rows(const keel_dataset *d)
{
    int64_t sum = 0;
    enum { COUNTED = 1 << 24 }; /* of more, counting would take a while */
    if (!d->origin->applied || !d->origin->applied->by_index || d->rows > COUNTED) return -1;
    for (int64_t i = 0; i < d->rows; i++) {
        keel_position at = { .index = i };
        const keel_applied *s = keel_stage_of_batch(d, &at);
        if (!s || __builtin_add_overflow(sum, s->stage->batch_rows(s, at), &sum)) return -1;
    }
    return sum;
}
