/* Each number against a list of numbers, the same for all rows. */
#ifndef KEEL_LAYERS_OPERATIONS_AGAINST_H
#define KEEL_LAYERS_OPERATIONS_AGAINST_H
#include "layers/operations/_values.h"

/* For each element of input 0 how many numbers of the list it compares so with, or whether there is
 * one (KEEL_REDUCE_MAX). *n: how many the list has; NULL: not asked. */
static inline keel_status emit_against(keel_emit *e, size_t place, const char *name,
                                       keel_comparison is, keel_reduce_to to, int64_t *n,
                                       keel_value *out)
{
    const json_t *list = keel_argument(e, place, name);
    const keel_shape in = keel_emit_in(e, 0)->shape;
    const keel_shape each = KEEL_SHAPE(keel_shape_count(&in), 1);
    keel_numbers_args numbers = { 0 };
    keel_value x, y;
    if (!list || json_object_get(list, KEEL_CALL_VALUE))
        return keel_fail(KEEL_EUNSUP,
                         "argument %s: numbers are supported, no value of the model: rows do not "
                         "see each other",
                         name);
    KEEL_TRY(keel_list_read(list, name, &numbers));
    numbers.shape = KEEL_SHAPE(1, keel_shape_count(&numbers.shape));
    if (n) *n = numbers.shape.dim[1];
    KEEL_TRY(keel_emit_on(e, &keel_op_numbers, &numbers, e->in, 1, &y));
    KEEL_TRY(keel_emit_view(e, &each, e->in[0], &x));
    KEEL_TRY(keel_emit_compared(e, is, x, y, &x));
    KEEL_TRY(keel_emit_reduced(e, to, x, 1, false, &x));
    return keel_emit_view(e, &in, x, out);
}

#endif
