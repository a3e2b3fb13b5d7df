/* See ops/arctan.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(arctan, atanf(x), 1 / (1 + x * x));
