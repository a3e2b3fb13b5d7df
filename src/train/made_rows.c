/* See made_rows.h. */
#include "train/made_rows.h"
#include "base/memory.h"
#include <math.h>

/* Random numbers in [0, 1); labels are 0, which is valid for every model, and tokens 1, since
 * models mask 0. */
static keel_status make_field(keel_made_rows *c, const keel_spec *spec, keel_data_role role,
                              int64_t present, int *index)
{
    const int64_t n = keel_shape_count(&spec->shape);
    int64_t all, each;
    if (c->n_field == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EUNSUP, "a row has more than %d fields", KEEL_FIELDS_MAX);
    if (!keel_mul_i64(n, present, &each) || !keel_mul_i64(each, c->batches, &all) ||
        all > INT64_MAX / 16)
        return keel_fail(KEEL_ENOMEM, "%lld rows are larger than any memory", (long long)present);
    const int i = *index = c->n_field++;
    c->field[i] =
        (keel_data_field){ .path = "", .dtype = spec->dtype, .shape = spec->shape, .role = role };
    c->data[i] = keel_aligned_calloc((size_t)all, keel_dtype_size(spec->dtype));
    if (!c->data[i]) return KEEL_ENOMEM;
    c->batch.field[i] = c->data[i];
    c->batch_bytes[i] = each * (int64_t)keel_dtype_size(spec->dtype);
    const double token = 1;
    const bool tokens =
        role == KEEL_ROLE_INPUT && !keel_dtype_is_real(spec->dtype) && spec->dtype != KEEL_STRING;
    uint32_t state = (uint32_t)i + 1;
    for (int64_t k = 0; k < all; k++) {
        state = state * 1664525u + 1013904223u;
        const float value = (float)(state >> 8) / 16777216.0f;
        if (spec->dtype == KEEL_FLOAT32) ((float *)c->data[i])[k] = value;
        if (spec->dtype == KEEL_FLOAT64) ((double *)c->data[i])[k] = value;
        if (tokens)
            keel_convert((char *)c->data[i] + (size_t)k * keel_dtype_size(spec->dtype), spec->dtype,
                         &token, KEEL_FLOAT64, 1);
    }
    return KEEL_OK;
}

static double bytes_of(const keel_spec *spec)
{
    return (double)keel_shape_count(&spec->shape) * (double)keel_dtype_size(spec->dtype);
}

/* Of a row. */
static double row_bytes(const keel_model *m, const keel_pairing *p)
{
    double sum = 0;
    for (int i = 0; i < m->n_input; i++) sum += bytes_of(&p->input_spec[i]);
    for (int i = 0; i < m->n_output && i < KEEL_OUTPUTS_MAX; i++)
        if (p->target[i] >= 0) sum += bytes_of(&p->target_spec[i]);
    return sum;
}

keel_status keel_made_rows_make_many(keel_made_rows *c, const keel_model *m, int64_t rows,
                                     int64_t present, const keel_shape *inputs, int64_t bytes)
{
    keel_pairing *p = &c->pairing;
    *c = (keel_made_rows){ 0 };
    KEEL_TRY(keel_pairing_guess(p, m, inputs));
    const double batches = (double)bytes / fmax(row_bytes(m, p) * (double)present, 1);
    c->batches = (int)fmax(1, fmin(batches, KEEL_MADE_MOST));
    c->batch = (keel_batch){ .rows = rows, .end = rows };
    for (int i = 0; i < m->n_input; i++)
        KEEL_TRY(make_field(c, &p->input_spec[i], KEEL_ROLE_INPUT, present, &p->input[i]));
    for (int i = 0; i < m->n_output && i < KEEL_OUTPUTS_MAX; i++)
        if (p->target[i] >= 0)
            KEEL_TRY(make_field(c, &p->target_spec[i], KEEL_ROLE_TARGET, present, &p->target[i]));
    p->n_field = c->batch.n_field = c->n_field;
    c->batch.spec = c->field;
    return KEEL_OK;
}

keel_status keel_made_rows_make(keel_made_rows *c, const keel_model *m, int64_t rows,
                                int64_t present, const keel_shape *inputs)
{
    return keel_made_rows_make_many(c, m, rows, present, inputs, 0);
}

void keel_made_rows_next(keel_made_rows *x)
{
    x->at = (x->at + 1) % x->batches;
    for (int i = 0; i < x->n_field; i++)
        x->batch.field[i] = (char *)x->data[i] + x->at * x->batch_bytes[i];
}

keel_status keel_made_rows_check(const keel_graph *g)
{
    if (g->n_host == 0) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP, "steps cannot be measured: made-up rows have nothing to look up, "
                                  "and this model has look-up layers");
}

keel_status keel_made_rows_step(const keel_made_rows *x, keel_trainer *t, keel_tally *tally)
{
    const keel_status s = keel_train_step(t, &x->batch, 0, tally);
    return s == KEEL_ENUMERIC ? KEEL_OK : s;
}

void keel_made_rows_free(keel_made_rows *x)
{
    for (int i = 0; i < x->n_field; i++) keel_free(x->data[i]);
    *x = (keel_made_rows){ 0 };
}
