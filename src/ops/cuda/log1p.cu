/* See ops/log1p.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(log1p, log1pf(x), 1 / (1 + x));
