/* What keras.ops.adaptive_average_pool and adaptive_max_pool share. */
#ifndef KEEL_LAYERS_OPERATIONS_ADAPTIVE_H
#define KEEL_LAYERS_OPERATIONS_ADAPTIVE_H
#include "layers/operations/_operation.h"
#include "layers/pooling/_adaptive.h"

static const keel_field fields[] = {
    KEEL_INTS(keel_adaptive, output_size, 0, NULL, 1, 1e9, "how many windows each dim gets"),
    { .key = "data_format",
      .kind = KEEL_FIELD_CHOICE,
      .offset = offsetof(keel_adaptive, data_format),
      .dflt = "null",
      .choices = "channels_last|channels_first",
      .help = "order of the dims; only channels_last is supported" },
    { 0 },
};

static inline keel_status emit_adaptive(keel_emit *e, bool largest)
{
    const int dims = keel_emit_in(e, 0)->shape.rank - 1;
    keel_adaptive a = *(const keel_adaptive *)e->args;
    keel_emit inner = *e;
    if (dims < 1 || dims > 3)
        return keel_fail(KEEL_ESHAPE, "one to three dims of places are supported, not %d", dims);
    if (a.data_format < 0) a.data_format = 0;
    for (; a.output_size.count == 1 && dims > 1; a.output_size.count = dims)
        for (int d = 1; d < dims; d++) a.output_size.at[d] = a.output_size.at[0];
    if (a.output_size.count != dims)
        return keel_fail(KEEL_EARG, "output_size: %d numbers for %d dims", a.output_size.count,
                         dims);
    inner.args = &a;
    return keel_emit_adaptive(&inner, dims, largest);
}

#define KEEL_ADAPTIVE_OPERATION(stem, class_, largest_, help_)                                     \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        return emit_adaptive(e, largest_);                                                         \
    }                                                                                              \
    const keel_layer keel_layer_##stem = {                                                         \
        .type = { KEEL_OPERATION_HEAD(class_, "nn", help_), .args_size = sizeof(keel_adaptive),    \
                  .fields = fields },                                                              \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .operation = true,                                                                         \
        .emit = emit,                                                                              \
    };

#endif
