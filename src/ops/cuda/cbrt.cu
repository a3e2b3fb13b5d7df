/* See ops/cbrt.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(cbrt, cbrtf(x), 1 / (3 * cbrtf(x) * cbrtf(x)));
