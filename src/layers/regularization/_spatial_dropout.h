/* What layers share that drop whole channels. */
#ifndef KEEL_LAYERS_REGULARIZATION_SPATIAL_DROPOUT_H
#define KEEL_LAYERS_REGULARIZATION_SPATIAL_DROPOUT_H
#include "layers/layer.h"

typedef struct keel_spatial_dropout {
    double rate;
    int data_format;
} keel_spatial_dropout;

#define KEEL_SPATIAL_DROPOUT_FIELDS                                                                \
    KEEL_FLOAT(keel_spatial_dropout, rate, NULL, 0, 1,                                             \
               "the fraction of channels that is dropped"),                                        \
        KEEL_IGNORE("seed", "the seed of the run decides")

/* The emit of such a layer of `dims` dims before the channels: e->args is a keel_spatial_dropout.
 */
keel_status keel_emit_spatial_dropout(keel_emit *e, int dims);
/* Keras's classes do not take the key `trainable`, and write the name of the policy alone. */
keel_status keel_spatial_dropout_config(const void *args, json_t *config);

#endif
