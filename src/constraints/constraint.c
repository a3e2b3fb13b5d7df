/* Finds a constraint by Keras's class name or short name, and says what it does to a weight. */
#include "constraints/constraint.h"

const keel_type *keel_constraint_find(const char *name)
{
    for (int i = 0; keel_constraints[i]; i++)
        if (keel_type_is(&keel_constraints[i]->type, name)) return &keel_constraints[i]->type;
    return NULL;
}

keel_status keel_constraint_read(const keel_object *o, const keel_shape *shape,
                                 keel_projection *out)
{
    *out = (keel_projection){ 0 };
    if (!o || !o->type) return KEEL_OK;
    const keel_constraint *c = (const keel_constraint *)o->type;
    const keel_ints *axis = c->axis ? c->axis(o->args) : NULL;
    c->projection(o->args, out);
    for (int i = 0; axis && i < axis->count; i++) {
        const int64_t d = axis->at[i] < 0 ? axis->at[i] + shape->rank : axis->at[i];
        if (d < 0 || d >= shape->rank)
            return keel_fail(KEEL_EARG, "%s: axis %lld of a weight of %d dims", o->type->name,
                             (long long)axis->at[i], shape->rank);
        if (out->over >> d & 1)
            return keel_fail(KEEL_EARG, "%s: axis %lld is given twice", o->type->name,
                             (long long)axis->at[i]);
        out->over |= 1u << d;
    }
    if (axis && axis->count < 0) out->over = (1u << shape->rank) - 1;
    return KEEL_OK;
}
