/* A value in parts that are nearly equal. */
#include "layers/operations/_split.h"

static const keel_field fields[] = {
    KEEL_SPLIT_SECTIONS,
    KEEL_INT(args_t, axis, "0", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

KEEL_SPLIT_OPERATION(ops_array_split, "ArraySplit", ((const args_t *)e->args)->axis, true,
                     "A value in parts that are nearly equal.", .whole = KEEL_WHOLE_KEPT)
