/* tf.data's map: a function of an element, by a callback of the program. */
#include "base/memory.h"
#include "data/sources/called.h"
#include "data/stage.h"
#include "data/window.h"
#include "keel/pipeline.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct map_args {
    keel_map m; /* its fields are not used after infer */
} map_args;

static const keel_map *map_of(const keel_applied *s)
{
    return &((const map_args *)s->args)->m;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const keel_map *m = map_of(s);
    if (m->sequential || spec->batched) s->by_index = false;
    if (!m->n_field) return KEEL_OK;
    spec->n_field = 0;
    KEEL_TRY(keel_spec_add_all(spec, m->n_field, m->field, m->name));
    if (keel_spec_is_open(spec) && !m->shapes)
        return keel_fail(KEEL_EARG, "%s: a field has open dims, but `shapes` is NULL", m->name);
    return KEEL_OK;
}

static bool is_random(const keel_applied *s)
{
    return map_of(s)->random || map_of(s)->sequential;
}

static bool is_sequential(const keel_applied *s)
{
    return map_of(s)->sequential;
}

/* The shapes of the result, those of rows or of batches. */
static keel_status shapes_of(const keel_applied *s, const keel_shape *in, keel_shape *out)
{
    const keel_map *m = map_of(s);
    const keel_data_spec *spec = s->spec;
    const int64_t rows = spec->batched ? in[0].dim[0] : 0;
    if (!m->n_field) {
        memcpy(out, in, (size_t)spec->n_field * sizeof *out);
        return KEEL_OK;
    }
    for (int i = 0; i < spec->n_field; i++) {
        out[i] = spec->field[i].shape;
        if (spec->batched) KEEL_TRY(keel_batch_shape(&out[i], &out[i], rows, spec->field[i].path));
    }
    if (!m->shapes) return KEEL_OK;
    const unsigned texts = keel_error_count();
    const keel_status got = m->shapes(m->context, in, out);
    if (got < 0) return keel_callback_failed(texts, got, "%s: shapes", m->name);
    for (int i = 0; i < spec->n_field; i++) {
        const keel_shape *want = &spec->field[i].shape;
        const int first = spec->batched ? 1 : 0;
        bool fits = out[i].rank == want->rank + first;
        for (int d = 0; fits && d < want->rank; d++)
            fits = out[i].dim[d + first] >= 0 &&
                   (want->dim[d] == KEEL_DIM_OPEN || want->dim[d] == out[i].dim[d + first]);
        char have[96], need[96];
        if (fits) continue;
        keel_shape_text(have, &out[i]);
        keel_shape_text(need, want);
        return keel_fail(KEEL_ESHAPE, "%s: shapes gave %s for '%s', which is %s", m->name, have,
                         spec->field[i].path, need);
    }
    return KEEL_OK;
}

static keel_status call(const keel_applied *s, const keel_position *at, const keel_tensor *in,
                        keel_tensor *out)
{
    const keel_map *m = map_of(s);
    const keel_chance c = keel_stage_chance(s, at);
    const keel_element_place place = { at->seed, at->pass, at->index, c.stream };
    const unsigned texts = keel_error_count();
    const keel_status got = m->call(m->context, in, out, &place);
    return got == KEEL_OK ? KEEL_OK : keel_callback_failed(texts, got, "%s:", m->name);
}

/* ---- by index -------------------------------------------------------------------------------- */

/* The parent's row, in scratch 0, one field after another. */
static keel_status read_parent(const keel_applied *s, keel_position at, keel_tensor *in,
                               keel_scratch *scratch)
{
    const keel_dataset *d = s->parent[0];
    const keel_data_spec *spec = &d->origin->spec;
    const keel_position there = keel_stage_into(s, 0, &at);
    size_t offset[KEEL_FIELDS_MAX], sum = 0;
    keel_dtype want[KEEL_FIELDS_MAX];
    int64_t count[KEEL_FIELDS_MAX];
    keel_row row = { .want = want, .count = count };
    for (int i = 0; i < spec->n_field; i++) {
        const size_t each = keel_dtype_size(spec->field[i].dtype);
        in[i].dtype = want[i] = spec->field[i].dtype;
        in[i].shape = spec->field[i].shape;
        if (keel_shape_is_open(&in[i].shape))
            in[i].shape = keel_shape_closed(&in[i].shape, keel_dataset_length(d, i, there));
        KEEL_TRY(keel_shape_check(&in[i].shape, each));
        count[i] = keel_shape_count(&in[i].shape);
        offset[i] = sum;
        if (__builtin_add_overflow(sum, ((size_t)count[i] * each + 63) / 64 * 64, &sum))
            return keel_fail(KEEL_ESHAPE, "a row is larger than the address space");
    }
    char *bytes = keel_scratch_reserve(scratch, 0, sum + 1);
    keel_scratch *inner = keel_scratch_inner(scratch);
    if (!bytes || !inner) return KEEL_ENOMEM;
    for (int i = 0; i < spec->n_field; i++) row.at[i] = in[i].data = bytes + offset[i];
    return keel_dataset_read(d, there, &row, inner);
}

