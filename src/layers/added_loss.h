/* A term of the loss that Python code has added (Keras's Layer.add_loss), as a layer of a graph: it
 * passes its first input on, so that the graph reaches it, and the mean over all rows of its second
 * is the term. No file of Keras has it: the package for Python writes it for calls of the
 * caller's. */
#ifndef KEEL_LAYERS_ADDED_LOSS_H
#define KEEL_LAYERS_ADDED_LOSS_H
#include "layers/layer.h"

#define KEEL_ADDED_LOSS "KeelAddedLoss"

extern const keel_layer keel_layer_added_loss;

#endif
