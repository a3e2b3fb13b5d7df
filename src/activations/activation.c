/* Finds an activation by Keras's function name; "swish" is silu. */
#include "activations/activation.h"

const keel_type *keel_activation_find(const char *name)
{
    for (int i = 0; keel_activations[i]; i++)
        if (keel_type_is(&keel_activations[i]->type, name)) return &keel_activations[i]->type;
    return NULL;
}
