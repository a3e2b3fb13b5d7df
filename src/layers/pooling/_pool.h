/* What layers of pooling windows share: their arguments, and the op they become. */
#ifndef KEEL_LAYERS_POOLING_POOL_H
#define KEEL_LAYERS_POOLING_POOL_H
#include "layers/layer.h"

typedef struct keel_pool {
    keel_ints pool_size, strides;
    int padding, data_format;
} keel_pool;

/* size: the default of pool_size, as JSON; NULL: it must be given. */
#define KEEL_POOL_FIELDS(dims, size)                                                               \
    KEEL_INTS(keel_pool, pool_size, dims, size, 1, 65536, "size of the window"),                   \
        KEEL_INTS(keel_pool, strides, dims, "null", 1, 65536,                                      \
                  "steps of the window; null: pool_size"),                                         \
        KEEL_CHOICE(keel_pool, padding, "\"valid\"", "valid|same",                                 \
                    "let windows hang over, or not"),                                              \
        KEEL_DATA_FORMAT(keel_pool)

/* The emit of such a layer of 1 to 3 dims: e->args is a keel_pool, and `op` the op of windows over
 * images. */
keel_status keel_emit_pool(keel_emit *e, int dims, const keel_op *op);

#endif
