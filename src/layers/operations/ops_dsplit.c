/* A value in parts along the third dim. */
#include "layers/operations/_split.h"

static const keel_field fields[] = {
    KEEL_SPLIT_SECTIONS,
    { 0 },
};

KEEL_SPLIT_OPERATION(ops_dsplit, "Dsplit", 2, false, "A value in parts along the third dim.")
