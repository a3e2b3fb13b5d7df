/* Datasets that stages make. Rows by index go down the chain of stages to a source: stages that
 * only choose rows change the place, those that compute have a `read` of their own. */
#include "data/stage.h"
#include "base/memory.h"
#include "data/flow.h"
#include "data/trail.h"
#include "tensor/dtype.h"
#include "data/work.h"
#include "tensor/shape.h"
#include <stdlib.h>
#include <string.h>

/* ---- rows by index --------------------------------------------------------------------------- */

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

/* The parent's element that an element of a choosing stage is. */
static const keel_dataset *down(const keel_applied *s, keel_position *at)
{
    const keel_position here = *at;
    const int k = s->stage->where(s, at);
    at->stages = keel_stage_into(s, k, &here).stages;
    return s->parent[k];
}

/* Follow a place through stages that only choose rows. */
static const keel_dataset *resolve(const keel_dataset *d, keel_position *at)
{
    for (;;) {
        const keel_applied *s = d->origin->applied;
        at->index = keel_dataset_index(d, at->index);
        if (!s || !s->stage->where) return d;
        d = down(s, at);
    }
}

keel_status keel_dataset_read(const keel_dataset *d, keel_position at, const keel_row *row,
                              keel_scratch *scratch)
{
    d = resolve(d, &at);
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

const void *keel_dataset_row_in_memory(const keel_dataset *d, keel_position at, int field)
{
    d = resolve(d, &at);
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
        d = resolve(d, at);
        s = d->origin->applied;
        if (!s || !s->by_index) return d->origin;
        *at = s->spec->batched && s->stage->batch_row ? s->stage->batch_row(s, *at, 0)
                                                      : keel_stage_into(s, 0, at);
        d = s->parent[0];
    }
}

