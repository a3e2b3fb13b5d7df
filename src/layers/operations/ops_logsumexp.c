/* The logarithm of a sum of powers of e, all less their largest, unless that is an infinity. */
#include "layers/operations/_values.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    const keel_reduction *a = e->args;
    const keel_binary_args plain = { 0 };
    keel_reduce_args op = { .to = KEEL_REDUCE_MAX, .keepdims = true };
    keel_value x[2] = { e->in[0], -1 }, sum[2], none;
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &op));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &op, e->in, 1, &x[1]));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, x[1], x[1], &none));
    KEEL_TRY(keel_emit_no_number(e, none, &none));
    KEEL_TRY(keel_emit_choice(e, none, KEEL_OF_NUMBER(0), KEEL_OF_VALUE(x[1]), &x[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_subtract, &plain, x, 2, &x[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_exponential, NULL, &x[0], 1, &x[0]));
    op.keepdims = a->keepdims;
    op.to = KEEL_REDUCE_SUM;
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &op, &x[0], 1, &sum[0]));
    KEEL_TRY(keel_emit_on(e, &keel_op_log, NULL, &sum[0], 1, &sum[0]));
    /* the largest, once more, in the shape of the sum */
    KEEL_TRY(keel_emit_view(e, &keel_graph_spec(e->graph, sum[0])->shape, x[1], &sum[1]));
    return keel_emit_on(e, &keel_op_plus, &plain, sum, 2, e->out);
}

KEEL_REDUCTION_LAYER(ops_logsumexp, "Logsumexp", "math", "The logarithm of a sum of powers of e.")
