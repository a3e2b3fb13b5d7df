/* Constraints change a weight after each step of the optimizer. */
#ifndef KEEL_CONSTRAINTS_CONSTRAINT_H
#define KEEL_CONSTRAINTS_CONSTRAINT_H
#include "base/field.h"
#include "tensor/projection.h"

typedef struct keel_constraint {
    keel_type type;
    /* The dims of a vector, as `axis` counts them; a count of -1: all. NULL: the constraint is
     * about single numbers. */
    const keel_ints *(*axis)(const void *args);
    void (*projection)(const void *args, keel_projection *out);
} keel_constraint;

/* Its field. */
#define KEEL_CONSTRAINT_AXIS(args)                                                                 \
    {                                                                                              \
        .key = "axis", .kind = KEEL_FIELD_INTS, .offset = offsetof(args, axis), .dflt = "0",       \
        .count = -1, .min = -7, .max = 7, .nullable = true,                                        \
        .help = "dims of the weight along which a vector runs; null: all of them"                  \
    }

extern const keel_constraint *const keel_constraints[]; /* generated; ends with NULL */
const keel_type *keel_constraint_find(const char *name);

/* What `o` does to a weight of that shape. KEEL_EARG: it has no such axis, or one is given twice.
 */
keel_status keel_constraint_read(const keel_object *o, const keel_shape *shape,
                                 keel_projection *out);

#endif
