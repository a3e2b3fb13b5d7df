/* The number below which a part q of the numbers over some dims is: quantiles, medians. */
#ifndef KEEL_LAYERS_OPERATIONS_QUANTILE_H
#define KEEL_LAYERS_OPERATIONS_QUANTILE_H
#include "layers/operations/_values.h"

typedef enum keel_between { /* what it is where q is between two places */
                            KEEL_BETWEEN_LINEAR,
                            KEEL_BETWEEN_LOWER,
                            KEEL_BETWEEN_HIGHER,
                            KEEL_BETWEEN_MIDPOINT,
                            KEEL_BETWEEN_NEAREST
} keel_between;

typedef struct keel_quantile {
    keel_ints axis;
    int method; /* a keel_between */
    bool keepdims;
} keel_quantile;

#define KEEL_QUANTILE_FIELDS                                                                       \
    KEEL_INTS(keel_quantile, axis, -1, "null", -7, 7, "over which dims, the batch is 0"),          \
        KEEL_CHOICE(keel_quantile, method, "\"linear\"", "linear|lower|higher|midpoint|nearest",   \
                    "between two places"),                                                         \
        KEEL_BOOL(keel_quantile, keepdims, "false", "keep them as dims of 1")

/* Of input 0. `skips`: numbers only; else NaN among them makes it NaN. */
keel_status keel_emit_quantile(keel_emit *e, const keel_quantile *a, double q, bool skips);
/* The argument q of the call. */
keel_status keel_quantile_q(const keel_emit *e, double *q);

#define KEEL_QUANTILE_OPERATION(stem, class_, q_, skips_, help_)                                   \
    static const keel_field fields[] = { KEEL_QUANTILE_FIELDS, { 0 } };                            \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        double q;                                                                                  \
        KEEL_TRY(keel_quantile_q(e, &q));                                                          \
        return keel_emit_quantile(e, e->args, q_, skips_);                                         \
    }                                                                                              \
    const keel_layer keel_layer_##stem = {                                                         \
        .type = { KEEL_OPERATION_HEAD(class_, "numpy", help_), .args_size = sizeof(keel_quantile), \
                  .fields = fields },                                                              \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .operation = true,                                                                         \
        .places = skips_,                                                                          \
        .emit = emit,                                                                              \
    };

#define KEEL_MEDIAN_OPERATION(stem, class_, skips_, help_)                                         \
    static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };                           \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        const keel_reduction *a = e->args;                                                         \
        const keel_quantile half = { .axis = a->axis, .keepdims = a->keepdims };                   \
        return keel_emit_quantile(e, &half, 0.5, skips_);                                          \
    }                                                                                              \
    KEEL_REDUCTION_LAYER(stem, class_, "numpy", help_, .places = skips_)

#endif
