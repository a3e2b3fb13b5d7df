/* Rows that differ in length become rows of one length: shorter ones are padded, longer ones cut,
 * as by tf.RaggedTensor.to_tensor(shape=...) and by keras.utils.pad_sequences, which also does it
 * at the front. So ragged rows become dense ones before they are batched, by number too. */
#include "base/memory.h"
#include "data/iter.h"
#include "data/padding.h"
#include "data/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stddef.h>
#include <string.h>

typedef struct pad_args {
    int64_t length;
    char *field;
    json_t *value;
    int padding, truncating; /* PRE, POST */
} pad_args;

enum { PRE, POST };

typedef struct pad {
    bool of[KEEL_FIELDS_MAX]; /* fields that are padded */
    keel_padding value[KEEL_FIELDS_MAX];
} pad;

static bool is_meant(const pad_args *a, const keel_data_field *f)
{
    if (a->field) return !strcmp(f->path, a->field);
    return f->shape.rank > 0 && f->shape.dim[0] == KEEL_DIM_OPEN;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const pad_args *a = s->args;
    bool any = false;
    if (spec->batched)
        return keel_fail(KEEL_EUNSUP, "its elements are batches: put it before them");
    pad *p = s->made = keel_calloc(1, sizeof *p);
    if (!p) return KEEL_ENOMEM;
    for (int i = 0; i < spec->n_field; i++) {
        keel_data_field *f = &spec->field[i];
        if (!is_meant(a, f)) continue;
        if (!f->shape.rank) return keel_fail(KEEL_ESHAPE, "a row of '%s' is one number", f->path);
        any = p->of[i] = true;
        KEEL_TRY(keel_padding_read(&p->value[i], a->value, f));
        f->shape.dim[0] = a->length;
        if (keel_shape_is_open(&f->shape))
            return keel_fail(KEEL_EUNSUP, "rows of '%s' differ in more than their length", f->path);
    }
    if (any) return KEEL_OK;
    return a->field ? keel_fail(KEEL_EARG, "there is no field '%s'", a->field)
                    : keel_fail(KEEL_EARG, "no field has rows that differ in length");
}

static void release(keel_applied *s)
{
    keel_free(s->made);
}

/* Put n parts of a row, of `part` bytes each, into its place, and the value, of `each` bytes,
 * before or behind them. */
static void place(const pad_args *a, char *to, const char *from, int64_t n, size_t part,
                  const void *value, size_t each)
{
    const int64_t length = a->length, kept = n < length ? n : length;
    const size_t empty = (size_t)(length - kept) * part, full = (size_t)kept * part;
    char *free_at = a->padding == PRE ? to : to + full;
    if (full)
        memcpy(to + (a->padding == PRE ? empty : 0),
               from + (a->truncating == PRE ? (size_t)(n - kept) * part : 0), full);
    for (size_t done = 0; done < empty; done += each) memcpy(free_at + done, value, each);
}

/* ---- by index -------------------------------------------------------------------------------- */

/* The elements of one part of a row: the dims behind the first. */
static int64_t part_of(const keel_shape *s)
{
    return keel_shape_count(s) / s->dim[0];
}

