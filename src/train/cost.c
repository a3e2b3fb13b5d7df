/* Measures the cost of reproducible steps; see keel_plan_measure in keel/train.h. Steps on made-up
 * rows alternate with and without shards, so that other load on the machine slows both. */
#include "base/clock.h"
#include "base/memory.h"
#include "data/source.h"
#include "train/step.h"
#include <stdlib.h>

enum { WARM = 2, LEAST = 3, MOST = 25 };
#define ENOUGH_SECONDS 2.0

typedef struct side {
    keel_strategy strategy; /* own lanes, the caller's team */
    keel_trainer *trainer;
    keel_tally tally; /* of steps that nobody asks for */
    double took[MOST];
} side;

typedef struct cost {
    keel_pairing pairing;
    int n_field;
    keel_data_field field[KEEL_FIELDS_MAX];
    void *data[KEEL_FIELDS_MAX];
    keel_batch batch;
    side side[2]; /* with shards, without shards */
} cost;

/* Random numbers in [0, 1); labels are 0, which is valid for every model, and tokens 1, since
 * models mask 0. */
static keel_status make_field(cost *c, const keel_spec *spec, keel_data_role role, int *index)
{
    const int64_t n = keel_shape_count(&spec->shape);
    int64_t all;
    if (c->n_field == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EUNSUP, "a row has more than %d fields", KEEL_FIELDS_MAX);
    if (!keel_mul_i64(n, c->batch.rows, &all) || all > INT64_MAX / 16) return KEEL_ENOMEM;
    const int i = *index = c->n_field++;
    c->field[i] =
        (keel_data_field){ .path = "", .dtype = spec->dtype, .shape = spec->shape, .role = role };
    c->data[i] = keel_aligned_calloc((size_t)all, keel_dtype_size(spec->dtype));
    if (!c->data[i]) return KEEL_ENOMEM;
    c->batch.field[i] = c->data[i];
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

static keel_status make_batch(cost *c, const keel_model *m, int64_t rows, const keel_shape *inputs)
{
    keel_pairing *p = &c->pairing;
    KEEL_TRY(keel_pairing_guess(p, m, inputs));
    c->batch = (keel_batch){ .rows = rows, .end = rows };
    for (int i = 0; i < m->n_input; i++)
        KEEL_TRY(make_field(c, &p->input_spec[i], KEEL_ROLE_INPUT, &p->input[i]));
    for (int i = 0; i < m->n_output && i < KEEL_OUTPUTS_MAX; i++)
        if (p->target[i] >= 0)
            KEEL_TRY(make_field(c, &p->target_spec[i], KEEL_ROLE_TARGET, &p->target[i]));
    p->n_field = c->batch.n_field = c->n_field;
    c->batch.spec = c->field;
    return KEEL_OK;
}

static keel_status step(const cost *c, side *s, double *seconds)
{
    const double begin = keel_seconds();
    KEEL_TRY(keel_train_step(s->trainer, &c->batch, 0, &s->tally));
    *seconds = keel_seconds() - begin;
    return KEEL_OK;
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static keel_status run(cost *c, double median[2])
{
    const double begin = keel_seconds();
    double ignored;
    int n = 0;
    for (int i = 0; i < WARM; i++)
        for (int k = 0; k < 2; k++) KEEL_TRY(step(c, &c->side[k], &ignored));
    for (; n < LEAST || (n < MOST && keel_seconds() - begin < ENOUGH_SECONDS); n++)
        for (int k = 0; k < 2; k++) KEEL_TRY(step(c, &c->side[k], &c->side[k].took[n]));
    for (int k = 0; k < 2; k++) {
        qsort(c->side[k].took, (size_t)n, sizeof(double), by_time);
        median[k] = c->side[k].took[n / 2];
    }
    return KEEL_OK;
}

static keel_status measure(cost *c, keel_model *m, const keel_strategy *s, int64_t rows,
                           const keel_shape *inputs, double median[2])
{
    const keel_trainer_options options = { 0 };
    KEEL_TRY(make_batch(c, m, rows, inputs));
    for (int k = 0; k < 2; k++) {
        side *x = &c->side[k];
        const keel_trainer_work train = { &c->pairing, rows }, none = { 0 };
        x->strategy = *s;
        if (k == 1) x->strategy.lanes.shards = 0;
        KEEL_TRY(keel_trainer_create(&x->trainer, m, &x->strategy, &train, &none, &options));
        KEEL_TRY(keel_trainer_prepare(&x->trainer->train, &rows, 1));
        KEEL_TRY(keel_tally_create(&x->tally, &x->trainer->train));
    }
    return run(c, median);
}

keel_status keel_plan_measure(keel_plan *p, keel_model *m, keel_strategy *s,
                              const keel_shape *inputs)
{
    double median[2] = { 0 };
    keel_status status = KEEL_ENOMEM;
    const int64_t rows =
        p->steps * p->batch_size > p->rows && p->rows < p->batch_size ? p->rows : p->batch_size;
    if (!s->lanes.shards) return keel_fail(KEEL_EARG, "the strategy is not reproducible");
    cost *c = keel_calloc(1, sizeof *c);
    if (!c) return status;
    const keel_row_states kept = m->row_states; /* as they were, after the made-up rows, too */
    m->row_states = (keel_row_states){ 0 };
    keel_team_enter(s->team);
    status = measure(c, m, s, rows, inputs, median);
    keel_team_leave(s->team);
    for (int k = 0; k < 2; k++) {
        keel_tally_free(&c->side[k].tally);
        keel_trainer_destroy(c->side[k].trainer);
    }
    keel_row_states_free(&m->row_states);
    m->row_states = kept;
    for (int i = 0; i < c->n_field; i++) keel_free(c->data[i]);
    keel_free(c);
    if (status < 0) return status;
    p->reproducible_seconds = median[0];
    p->plain_seconds = median[1];
    return KEEL_OK;
}
