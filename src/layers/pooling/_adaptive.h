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

#endif
