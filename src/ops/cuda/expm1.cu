/* See ops/expm1.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(expm1, expm1f(x), expf(x));
