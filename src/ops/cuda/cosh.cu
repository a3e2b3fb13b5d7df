/* See ops/cosh.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(cosh, coshf(x), sinhf(x));
