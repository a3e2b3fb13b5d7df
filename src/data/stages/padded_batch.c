/* tf.data's padded_batch: batches of rows that differ in shape, padded to given shapes or to the
 * largest row, with given values. `batch` pads with 0 to the largest row, too, and where rows are
 * read by number it stays so. */
#include "base/memory.h"
#include "data/collect.h"
#include "data/padding.h"
#include "data/stage.h"
#include "tensor/shape.h"

typedef struct padded_args {
    int64_t batch_size;
    json_t *padded_shapes, *padding_values;
    bool drop_remainder;
} padded_args;

typedef struct padded {
    keel_padding value[KEEL_FIELDS_MAX];
    const void *at[KEEL_FIELDS_MAX]; /* where each is */
} padded;

/* Read one shape: a list of numbers, or null, -1 for what the largest row has. */
static keel_status read_shape(keel_data_field *f, const json_t *list)
{
    if (!list || json_is_null(list)) return KEEL_OK;
    if (!json_is_array(list) || (int)json_array_size(list) != f->shape.rank)
        return keel_fail(KEEL_EARG, "the padded shape of '%s' must be a list of %d numbers",
                         f->path, f->shape.rank);
    for (int d = 0; d < f->shape.rank; d++) {
        const json_t *v = json_array_get(list, (size_t)d);
        const int64_t n = json_is_null(v) ? -1 : json_integer_value(v);
        if ((!json_is_integer(v) && !json_is_null(v)) || n < -1 || n == 0)
            return keel_fail(KEEL_EARG, "'%s': a padded dim is a number from 1 on, or -1 or null",
                             f->path);
        if (n < 0) continue;
        if (f->shape.dim[d] != KEEL_DIM_OPEN && n < f->shape.dim[d])
            return keel_fail(KEEL_ESHAPE, "'%s' has %lld in dim %d and cannot be padded to %lld",
                             f->path, (long long)f->shape.dim[d], d, (long long)n);
        f->shape.dim[d] = n;
    }
    return KEEL_OK;
}

/* The entry of field i in a list with one for each field. */
static keel_status entry(const json_t **out, const json_t *list, int i, int n, const char *name)
{
    *out = json_array_get(list, (size_t)i);
    if (!list || (int)json_array_size(list) == n) return KEEL_OK;
    return keel_fail(KEEL_EARG, "%s has %zu entries for %d fields", name, json_array_size(list), n);
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const padded_args *a = s->args;
    const json_t *shapes = a->padded_shapes, *values = a->padding_values, *v;
    if (spec->batched)
        return keel_fail(KEEL_EUNSUP, "its elements are batches already: unbatch them first");
    padded *p = s->made = keel_calloc(1, sizeof *p);
    if (!p) return KEEL_ENOMEM;
    const bool one_shape = spec->n_field == 1 && !json_is_array(json_array_get(shapes, 0));
    for (int i = 0; i < spec->n_field; i++) {
        v = shapes;
        if (!one_shape) KEEL_TRY(entry(&v, shapes, i, spec->n_field, "padded_shapes"));
        KEEL_TRY(read_shape(&spec->field[i], v));
        v = values;
        if (json_is_array(values)) KEEL_TRY(entry(&v, values, i, spec->n_field, "padding_values"));
        KEEL_TRY(keel_padding_read(&p->value[i], v, &spec->field[i]));
        p->at[i] = &p->value[i];
    }
    spec->batched = true;
    spec->max_rows = a->batch_size;
    spec->yields = -1;
    if (!spec->endless && spec->rows >= 0)
        spec->rows =
            spec->rows / a->batch_size + (!a->drop_remainder && spec->rows % a->batch_size != 0);
    return KEEL_OK;
}

static void release(keel_applied *s)
{
    keel_free(s->made);
}

typedef struct padded_iter {
    keel_collect rows;
    bool ended;
} padded_iter;

static keel_status next(keel_iter *it, keel_element **out)
{
    padded_iter *w = it->own;
    const padded_args *a = it->applied->args;
    const padded *p = it->applied->made;
    keel_shape shape[KEEL_FIELDS_MAX];
    while (!w->ended && w->rows.n < a->batch_size) {
        keel_element *e;
        const keel_status s = keel_iter_next(it->parent[0], &e);
        if (s < 0) return s;
        w->ended = s == KEEL_END;
        if (!w->ended) KEEL_TRY(keel_collect_add(&w->rows, e));
    }
    if (!w->rows.n || (a->drop_remainder && w->rows.n < a->batch_size)) return KEEL_END;
    for (int i = 0; i < it->spec->n_field; i++) shape[i] = it->spec->field[i].shape;
    return keel_collect_padded(&w->rows, it, shape, p->at, out);
}

/* Rows that make no batch are left out together, as in tf.data. */
static void pass(keel_iter *it)
{
    padded_iter *w = it->own;
    const padded_args *a = it->applied->args;
    if (w->ended || w->rows.n == a->batch_size)
        keel_collect_clear(&w->rows);
    else
        keel_iter_pass(it->parent[0]);
}

static int64_t holds(const keel_applied *s)
{
    return ((const padded_args *)s->args)->batch_size;
}

static void end(keel_iter *it)
{
    padded_iter *w = it->own;
    keel_collect_free(&w->rows);
    w->ended = false;
}

#define T padded_args
static const keel_field fields[] = {
    KEEL_INT(T, batch_size, NULL, 1, 1e9, "rows of a batch"),
    KEEL_LIST(T, padded_shapes, "null",
              "the shape of a row for each field, -1 for the largest; null: the largest"),
    KEEL_EITHER(
        T, padding_values, "null",
        "what is put behind a row: one for all fields, or a list of one for each; null: 0 or "
        "the empty text"),
    KEEL_BOOL(T, drop_remainder, "false", "leave out a short batch at the end"),
    { .key = NULL },
};

const keel_stage keel_stage_padded_batch = {
    .type = { .name = "padded_batch",
              .module = "keel.data",
              .help = "Batches of rows that are padded to one shape.",
              .args_size = sizeof(padded_args),
              .fields = fields },
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(padded_iter),
    .next = next,
    .end = end,
    .pass = pass,
    .release = release,
    .holds = holds,
};
