/* See shown.h. */
#include "train/shown.h"
#include "base/memory.h"
#include "train/step.h"
#include "train/together.h"
#include <string.h>

static int64_t bytes_of(const keel_tensor *t)
{
    return keel_shape_count(&t->shape) * (int64_t)keel_dtype_size(t->dtype);
}

/* Memory for so many rows of this type and shape, if it is not there yet. */
static keel_status make_room(keel_shown *x, int what, int k, const keel_data_field *row,
                             int64_t rows)
{
    keel_tensor *t = &x->of[what][k];
    if (row->shape.rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "'%s' has too many dims to be shown to a callback",
                         row->path);
    *t = (keel_tensor){ .dtype = row->dtype,
                        .shape = { .rank = row->shape.rank + 1, .dim = { rows } } };
    memcpy(t->shape.dim + 1, row->shape.dim, (size_t)row->shape.rank * sizeof *row->shape.dim);
    KEEL_TRY(keel_shape_check(&t->shape, keel_dtype_size(t->dtype)));
    if (bytes_of(t) > x->room[what][k]) {
        void *more = keel_grow(x->memory[what][k], (size_t)bytes_of(t), 1);
        if (!more) return KEEL_ENOMEM;
        x->memory[what][k] = more;
        x->room[what][k] = bytes_of(t);
    }
    t->data = x->memory[what][k];
    return KEEL_OK;
}

/* The field of a batch that has the targets or weights of output k; -1: none. */
static int field_of(const keel_pairing *p, const keel_batch *b, int what, int k)
{
    const int own = what == KEEL_SHOWN_TARGET ? p->target[k] : p->weight[k];
    if (own >= 0 || what == KEEL_SHOWN_TARGET) return own;
    for (int i = 0; i < b->n_field; i++)
        if (b->field[i] && b->spec[i].role == KEEL_ROLE_WEIGHT && !b->spec[i].target) return i;
    return -1;
}

/* The number of output k, or of its mask, in what can be read after a step; -1: it has none. */
static int output_of(const keel_scored *s, int what, int k)
{
    return what == KEEL_SHOWN_OUTPUT ? k : s->mask_at[k];
}

static keel_status describe_output(keel_shown *x, const keel_scored *s, int what, int k,
                                   int64_t rows)
{
    const int at = output_of(s, what, k);
    if (at < 0) return KEEL_OK;
    const keel_spec *spec = keel_graph_spec(s->program->graph, s->program->output[at]);
    const keel_data_field row = { .path = "an output", .dtype = spec->dtype, .shape = spec->shape };
    return make_room(x, what, k, &row, rows);
}

/* Of each tensor its type, shape and memory. */
static keel_status describe(keel_shown *x, const keel_scored *s, const keel_pairing *p,
                            const keel_batch *b)
{
    memset(x->of, 0, sizeof x->of);
    for (int k = 0; k < x->n; k++) {
        KEEL_TRY(describe_output(x, s, KEEL_SHOWN_OUTPUT, k, b->rows));
        KEEL_TRY(describe_output(x, s, KEEL_SHOWN_MASK, k, b->rows));
        for (int what = KEEL_SHOWN_TARGET; what < KEEL_SHOWN_COUNT; what++) {
            const int field = field_of(p, b, what, k);
            if (field >= 0) KEEL_TRY(make_room(x, what, k, &b->spec[field], b->rows));
        }
    }
    return KEEL_OK;
}

/* The rows of a field that this process has, in their places. */
static void copy_field(const keel_batch *b, int field, const keel_tensor *to)
{
    const int64_t row = b->rows ? bytes_of(to) / b->rows : 0;
    memcpy((char *)to->data + b->first * row, (const char *)b->field[field] + b->first * row,
           (size_t)((b->end - b->first) * row));
}

keel_status keel_shown_take(keel_shown *x, const keel_trainer *t, bool training,
                            const keel_batch *b)
{
    const keel_scored *s = training ? &t->train : &t->test;
    const keel_pairing *p = training ? &t->trained.pairing : &t->tested.pairing;
    if (!x->n) return KEEL_OK;
    KEEL_TRY(keel_together_same(t->strategy, describe(x, s, p, b), (uint64_t)x->n));
    for (int what = 0; what < KEEL_SHOWN_COUNT; what++) {
        for (int k = 0; k < x->n; k++) {
            const keel_tensor *to = &x->of[what][k];
            if (!to->data) continue;
            if (what < KEEL_SHOWN_TARGET)
                keel_trainer_output(t, s, output_of(s, what, k), to->data);
            else
                copy_field(b, field_of(p, b, what, k), to);
            KEEL_TRY(keel_together_rows(t->strategy, b->rows, to->data,
                                        b->rows ? bytes_of(to) / b->rows : 0));
        }
    }
    return KEEL_OK;
}

void keel_shown_free(keel_shown *x)
{
    for (int what = 0; what < KEEL_SHOWN_COUNT; what++)
        for (int k = 0; k < KEEL_OUTPUTS_MAX; k++) keel_free(x->memory[what][k]);
    *x = (keel_shown){ 0 };
}
