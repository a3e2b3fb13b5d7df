/* A value in parts along the second dim. */
#include "layers/operations/_split.h"

static const keel_field fields[] = {
    KEEL_SPLIT_SECTIONS,
    { 0 },
};

KEEL_SPLIT_OPERATION(ops_hsplit, "Hsplit", 1, false, "A value in parts along the second dim.",
                     .whole = KEEL_WHOLE_KEPT)
