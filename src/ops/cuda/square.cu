/* See ops/square.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(square, x *x, 2 * x);
