/* See ops/rsqrt.c. */
#include "ops/cuda/_each.h"

EACH_FROM_OUT(rsqrt, 1 / sqrtf(x), -0.5f * y * y * y);
