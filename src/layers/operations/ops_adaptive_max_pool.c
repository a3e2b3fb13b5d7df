/* The largest of as many windows as asked for, over one to three dims of places. */
#include "layers/operations/_adaptive.h"

KEEL_ADAPTIVE_OPERATION(ops_adaptive_max_pool, "AdaptiveMaxPool", true,
                        "The largest of as many windows as asked for.")
