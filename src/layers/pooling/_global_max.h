/* What GlobalMaxPooling1D, 2D and 3D share. */
#ifndef KEEL_LAYERS_POOLING_GLOBAL_MAX_H
#define KEEL_LAYERS_POOLING_GLOBAL_MAX_H
#include "layers/layer.h"

typedef struct keel_global_max {
    int data_format;
    bool keepdims;
} keel_global_max;
extern const keel_field keel_global_max_fields[];

/* The emit of such a layer: over the first `dims` dims of a row. */
keel_status keel_emit_global_max(keel_emit *e, int dims);

#endif
