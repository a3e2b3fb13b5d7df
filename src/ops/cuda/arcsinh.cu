/* See ops/arcsinh.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(arcsinh, asinhf(x), 1 / sqrtf(1 + x * x));