/* Room for the result: the row itself where types agree, else scratch 1. */
static keel_status place_result(const keel_applied *s, const keel_row *row, keel_tensor *out,
                                keel_scratch *scratch)
{
    size_t sum = 0, offset[KEEL_FIELDS_MAX];
    for (int i = 0; i < s->spec->n_field; i++) {
        const size_t each = keel_dtype_size(out[i].dtype);
        KEEL_TRY(keel_shape_check(&out[i].shape, each));
        offset[i] = sum;
        if (row->at[i] && row->want[i] == out[i].dtype) continue;
        sum += ((size_t)keel_shape_count(&out[i].shape) * each + 63) / 64 * 64;
    }
    char *bytes = keel_scratch_reserve(scratch, 1, sum + 1);
    if (!bytes) return KEEL_ENOMEM;
    for (int i = 0; i < s->spec->n_field; i++)
        out[i].data = row->at[i] && row->want[i] == out[i].dtype ? row->at[i] : bytes + offset[i];
    return KEEL_OK;
}

static keel_status read(const keel_applied *s, keel_position at, const keel_row *row,
                        keel_scratch *scratch)
{
    keel_tensor in[KEEL_FIELDS_MAX], out[KEEL_FIELDS_MAX];
    keel_shape from[KEEL_FIELDS_MAX], to[KEEL_FIELDS_MAX];
    KEEL_TRY(read_parent(s, at, in, scratch));
    for (int i = 0; i < s->parent[0]->origin->spec.n_field; i++) from[i] = in[i].shape;
    KEEL_TRY(shapes_of(s, from, to));
    for (int i = 0; i < s->spec->n_field; i++)
        out[i] = (keel_tensor){ s->spec->field[i].dtype, to[i], NULL };
    KEEL_TRY(place_result(s, row, out, scratch));
    KEEL_TRY(call(s, &at, in, out));
    for (int i = 0; i < s->spec->n_field; i++) {
        if (!row->at[i]) continue;
        const int64_t n = keel_shape_count(&out[i].shape);
        const size_t each = keel_dtype_size(row->want[i]);
        if (out[i].data != row->at[i])
            KEEL_TRY(
                keel_field_write(row->at[i], row->want[i], out[i].data, &s->spec->field[i], n));
        if (n < row->count[i]) /* padded to the longest row of the batch */
            memset((char *)row->at[i] + (size_t)n * each, 0, (size_t)(row->count[i] - n) * each);
    }
    return KEEL_OK;
}

static int64_t length(const keel_applied *s, int i, keel_position at)
{
    const keel_dataset *d = s->parent[0];
    const keel_position there = keel_stage_into(s, 0, &at);
    keel_shape from[KEEL_FIELDS_MAX], to[KEEL_FIELDS_MAX];
    for (int k = 0; k < d->origin->spec.n_field; k++) {
        from[k] = d->origin->spec.field[k].shape;
        if (keel_shape_is_open(&from[k]))
            from[k] = keel_shape_closed(&from[k], keel_dataset_length(d, k, there));
    }
    if (shapes_of(s, from, to) < 0) return 0; /* reading the row fails, with the text */
    return to[i].rank ? to[i].dim[0] : 0;
}

