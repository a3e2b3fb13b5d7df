/* Operations on two whole numbers. */
#ifndef KEEL_LAYERS_OPERATIONS_WHOLE_H
#define KEEL_LAYERS_OPERATIONS_WHOLE_H
#include "layers/operations/_values.h"
#include "ops/whole_numbers.h"

static inline keel_status emit_whole(keel_emit *e, keel_whole how, const char *first,
                                     const char *second)
{
    const keel_whole_args op = { .how = how };
    keel_value x[2];
    KEEL_TRY(keel_two_values(e, first, second, x));
    return keel_emit_on(e, &keel_op_whole_numbers, &op, x, 2, e->out);
}

#define KEEL_WHOLE_OPERATION(stem, class_, how_, first_, second_, help_)                           \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        return emit_whole(e, how_, first_, second_);                                               \
    }                                                                                              \
    KEEL_PLAIN_OPERATION(stem, class_, "numpy", 2, help_, .whole = KEEL_WHOLE_KEPT)

#endif
