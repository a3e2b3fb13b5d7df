/* See ops/sin.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(sin, sinf(x), cosf(x));