static int length_from(const keel_applied *s, int *i)
{
    (void)i;
    return map_of(s)->n_field ? -1 : 0;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Texts that a callback passes on are in what it was given, or its own: the result gets copies. */
static keel_status keep_texts(keel_iter *it, keel_element **e)
{
    const void *data[KEEL_FIELDS_MAX];
    keel_shape shape[KEEL_FIELDS_MAX];
    keel_element *copy;
    bool texts = false;
    for (int i = 0; i < it->spec->n_field; i++) {
        texts |= it->spec->field[i].dtype == KEEL_STRING;
        data[i] = (*e)->field[i].data;
        shape[i] = (*e)->field[i].shape;
    }
    if (!texts) return KEEL_OK;
    KEEL_TRY(keel_element_copy(&copy, it->run->account, it->spec, data, shape));
    keel_element_release(*e);
    *e = copy;
    return KEEL_OK;
}

typedef struct map_iter {
    keel_window *window;
} map_iter;

static keel_status make(keel_iter *it, keel_position at, keel_element *e, keel_element **out,
                        keel_scratch *scratch)
{
    (void)scratch;
    const keel_applied *s = it->applied;
    const keel_data_spec *from = &s->parent[0]->origin->spec;
    keel_tensor in[KEEL_FIELDS_MAX], to[KEEL_FIELDS_MAX];
    keel_shape shape[KEEL_FIELDS_MAX], made[KEEL_FIELDS_MAX];
    keel_element *got;
    for (int i = 0; i < from->n_field; i++) {
        in[i] = (keel_tensor){ from->field[i].dtype, e->field[i].shape, e->field[i].data };
        shape[i] = e->field[i].shape;
    }
    KEEL_TRY(shapes_of(s, shape, made));
    KEEL_TRY(keel_element_create(&got, it->run->account, it->spec, made));
    for (int i = 0; i < it->spec->n_field; i++)
        to[i] = (keel_tensor){ it->spec->field[i].dtype, made[i], got->field[i].data };
    keel_status r = call(s, &at, in, to);
    if (r >= 0) r = keep_texts(it, &got);
    if (r < 0) {
        keel_element_release(got);
        return r;
    }
    got->place = e->place;
    *out = got;
    return KEEL_OK;
}

static keel_status begin(keel_iter *it)
{
    map_iter *w = it->own;
    KEEL_TRY(keel_iter_begin(it->parent[0], it->at.pass));
    return keel_window_create(&w->window, it, NULL, make, map_of(it->applied)->sequential);
}

static keel_status next(keel_iter *it, keel_element **out)
{
    return keel_window_next(((map_iter *)it->own)->window, out);
}

/* What failed is an element of this stage, or of one before it. */
static void pass(keel_iter *it)
{
    if (!keel_window_pass(((map_iter *)it->own)->window)) keel_iter_pass(it->parent[0]);
}

static void end(keel_iter *it)
{
    map_iter *w = it->own;
    keel_window_destroy(w->window);
    w->window = NULL;
}

static const char *label(const keel_applied *s)
{
    return map_of(s)->name;
}

static void release_args(void *args)
{
    map_args *a = args;
    if (a->m.release) a->m.release(a->m.context);
}

const keel_stage keel_stage_map = {
    .type = { .name = "map",
              .module = "keel.data",
              .help = "A function of each element; only from C, by keel_dataset_map.",
              .args_size = sizeof(map_args),
              .release = release_args },
    .n_parent = 1,
    .rowwise = true,
    .infer = infer,
    .is_random = is_random,
    .is_sequential = is_sequential,
    .read = read,
    .length = length,
    .length_from = length_from,
    .iter_size = sizeof(map_iter),
    .begin = begin,
    .next = next,
    .end = end,
    .pass = pass,
    .label = label,
};

double keel_element_uniform(const keel_element_place *at, uint32_t draw)
{
    uint32_t word[4];
    const keel_chance c = { at->seed, (uint32_t)(at->pass ^ at->pass >> 32), at->stage };
    keel_philox(word, &c, (uint64_t)at->index, draw / 4);
    return keel_uniform(word[draw % 4]);
}

keel_status keel_dataset_map(keel_dataset **out, keel_dataset *d, const keel_map *map)
{
    map_args a = { 0 };
    if (!out || !d || !map) return keel_fail(KEEL_EARG, "map: out, d and map must not be NULL");
    if (map->size < sizeof a.m) return keel_fail(KEEL_EARG, "map: size must be sizeof(keel_map)");
    a.m = *map;
    if (!a.m.name) a.m.name = "map";
    KEEL_TRY(keel_callback_check(a.m.name, a.m.call, a.m.n_field, a.m.field));
    a.m.release = NULL; /* after a failure the caller still owns the context */
    KEEL_TRY(keel_stage_apply_args(out, &keel_stage_map, &a, &d, 1));
    ((map_args *)(*out)->origin->applied->args)->m.release = map->release;
    return KEEL_OK;
}
