/* See ops/sqrt.c. */
#include "ops/cuda/_each.h"

EACH_FROM_OUT(sqrt, sqrtf(x), 0.5f / y);
