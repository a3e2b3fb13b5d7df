/* Numbers at equal distances between two, along a new axis. */
#ifndef KEEL_LAYERS_OPERATIONS_SPACE_H
#define KEEL_LAYERS_OPERATIONS_SPACE_H
#include "layers/operations/_cast.h"
#include "layers/operations/_values.h"

typedef struct keel_space {
    int64_t num;
    bool endpoint;
    int64_t axis;
    double base; /* of logspace */
    char *dtype;
} keel_space;

#define KEEL_SPACE_FIELDS                                                                          \
    KEEL_INT(keel_space, num, "50", 1, KEEL_NUMBERS_MAX, "how many numbers"),                      \
        KEEL_BOOL(keel_space, endpoint, "true", "the last is the second operand"),                 \
        KEEL_INT(keel_space, axis, "0", -7, 7, "the new dim, the batch is 0"),                     \
        KEEL_STRING(keel_space, dtype, "null", "float32 or null")

/* x[0] + (x[1] - x[0]) i / (num - 1), along the new axis. */
static inline keel_status emit_space(keel_emit *e, keel_value x[2], keel_value *out)
{
    const keel_space *a = e->args;
    const double parts = a->endpoint && a->num > 1 ? (double)(a->num - 1) : (double)a->num;
    keel_numbers_args part = { 0 };
    keel_value y, at;
    int64_t place;
    KEEL_TRY(keel_float32_only(a->dtype, "Keras's backends make other whole numbers"));
    KEEL_TRY(keel_new_axis(e, a->axis, &place));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, x[1], x[0], &y));
    const keel_shape whole = keel_shape_with_one(*keel_value_shape(e, y), place);
    const keel_shape first = keel_shape_with_one(*keel_value_shape(e, x[0]), place);
    KEEL_TRY(keel_emit_view(e, &whole, y, &y));
    KEEL_TRY(keel_emit_view(e, &first, x[0], &x[0]));
    part.shape.rank = whole.rank;
    for (int d = 0; d < whole.rank; d++) part.shape.dim[d] = d == place ? a->num : 1;
    for (int64_t i = 0; i < a->num; i++) part.at[i] = (double)i / parts;
    KEEL_TRY(keel_emit_on(e, &keel_op_numbers, &part, e->in, 1, &at));
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, y, at, &y));
    return keel_emit_pair(e, &keel_op_plus, x[0], y, out);
}

#define KEEL_SPACE_OPERATION(stem, class_, help_)                                                  \
    const keel_layer keel_layer_##stem = {                                                         \
        .type = { KEEL_OPERATION_HEAD(class_, "numpy", help_), .args_size = sizeof(keel_space),    \
                  .fields = fields },                                                              \
        .min_inputs = 1,                                                                           \
        .max_inputs = 2,                                                                           \
        .operation = true,                                                                         \
        .emit = emit,                                                                              \
    };

#endif
