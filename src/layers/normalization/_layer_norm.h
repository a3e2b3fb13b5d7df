/* What LayerNormalization and RMSNormalization share: which dims are normalised, and the op. */
#ifndef KEEL_LAYERS_LAYER_NORM_H
#define KEEL_LAYERS_LAYER_NORM_H
#include "layers/layer.h"
#include "ops/args.h"

/* The op on x, an input of the layer, over the dims `axis`, counted as in Keras. op->scale and
 * op->center say which weights there are; their shape and op->dims follow from the dims. */
keel_status keel_emit_layer_norm(keel_emit *e, keel_value x, const keel_ints *axis,
                                 const keel_layer_norm_args *op, const keel_weight_decl *gamma,
                                 const keel_weight_decl *beta, keel_value *out);

/* x, an input of the layer, by its deviation over the dims `axis`, without its mean subtracted,
 * times gamma: the old rms_scaling. */
keel_status keel_emit_by_deviation(keel_emit *e, keel_value x, const keel_ints *axis,
                                   double epsilon, const keel_weight_decl *gamma, keel_value *out);

#endif
