/* Finds a regulariser by Keras's class name or short name, and says what it adds for a weight. */
#include "regularizers/regularizer.h"

const keel_type *keel_regularizer_find(const char *name)
{
    for (int i = 0; keel_regularizers[i]; i++)
        if (keel_type_is(&keel_regularizers[i]->type, name)) return &keel_regularizers[i]->type;
    return NULL;
}

keel_status keel_regularizer_read(const keel_object *o, const keel_shape *shape, keel_penalty *out)
{
    keel_penalty p = { 0 };
    if (o && o->type) ((const keel_regularizer *)o->type)->penalty(o->args, &p);
    if (p.orthogonal != 0 && shape->rank != 2)
        return keel_fail(KEEL_EARG, "%s: a weight of %d dims: it must be a matrix", o->type->name,
                         shape->rank);
    if (p.orthogonal != 0 && shape->dim[p.columns] < 2)
        return keel_fail(KEEL_EUNSUP,
                         "%s: a matrix of one %s, which Keras divides by its 0 pairs: the loss "
                         "would not be a number",
                         o->type->name, p.columns ? "column" : "row");
    *out = p;
    return KEEL_OK;
}
