/* Finds an activation by Keras's function name; "swish" is silu. */
#include "activations/_layer.h"
#include <string.h>

static const keel_field slopes[] = {
    KEEL_OF_A_LAYER,
    KEEL_IGNORE("alpha_initializer", "refused"),
    KEEL_IGNORE("alpha_regularizer", "refused"),
    KEEL_IGNORE("alpha_constraint", "refused"),
    KEEL_IGNORE("shared_axes", "refused"),
    { 0 },
};

static keel_status refuse(void *args)
{
    (void)args;
    return keel_fail(KEEL_EUNSUP,
                     "an activation has no weights here, and PReLU has slopes: make it "
                     "a layer behind this one, which computes the same");
}

/* The one layer with weights that Keras takes as an activation. */
static const keel_activation prelu = {
    .type = { .name = "PReLU",
              .module = "keras.layers",
              .help = "refused: a layer with weights",
              .args_size = 1,
              .fields = slopes,
              .ready = refuse },
};

const keel_type *keel_activation_find(const char *name)
{
    for (int i = 0; keel_activations[i]; i++)
        if (keel_type_is(&keel_activations[i]->type, name)) return &keel_activations[i]->type;
    return strcmp(name, prelu.type.name) ? NULL : &prelu.type;
}