static keel_status read(const keel_applied *s, keel_position at, const keel_row *row,
                        keel_scratch *scratch)
{
    const pad *p = s->made;
    const keel_dataset *d = s->parent[0];
    const keel_position there = keel_stage_into(s, 0, &at);
    const int n_field = s->spec->n_field;
    int64_t count[KEEL_FIELDS_MAX], length[KEEL_FIELDS_MAX];
    size_t offset[KEEL_FIELDS_MAX], sum = 0;
    keel_row own = *row;
    own.count = count;
    for (int i = 0; i < n_field; i++) {
        count[i] = row->count ? row->count[i] : 0;
        if (!p->of[i] || !row->at[i]) continue;
        keel_shape shape = d->origin->spec.field[i].shape;
        if (keel_shape_is_open(&shape))
            shape = keel_shape_closed(&shape, keel_dataset_length(d, i, there));
        const size_t each = keel_dtype_size(row->want[i]);
        KEEL_TRY(keel_shape_check(&shape, each));
        count[i] = keel_shape_count(&shape);
        length[i] = shape.dim[0];
        offset[i] = sum;
        if (__builtin_add_overflow(sum, ((size_t)count[i] * each + 63) / 64 * 64, &sum))
            return keel_fail(KEEL_ESHAPE, "a row is larger than the address space");
    }
    char *bytes = keel_scratch_reserve(scratch, 0, sum + 1);
    keel_scratch *inner = keel_scratch_inner(scratch);
    if (!bytes || !inner) return KEEL_ENOMEM;
    for (int i = 0; i < n_field; i++)
        if (p->of[i] && row->at[i]) own.at[i] = bytes + offset[i];
    KEEL_TRY(keel_dataset_read(d, there, &own, inner));
    for (int i = 0; i < n_field; i++) {
        const size_t each = keel_dtype_size(row->want[i]);
        keel_padding value;
        if (!p->of[i] || !row->at[i]) continue;
        KEEL_TRY(keel_field_write(&value, row->want[i], &p->value[i], &s->spec->field[i], 1));
        place(s->args, row->at[i], own.at[i], length[i],
              (size_t)part_of(&s->spec->field[i].shape) * each, &value, each);
    }
    return KEEL_OK;
}

/* ---- streams --------------------------------------------------------------------------------- */

typedef struct pad_iter {
    keel_element *in; /* kept where there was no memory for the result */
} pad_iter;

static keel_status next(keel_iter *it, keel_element **out)
{
    pad_iter *w = it->own;
    const pad *p = it->applied->made;
    keel_shape shape[KEEL_FIELDS_MAX];
    keel_element *e;
    if (!w->in) {
        const keel_status s = keel_iter_next(it->parent[0], &w->in);
        if (s != KEEL_OK) return s;
    }
    for (int i = 0; i < it->spec->n_field; i++)
        shape[i] = p->of[i] ? it->spec->field[i].shape : w->in->field[i].shape;
    KEEL_TRY(keel_element_create_zeroed(&e, it->run->account, it->spec, shape));
    for (int i = 0; i < it->spec->n_field; i++) {
        const size_t each = keel_dtype_size(it->spec->field[i].dtype);
        const size_t n = keel_element_bytes(w->in, it->spec, i);
        if (p->of[i])
            place(it->applied->args, e->field[i].data, w->in->field[i].data,
                  w->in->field[i].shape.dim[0], (size_t)part_of(&shape[i]) * each, &p->value[i],
                  each);
        else if (n)
            memcpy(e->field[i].data, w->in->field[i].data, n);
    }
    e->place = w->in->place;
    KEEL_TRY(keel_element_own_texts(&e, it->spec));
    keel_element_release(w->in);
    w->in = NULL;
    *out = e;
    return KEEL_OK;
}

static void end(keel_iter *it)
{
    pad_iter *w = it->own;
    keel_element_release(w->in);
    w->in = NULL;
}

#define T pad_args
static const keel_field fields[] = {
    KEEL_INT(T, length, NULL, 1, 1e12, "the first dim of every row"),
    KEEL_STRING(T, field, "null", "the field; null: all whose rows differ in length"),
    KEEL_EITHER(T, value, "null", "a number or a text to pad with; null: 0 or the empty text"),
    KEEL_CHOICE(T, padding, "\"post\"", "pre|post", "pad before or behind a row"),
    KEEL_CHOICE(T, truncating, "\"post\"", "pre|post", "cut off the begin or the end of a row"),
    { .key = NULL },
};

const keel_stage keel_stage_pad = {
    .type = { .name = "pad",
              .module = "keel.data",
              .help = "Rows that differ in length become rows of one length.",
              .args_size = sizeof(pad_args),
              .fields = fields },
    .n_parent = 1,
    .rowwise = true,
    .infer = infer,
    .read = read,
    .iter_size = sizeof(pad_iter),
    .next = next,
    .end = end,
    .release = release,
};
