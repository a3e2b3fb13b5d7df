/* See ops/absolute.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(absolute, fabsf(x), (float)((x > 0) - (x < 0)));
