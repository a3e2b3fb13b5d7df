/* The largest of each window, over one or two dims of places. */
#include "layers/operations/_windows.h"

KEEL_WINDOWS_OPERATION(ops_max_pool, "MaxPool", max_pool2d, "The largest of each window.",
                       .whole = KEEL_WHOLE_KEPT)
