/* Layers that the package for Python writes for calls of the caller's; no file of Keras has them.
 */
#ifndef KEEL_LAYERS_PACKAGE_H
#define KEEL_LAYERS_PACKAGE_H
#include "layers/layer.h"

/* A term of the loss, of Keras's Layer.add_loss: it passes its first input on, so that the graph
 * reaches it, and the mean over all rows of its second is the term. */
#define KEEL_ADDED_LOSS "KeelAddedLoss"
extern const keel_layer keel_layer_added_loss;

/* Normal draws of mean 0 and variance 1, of keras.random: they are added to its input in training
 * and in inference. */
#define KEEL_DRAWN "KeelDrawn"
extern const keel_layer keel_layer_drawn;

#endif
