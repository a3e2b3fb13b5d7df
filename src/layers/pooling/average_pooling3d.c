/* The mean of each window over [D, H, W, C]; padding does not count. strides default to pool_size.
 */
#include "layers/pooling/_pool.h"

static const keel_field fields[] = { KEEL_POOL_FIELDS(3, NULL), { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_emit_pool(e, 3, &keel_op_average_pool2d);
}

const keel_layer keel_layer_average_pooling3d = {
    .type = { KEEL_LAYER_HEAD("AveragePooling3D", "The mean value of each window."),
              .args_size = sizeof(keel_pool), .fields = fields },
    .aliases = "AvgPool3D",
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
