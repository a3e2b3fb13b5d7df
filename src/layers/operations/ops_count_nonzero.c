/* How many are not 0. */
#include "layers/operations/_operation.h"
#include "ops/places.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "over which dims, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_compare_args differs = { .is = KEEL_NOT_EQUAL };
    keel_reduce_args sum = { .to = KEEL_REDUCE_SUM };
    keel_value x;
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &sum));
    KEEL_TRY(keel_emit_on(e, &keel_op_compare, &differs, e->in, 1, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &sum, &x, 1, e->out));
    const int64_t out = keel_shape_count(&keel_graph_spec(e->graph, e->out[0])->shape);
    const int64_t each = keel_shape_count(&keel_emit_in(e, 0)->shape) / out;
    if (each <= keel_places_most(e->graph->held)) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP,
                     "in %s up to %lld numbers cannot be counted: the count would be "
                     "rounded",
                     keel_dtype_name(e->graph->held), (long long)each);
}

KEEL_ARGS_OPERATION(ops_count_nonzero, "CountNonzero", "numpy", 1, "How many are not 0.")