void keel_dataset_expect(const keel_dataset *d, keel_position at)
{
    d = resolve(d, &at);
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
        d = resolve(d, &at);
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
    d = resolve(d, &at);
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
    d = resolve(d, at);
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

const char *keel_stage_random(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    if (!s || s->stage->one_pass) return NULL;
    if (s->stage->is_random && s->stage->is_random(s)) return s->stage->type.name;
    for (int i = 0; i < s->n_parent; i++) {
        const char *name = keel_stage_random(s->parent[i]);
        if (name) return name;
    }
    return NULL;
}

bool keel_stage_draws(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    bool any = s && (s->stage->draws || (s->stage->is_random && s->stage->is_random(s)));
    for (int i = 0; s && i < s->n_parent; i++) any |= keel_stage_draws(s->parent[i]);
    return any;
}

bool keel_stage_may_pass(keel_status s)
{
    return s == KEEL_EIO || s == KEEL_EFORMAT || s == KEEL_EDATA || s == KEEL_ESHAPE ||
           s == KEEL_ECALLBACK || s == KEEL_ENUMERIC;
}

void keel_stage_describe(const keel_dataset *d, keel_text *t)
{
    const keel_applied *s = d->origin->applied;
    if (!s) return;
    if (s->stage->ahead) { /* its elements are those of its parent */
        keel_stage_describe(s->parent[0], t);
        return;
    }
    json_t *args = s->stage->type.fields ? keel_fields_json(&s->stage->type, s->args) : NULL;
    char *text = args ? json_dumps(args, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    keel_text_add(t, "%s(%s", s->stage->type.name, text ? text : "");
    free(text);
    json_decref(args);
    for (int i = 0; i < s->n_parent; i++) {
        keel_text_add(t, ",");
        keel_stage_describe(s->parent[i], t);
    }
    keel_text_add(t, ")");
}

static void find_note(const keel_dataset *d, char *text, size_t size)
{
    const keel_applied *s = d->origin->applied;
    for (int i = 0; s && i < s->n_parent && !*text; i++) find_note(s->parent[i], text, size);
    if (s && !*text && s->stage->note) s->stage->note(s, text, size);
}

void keel_stage_note(const keel_dataset *d, char *text, size_t size)
{
    *text = 0;
    find_note(d, text, size);
}

/* ---- as a source, for whoever asks for rows without a run ------------------------------------ */

/* The dataset to read an element from, of a batch its first row; NULL: the stage reads it. */
static const keel_dataset *first_row(const keel_applied *s, keel_position *at)
{
    const keel_dataset *d = s->stage->where ? down(s, at) : NULL;
    if (!s->spec->batched) return d;
    if (d) s = keel_stage_of_batch(d, at);
    *at = s->stage->batch_row(s, *at, 0);
    return s->parent[0];
}

static keel_status read_first_pass(const void *state, int64_t index, const keel_row *row,
                                   keel_scratch *scratch)
{
    const keel_applied *s = state;
    keel_position at = { .index = index };
    const keel_dataset *d = first_row(s, &at);
    return d ? keel_dataset_read(d, at, row, scratch) : s->stage->read(s, at, row, scratch);
}

static int64_t length_first_pass(const void *state, int i, int64_t index)
{
    const keel_applied *s = state;
    keel_position at = { .index = index };
    if (s->stage->length) return s->stage->length(s, i, at);
    const keel_dataset *d = first_row(s, &at);
    return keel_dataset_length(d ? d : s->parent[0], i, at);
}

static const char *row_name(const void *state, int64_t index)
{
    const keel_applied *s = state;
    keel_position at = { .index = index };
    const keel_dataset *d = first_row(s, &at);
    d = resolve(d ? d : s->parent[0], &at);
    const keel_source *source = d->origin->source;
    return source->row_name ? source->row_name(d->origin->state, at.index) : NULL;
}

static void close_applied(void *state)
{
    keel_applied *s = state;
    if (s->made && s->stage->release) s->stage->release(s);
    if (s->args) keel_fields_free(&s->stage->type, s->args);
    keel_free(s->args);
    for (int i = 0; s->parent && i < s->n_parent; i++) keel_dataset_destroy(s->parent[i]);
    keel_free(s->parent);
    keel_free(s);
}

static const keel_source rows_source = {
    .name = "stage",
    .read = read_first_pass,
    .row_name = row_name,
    .close = close_applied,
};

static const keel_source ragged_source = {
    .name = "stage",
    .read = read_first_pass,
    .length = length_first_pass,
    .row_name = row_name,
    .close = close_applied,
};

/* Rows by index, of fixed shape, that are only copied. */
static const keel_source memory_source = {
    .name = "stage",
    .in_memory = true,
    .read = read_first_pass,
    .row_name = row_name,
    .close = close_applied,
};

static const keel_source stream_source = {
    .name = "stage",
    .begin = keel_flow_begin,
    .next = keel_flow_next,
    .next_shaped = keel_flow_next_shaped,
    .close = close_applied,
};

/* ---- making ---------------------------------------------------------------------------------- */

const keel_stage *keel_stage_find(const char *name)
{
    const keel_stage *stage;
    for (int i = 0; (stage = keel_stage_at(i)); i++)
        if (!strcmp(stage->type.name, name)) return stage;
    return NULL;
}

const keel_stage *keel_stage_at(int i)
{
    int n = 0;
    while (keel_stages[n]) n++;
    return i < n ? keel_stages[i] : keel_layer_stage(i - n);
}

static bool only_copies(const keel_applied *s)
{
    bool all = s->stage->where != NULL;
    for (int i = 0; i < s->n_parent; i++) all &= s->parent[i]->origin->source->in_memory;
    return all;
}

/* Rows of a batched dataset are found through the stage that makes the batches, so the dataset
 * itself has no row to read. */
static const keel_source *source_of(const keel_applied *s, const keel_data_spec *spec)
{
    if (!s->by_index) return &stream_source;
    if (keel_spec_is_open(spec)) return &ragged_source;
    return only_copies(s) ? &memory_source : &rows_source;
}

/* A name that tells the chain: "photos.shuffle.take". */
static char *name_of(const keel_applied *s)
{
    const char *from = keel_dataset_name(s->parent[0]), *stage = s->stage->type.name;
    const size_t n = strlen(from), m = strlen(stage);
    char *name = keel_calloc(1, n + m + 2);
    if (!name) return NULL;
    memcpy(name, from, n);
    name[n] = '.';
    memcpy(name + n + 1, stage, m);
    return name;
}

static keel_status take_parents(keel_applied *s, keel_dataset *const *parent, int n)
{
    s->by_index = !s->stage->no_index;
    if (!(s->parent = keel_calloc((size_t)n, sizeof(keel_dataset *)))) return KEEL_ENOMEM;
    for (s->n_parent = 0; s->n_parent < n; s->n_parent++) {
        const keel_dataset *d = parent[s->n_parent];
        s->by_index &=
            d->origin->applied ? d->origin->applied->by_index : d->origin->source->read != NULL;
        if (d->origin->applied && d->origin->applied->stage->ahead)
            return keel_fail(KEEL_EARG,
                             "behind %s: it must be the last stage; leave it out, since every "
                             "pipeline reads ahead by itself",
                             d->origin->applied->stage->type.name);
        if (!(s->parent[s->n_parent] = keel_dataset_share(d))) return KEEL_ENOMEM;
        s->number += d->origin->applied ? d->origin->applied->number : 0;
        s->revived |= d->origin->applied && d->origin->applied->revived;
        s->drawn_once |= d->origin->applied && d->origin->applied->drawn_once;
    }
    if (++s->number > KEEL_STAGES_MAX)
        return keel_fail(KEEL_EARG, "a pipeline has at most %d stages", KEEL_STAGES_MAX);
    return KEEL_OK;
}

keel_status keel_spec_copy_classes(keel_data_spec *spec)
{
    char **from = spec->class_names;
    const int64_t n = spec->n_classes;
    spec->class_names = NULL;
    if (!from || !n) return KEEL_OK;
    if (!(spec->class_names = keel_calloc((size_t)n, sizeof *from))) return KEEL_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        if (!(spec->class_names[i] = keel_strdup(from[i]))) return KEEL_ENOMEM;
    return KEEL_OK;
}

void keel_spec_free_classes(keel_data_spec *spec)
{
    for (int64_t i = 0; spec->class_names && i < spec->n_classes; i++)
        keel_free(spec->class_names[i]);
    keel_free(spec->class_names);
}

keel_data_spec keel_stage_spec(const keel_dataset *d)
{
    keel_data_spec spec = d->origin->spec;
    if (d->rows >= 0) spec.rows = d->rows;
    if (!d->origin->source->read && !spec.by_row) {
        spec.batched = true;
        spec.rows = spec.yields;
    }
    return spec;
}

keel_status keel_stage_check_same(const keel_data_spec *a, const keel_data_spec *b,
                                  const keel_dataset *d)
{
    const char *name = keel_dataset_name(d);
    if (a->n_field != b->n_field)
        return keel_fail(KEEL_ESHAPE, "%s has %d fields, and the first dataset %d", name,
                         b->n_field, a->n_field);
    if (a->batched != b->batched)
        return keel_fail(KEEL_ESHAPE, "%s has %s, and the first dataset %s", name,
                         b->batched ? "batches" : "rows", a->batched ? "batches" : "rows");
    for (int i = 0; i < a->n_field; i++) {
        const keel_data_field *p = &a->field[i], *q = &b->field[i];
        char left[96], right[96];
        if (strcmp(p->path, q->path) || p->role != q->role || p->dtype != q->dtype)
            return keel_fail(KEEL_ESHAPE,
                             "%s: field %d is '%s', and in the first dataset '%s', or "
                             "they differ in role or type",
                             name, i, q->path, p->path);
        if (keel_shape_equal(&p->shape, &q->shape)) continue;
        keel_shape_text(left, &p->shape);
        keel_shape_text(right, &q->shape);
        return keel_fail(KEEL_ESHAPE, "%s: '%s' is %s, and in the first dataset %s", name, q->path,
                         right, left);
    }
    return KEEL_OK;
}

/* What a stream tells the feed of its yields. */
static void shape_stream(const keel_applied *s, keel_data_spec *spec)
{
    spec->shaped = keel_spec_is_open(spec);
    spec->by_row = !spec->batched;
    spec->by_pass = !s->stage->is_sequential || !s->stage->is_sequential(s);
    for (int i = 0; i < s->n_parent; i++) {
        const keel_data_origin *o = s->parent[i]->origin;
        spec->by_pass &= o->spec.by_pass || o->source->read;
    }
    if (!spec->batched) spec->max_rows = 1;
    if (spec->endless) spec->rows = -1;
    if (spec->batched) {
        spec->yields = spec->rows;
        spec->rows = -1;
    }
}

static keel_status check_parents(const keel_stage *stage, keel_dataset *const *parent, int n)
{
    const char *name = stage->type.name;
    if (stage->n_parent == -1 ? n < 2 : stage->n_parent >= 0 && n != stage->n_parent)
        return keel_fail(KEEL_EARG, "%s: takes %s, not %d", name,
                         stage->n_parent < 0 ? "two datasets or more" : "one dataset", n);
    if (n > KEEL_PARENTS_MAX)
        return keel_fail(KEEL_EARG, "%s: takes at most %d datasets", name, KEEL_PARENTS_MAX);
    for (int i = 0; i < n; i++)
        if (!parent[i]) return keel_fail(KEEL_EARG, "%s: dataset %d is NULL", name, i);
    return KEEL_OK;
}

/* Takes s, with its args. */
static keel_status finish(keel_dataset **out, keel_applied *s, keel_dataset *const *parent, int n)
{
    keel_data_spec spec = { 0 };
    char *name = NULL;
    keel_status r = take_parents(s, parent, n);
    if (r < 0) goto fail;
    spec = keel_stage_spec(parent[0]);
    if ((r = keel_spec_copy_classes(&spec)) < 0) goto fail;
    if (s->stage->infer && (r = s->stage->infer(s, &spec)) < 0) {
        keel_fail_within(r, "%s: %s", keel_dataset_name(parent[0]), s->stage->type.name);
        goto fail;
    }
    if (!s->by_index) shape_stream(s, &spec);
    r = KEEL_ENOMEM;
    if (!(name = name_of(s))) goto fail;
    r = keel_dataset_create(out, source_of(s, &spec), s, &spec, name);
    keel_free(name);
    if (r < 0) return r;
    s->spec = &(*out)->origin->spec;
    s->options = NULL;
    (*out)->origin->applied = s;
    return KEEL_OK;
fail:
    keel_spec_free_classes(&spec);
    close_applied(s);
    return r;
}

keel_status keel_stage_apply(keel_dataset **out, const keel_stage *stage, const json_t *config,
                             keel_dataset *const *parent, int n_parent)
{
    return keel_stage_apply_with(out, stage, config, parent, n_parent, NULL);
}

keel_status keel_stage_apply_with(keel_dataset **out, const keel_stage *stage, const json_t *config,
                                  keel_dataset *const *parent, int n_parent,
                                  const keel_dataset_options *options)
{
    KEEL_TRY(check_parents(stage, parent, n_parent));
    if (!stage->type.fields && stage->type.args_size)
        return keel_fail(KEEL_EARG, "%s needs a function in C: see keel_dataset_%s",
                         stage->type.name, stage->type.name);
    keel_applied *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    s->stage = stage;
    keel_status r = KEEL_ENOMEM;
    void *args = keel_calloc(1, stage->type.args_size + 1);
    if (args) r = keel_fields_read(&stage->type, config, args);
    if (r < 0) {
        keel_free(args);
        keel_free(s);
        return r;
    }
    s->args = args;
    s->options = options;
    return finish(out, s, parent, n_parent);
}

keel_status keel_stage_apply_args(keel_dataset **out, const keel_stage *stage, const void *args,
                                  keel_dataset *const *parent, int n_parent)
{
    keel_applied *s = NULL;
    keel_status r = check_parents(stage, parent, n_parent);
    if (r >= 0 && !(s = keel_calloc(1, sizeof *s))) r = KEEL_ENOMEM;
    if (r >= 0 && !(s->args = keel_calloc(1, stage->type.args_size + 1))) r = KEEL_ENOMEM;
    if (r < 0) {
        keel_free(s);
        return r;
    }
    s->stage = stage;
    memcpy(s->args, args, stage->type.args_size);
    return finish(out, s, parent, n_parent);
}
