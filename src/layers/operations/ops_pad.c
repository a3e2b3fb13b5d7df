/* A number around the places of a row, or the row itself in a mirror. */
#include "layers/operations/_values.h"
#include "ops/pad.h"

typedef struct args_t {
    keel_ints pad_width;
    int mode;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, pad_width, -2, NULL, 0, 1e9, "places before and behind each dim"),
    KEEL_CHOICE(args_t, mode, "\"constant\"", "constant|reflect|symmetric",
                "what the new places hold; reflect: not the outermost place again"),
    { 0 },
};

enum { REFLECT = 1, SYMMETRIC = 2 };

/* Puts `count` places of dim d, read backwards from `begin` on, into part[*n]. */
static keel_status mirrored(keel_emit *e, keel_value x, int d, int64_t begin, int64_t count,
                            keel_value *part, int *n)
{
    keel_slice_args op = keel_slice_all(keel_value_shape(e, x));
    if (count == 0) return KEEL_OK;
    op.begin[d] = begin;
    op.step[d] = -1;
    op.count[d] = count;
    return keel_emit_on(e, &keel_op_slice, &op, &x, 1, &part[(*n)++]);
}

static keel_status mirror(keel_emit *e, const keel_pad_args *pad)
{
    const args_t *a = e->args;
    const int again = a->mode == SYMMETRIC; /* the outermost place is there again */
    keel_value x = e->in[0], part[3];
    for (int d = 0; d < keel_value_shape(e, e->in[0])->rank; d++) {
        const keel_axis_args along = { .axis = d };
        const int64_t n = keel_value_shape(e, x)->dim[d];
        int parts = 0;
        if (pad->before[d] > n - 1 + again || pad->behind[d] > n - 1 + again)
            return keel_fail(KEEL_EARG, "pad_width: a dim of %lld has too few places to mirror",
                             (long long)n);
        KEEL_TRY(mirrored(e, x, d, pad->before[d] - again, pad->before[d], part, &parts));
        part[parts++] = x;
        KEEL_TRY(mirrored(e, x, d, n - 2 + again, pad->behind[d], part, &parts));
        if (parts > 1) KEEL_TRY(keel_emit_on(e, &keel_op_concatenate, &along, part, parts, &x));
    }
    e->out[0] = x;
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_operand value;
    keel_pad_args op = { 0 };
    KEEL_TRY(keel_operand_at(e, 1, "constant_values", &value));
    if (value.given && value.value >= 0)
        return keel_fail(KEEL_EUNSUP, "constant_values must be a number");
    if (a->pad_width.count != 2 * (rank + 1) || a->pad_width.at[0] || a->pad_width.at[1])
        return keel_fail(KEEL_EUNSUP, "pad_width: a pair for each of %d dims, (0, 0) for the batch",
                         rank + 1);
    op.value = value.given ? value.constant : 0;
    for (int d = 0; d < rank; d++) {
        op.before[d] = a->pad_width.at[2 * d + 2];
        op.behind[d] = a->pad_width.at[2 * d + 3];
    }
    if (a->mode != REFLECT && a->mode != SYMMETRIC) return keel_emit_unary(e, &keel_op_pad, &op);
    if (value.given) return keel_fail(KEEL_EARG, "constant_values go with the mode constant only");
    return mirror(e, &op);
}

KEEL_ARGS_OPERATION(ops_pad, "Pad", "numpy", 1, "A number around the places of a row.",
                    .whole = KEEL_WHOLE_KEPT)
