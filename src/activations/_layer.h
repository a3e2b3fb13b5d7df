/* Layers without weights that a model's file may have where an activation is named, as in
 * Dense(64, activation=LeakyReLU()). Keras writes them with the keys that every layer has. */
#ifndef KEEL_ACTIVATIONS_LAYER_H
#define KEEL_ACTIVATIONS_LAYER_H
#include "activations/activation.h"

#define KEEL_OF_A_LAYER                                                                            \
    KEEL_IGNORE("name", "nothing reads it"), KEEL_IGNORE("trainable", "the layer has no weights"), \
        KEEL_IGNORE("dtype", "values have the type of the layer that has the activation")

#endif
