/* What layers of pooling windows share: their arguments, and the op they become. */
#ifndef KEEL_LAYERS_POOLING_POOL2D_H
#define KEEL_LAYERS_POOLING_POOL2D_H
#include "layers/layer.h"

typedef struct keel_pool2d {
    keel_ints pool_size, strides;
    int padding, data_format;
} keel_pool2d;

/* size: the default of pool_size, as JSON; NULL: it must be given. */
#define KEEL_POOL2D_FIELDS(size)                                                                   \
    KEEL_INTS(keel_pool2d, pool_size, 2, size, 1, 65536, "height and width of the window"),        \
        KEEL_INTS(keel_pool2d, strides, 2, "null", 1, 65536,                                       \
                  "steps of the window; null: pool_size"),                                         \
        KEEL_CHOICE(keel_pool2d, padding, "\"valid\"", "valid|same",                               \
                    "let windows hang over, or not"),                                              \
        KEEL_DATA_FORMAT(keel_pool2d)

/* The emit of such a layer: e->args is a keel_pool2d, and `op` the op of its windows. */
keel_status keel_emit_pool2d(keel_emit *e, const keel_op *op);

#endif
