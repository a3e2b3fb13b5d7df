/* See ops/sinh.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(sinh, sinhf(x), coshf(x));
