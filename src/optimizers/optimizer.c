/* An optimizer is found by Keras's class name or short name. */
#include "optimizers/optimizer.h"

const keel_type *keel_optimizer_find(const char *name)
{
    for (int i = 0; keel_optimizers[i]; i++)
        if (keel_type_is(&keel_optimizers[i]->type, name)) return &keel_optimizers[i]->type;
    return NULL;
}
