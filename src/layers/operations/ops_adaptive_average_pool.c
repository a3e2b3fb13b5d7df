/* The mean of as many windows as asked for, over one to three dims of places. */
#include "layers/operations/_adaptive.h"

KEEL_ADAPTIVE_OPERATION(ops_adaptive_average_pool, "AdaptiveAveragePool", false,
                        "The mean of as many windows as asked for.")
