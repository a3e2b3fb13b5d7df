/* Finds a regulariser by Keras's class name or short name. */
#include "regularizers/regularizer.h"

const keel_type *keel_regularizer_find(const char *name)
{
    for (int i = 0; keel_regularizers[i]; i++)
        if (keel_type_is(&keel_regularizers[i]->type, name)) return &keel_regularizers[i]->type;
    return NULL;
}
