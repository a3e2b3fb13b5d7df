/* A value in parts along an axis. */
#include "layers/operations/_split.h"

static const keel_field fields[] = {
    KEEL_SPLIT_SECTIONS,
    KEEL_INT(args_t, axis, "0", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

KEEL_SPLIT_OPERATION(ops_split, "Split", ((const args_t *)e->args)->axis, false,
                     "A value in parts along an axis.", .whole = KEEL_WHOLE_KEPT)
