/* The fields of a batch: their types and sizes, which of them are labels and weights, and those
 * that are computed, by a look-up layer or from class weights. */
#include "base/memory.h"
#include "data/feed_impl.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <assert.h>
#include <string.h>

/* Choose the type of a field in a batch. */
static keel_status choose_type(const keel_feed *f, int i, keel_dtype *want)
{
    const keel_data_field *field = &f->spec->field[i];
    const bool is_weight = field->role == KEEL_ROLE_WEIGHT;
    *want = is_weight || keel_dtype_is_real(field->dtype) ? f->o.real : field->dtype;
    if (f->o.want) *want = f->o.want[i];
    if ((unsigned)*want >= KEEL_DTYPE_COUNT)
        return keel_fail(KEEL_EARG, "%s: unknown dtype for field '%s'",
                         keel_dataset_name(f->dataset), field->path);
    if ((field->dtype == KEEL_STRING) != (*want == KEEL_STRING) && !(f->o.unwanted >> i & 1))
        return keel_fail(KEEL_EUNSUP, "%s: field '%s' has %s, but %s is expected",
                         keel_dataset_name(f->dataset), field->path, keel_dtype_name(field->dtype),
                         keel_dtype_name(*want));
    if (is_weight && !keel_dtype_is_real(*want))
        return keel_fail(KEEL_EARG, "%s: weights ('%s') must be float32 or float64, not %s",
                         keel_dataset_name(f->dataset), field->path, keel_dtype_name(*want));
    return KEEL_OK;
}

/* Class weights are looked up by the labels of the only target. */
static keel_status find_labels(keel_feed *f)
{
    const char *name = keel_dataset_name(f->dataset);
    f->label = -1;
    if (!f->o.class_weight) return KEEL_OK;
    for (int i = 0; i < f->n_field; i++) {
        if (f->field[i].role != KEEL_ROLE_TARGET || !f->bytes[i]) continue;
        if (f->label >= 0)
            return keel_fail(KEEL_EARG,
                             "%s: class weights need a single target, but there are '%s' and '%s'; "
                             "give weights for each row",
                             name, f->field[f->label].path, f->field[i].path);
        f->label = i;
        if (f->field[i].dtype == KEEL_STRING)
            return keel_fail(KEEL_EARG,
                             "%s: class weights need numbers as labels, but '%s' has "
                             "texts",
                             name, f->field[i].path);
    }
    if (f->count[f->weight] > 1)
        return keel_fail(KEEL_EARG,
                         "%s: class weights cannot be multiplied into '%s', which has %lld "
                         "numbers for each row",
                         name, f->field[f->weight].path, (long long)f->count[f->weight]);
    if (f->label < 0 || !f->bytes[f->weight])
        return keel_fail(KEEL_EARG,
                         "%s: class weights need the labels and weights, but they are not read",
                         name);
    return KEEL_OK;
}

/* Append the fields that are computed from others. */
static keel_status add_made(keel_feed *f)
{
    const int n = f->o.n_made;
    if (!n) return KEEL_OK;
    if (n > KEEL_FIELDS_MAX - f->n_field)
        return keel_fail(KEEL_EUNSUP,
                         "%s: %d fields and %d computed from them; a row has at "
                         "most %d",
                         keel_dataset_name(f->dataset), f->n_field, n, KEEL_FIELDS_MAX);
    f->made = keel_calloc((size_t)n, sizeof *f->made);
    if (!f->made) return KEEL_ENOMEM;
    for (int i = 0; i < n; i++) {
        const keel_feed_made *made = &f->o.made[i];
        for (int k = 0; k < made->n_of; k++)
            assert(made->of[k] >= 0 && made->of[k] < f->n_field &&
                   (made->of[k] >= f->spec->n_field || !(f->o.unwanted >> made->of[k] & 1)));
        f->made[i] = *made;
        f->want[f->n_field] = made->dtype;
        f->field[f->n_field++] = (keel_data_field){ .path = f->field[made->of[0]].path,
                                                    .dtype = made->dtype,
                                                    .shape = made->shape,
                                                    .role = KEEL_ROLE_INPUT };
    }
    f->n_made = n;
    f->may_fail = true; /* a text may be missing in the vocabulary */
    return KEEL_OK;
}

static keel_status make(const keel_feed *f, const keel_slot *s, int64_t from, int64_t to,
                        keel_scratch *scratch, int64_t *failed)
{
    for (int64_t row = from; row < to; row++)
        for (int i = 0; i < f->n_made; i++) {
            const int at = f->spec->n_field + i, n_of = f->made[i].n_of;
            keel_tensor in[KEEL_HOST_INS_MAX];
            for (int k = 0; k < n_of; k++) {
                const int of = f->made[i].of[k];
                /* a field of the dataset may be in the user's array */
                const char *given = of < f->spec->n_field ? s->batch.field[of] : s->at[of];
                in[k] = (keel_tensor){ f->want[of], s->field[of].shape,
                                       (char *)given + (size_t)row * s->bytes[of] };
            }
            const keel_tensor out = { f->want[at], s->field[at].shape,
                                      s->at[at] + (size_t)row * s->bytes[at] };
            const keel_status r = f->made[i].op(f->made[i].args, in, n_of, &out, scratch);
            *failed = row;
            if (r < 0 && r != KEEL_ENOMEM) keel_fail_within(r, "field '%s'", f->field[at].path);
            if (r < 0) return r;
        }
    *failed = to;
    return KEEL_OK;
}

