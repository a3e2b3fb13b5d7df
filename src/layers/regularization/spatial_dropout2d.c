/* Dropout of whole channels of [H, W, C]. */
#include "layers/regularization/_spatial_dropout.h"

static const keel_field fields[] = {
    KEEL_SPATIAL_DROPOUT_FIELDS,
    KEEL_DATA_FORMAT(keel_spatial_dropout),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_spatial_dropout(e, 2);
}

const keel_layer keel_layer_spatial_dropout2d = {
    .type = { KEEL_LAYER_HEAD("SpatialDropout2D", "Drops whole channels by chance while training."),
              .args_size = sizeof(keel_spatial_dropout), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .by_chance = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
    .untrained = true,
    .to_config = keel_spatial_dropout_config,
};
