/* What layers share that drop whole channels. */
#ifndef KEEL_LAYERS_REGULARIZATION_SPATIAL_DROPOUT_H
#define KEEL_LAYERS_REGULARIZATION_SPATIAL_DROPOUT_H
#include "layers/layer.h"

typedef struct keel_spatial_dropout {
    double rate;
    int data_format;
} keel_spatial_dropout;

/* The emit of such a layer of `dims` dims before the channels: e->args is a keel_spatial_dropout.
 */
keel_status keel_emit_spatial_dropout(keel_emit *e, int dims);
/* Keras's classes do not take the key `trainable`, and write the name of the policy alone. */
keel_status keel_spatial_dropout_config(const void *args, json_t *config);

#endif