keel_status keel_feed_make(const keel_feed *f, const keel_slot *s, int64_t from, int64_t to,
                           keel_scratch *scratch, int64_t *failed)
{
    *failed = to;
    if (!f->n_made) return KEEL_OK;
    const keel_probe_mark m = keel_probe_rows(scratch->probe, keel_work_makes, to - from);
    const keel_status r = make(f, s, from, to, scratch, failed);
    keel_probe_leave(scratch->probe, m);
    return r;
}

/* The fields of a batch: those of the dataset, those computed from them, and weights if requested.
 */
keel_status keel_feed_choose_fields(keel_feed *f)
{
    static const keel_data_field weights = { .path = "sample_weight", .role = KEEL_ROLE_WEIGHT };
    f->n_field = f->spec->n_field;
    memcpy(f->field, f->spec->field, (size_t)f->n_field * sizeof *f->field);
    for (int i = 0; i < f->n_field; i++) {
        KEEL_TRY(choose_type(f, i, &f->want[i]));
        if (!(f->o.unwanted >> i & 1) &&
            !keel_convert_always_fits(f->want[i], f->spec->field[i].dtype))
            f->may_fail = true;
    }
    KEEL_TRY(add_made(f));
    f->weight = keel_spec_first(f->spec, KEEL_ROLE_WEIGHT);
    if (f->weight < 0 && (f->o.class_weight || f->o.wants_weight)) {
        if (f->n_field == KEEL_FIELDS_MAX)
            return keel_fail(KEEL_EARG, "%s: %d fields leave no room for weights",
                             keel_dataset_name(f->dataset), KEEL_FIELDS_MAX);
        f->weight = f->n_field;
        f->want[f->n_field] = f->o.real;
        f->field[f->n_field++] = weights;
    }
    for (int i = 0; i < f->n_field; i++) {
        f->field[i].dtype = f->want[i];
        if (i < f->spec->n_field && keel_shape_is_open(&f->spec->field[i].shape)) {
            f->field[i].shape = keel_shape_closed(&f->field[i].shape, 1);
            if (!(f->o.unwanted >> i & 1)) {
                f->open |= UINT64_C(1) << i;
                if (f->source->length) KEEL_TRY(keel_feed_find_longest(f, i));
            }
        }
        if (i >= f->spec->n_field && i < f->spec->n_field + f->n_made)
            f->field[i].shape = keel_feed_made_shape(f, i, f->field);
        f->count[i] = keel_shape_count(&f->field[i].shape);
        if (i < f->spec->n_field && f->o.unwanted >> i & 1) continue;
        int64_t bytes;
        if (!keel_mul_i64(f->count[i], (int64_t)keel_dtype_size(f->want[i]), &bytes) ||
            __builtin_add_overflow(f->row_bytes, bytes, &f->row_bytes))
            return keel_fail(KEEL_EARG, "%s: a row is larger than the address space",
                             keel_dataset_name(f->dataset));
        f->bytes[i] = (size_t)bytes;
    }
    return find_labels(f);
}

static double value_at(const void *data, keel_dtype type, int64_t i)
{
    double v = 0;
    keel_convert(&v, KEEL_FLOAT64, (const char *)data + (size_t)i * keel_dtype_size(type), type, 1);
    return v;
}

/* The label of row i: the target if it is one number, else the index of its largest element. */
static int64_t label_of(const keel_feed *f, const keel_slot *s, int64_t i)
{
    const int64_t n = s->count[f->label];
    const keel_dtype type = f->want[f->label];
    const void *y = (const char *)s->batch.field[f->label] + (size_t)i * s->bytes[f->label];
    int64_t best = 0;
    double most = value_at(y, type, 0);
    if (n == 1) return most >= 0 && most < 9e15 ? (int64_t)(most + 0.5) : -1;
    for (int64_t k = 1; k < n; k++) {
        const double v = value_at(y, type, k);
        if (v > most) {
            best = k;
            most = v;
        }
    }
    return best;
}

void keel_feed_finish(const keel_feed *f, keel_slot *s)
{
    keel_batch *b = &s->batch;
    const int at = f->weight;
    b->weight_sum = (double)(b->end - b->first);
    if (at < 0 || !f->bytes[at]) return;
    const bool wide = f->want[at] == KEEL_FLOAT64, given = at < f->spec->n_field;
    const void *from = given ? b->field[at] : NULL; /* may point into the user's array */
    double *w64 = (double *)(void *)s->at[at], sum = 0;
    float *w32 = (float *)(void *)s->at[at];
    const int64_t n = s->count[at]; /* elements of a row */
    for (int64_t i = b->first * n; i < b->end * n; i++) {
        double w = !from ? 1 : wide ? ((const double *)from)[i] : (double)((const float *)from)[i];
        if (f->o.class_weight) {
            const int64_t label = label_of(f, s, i);
            if (label >= 0 && label < f->o.class_weight_count) w *= f->o.class_weight[label];
        }
        if (wide)
            w64[i] = w;
        else
            w32[i] = (float)w;
        sum += wide ? w : (double)(float)w;
    }
    b->field[at] = s->at[at];
    b->weight_sum = sum / (double)n;
}
