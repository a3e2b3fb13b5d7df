/* What the adaptive poolings of one to three dims share. */
#ifndef KEEL_LAYERS_ADAPTIVE_H
#define KEEL_LAYERS_ADAPTIVE_H
#include "layers/layer.h"

typedef struct keel_adaptive {
    keel_ints output_size;
    int data_format;
} keel_adaptive;

#define KEEL_ADAPTIVE_FIELDS(dims)                                                                 \
    KEEL_INTS(keel_adaptive, output_size, dims, NULL, 1, 1e9, "how many windows each dim gets"),   \
        KEEL_DATA_FORMAT(keel_adaptive)

keel_status keel_emit_adaptive(keel_emit *e, int dims, bool largest);

/* The layer for dims dims of places. */
#define KEEL_ADAPTIVE_LAYER(stem, name_, dims_, largest_, help_)                                   \
    static const keel_field fields[] = { KEEL_ADAPTIVE_FIELDS(dims_), { 0 } };                     \
    static keel_status emit(keel_emit *e)                                                          \
    {                                                                                              \
        return keel_emit_adaptive(e, dims_, largest_);                                             \
    }                                                                                              \
    const keel_layer keel_layer_##stem = {                                                         \
        .type = { .name = name_,                                                                   \
                  .module = "keras.layers",                                                        \
                  .help = help_,                                                                   \
                  .args_size = sizeof(keel_adaptive),                                              \
                  .fields = fields },                                                              \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .whole = largest_ ? KEEL_WHOLE_KEPT : KEEL_WHOLE_NEVER,                                    \
        .emit = emit,                                                                              \
    };

#endif
