/* See ops/cos.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(cos, cosf(x), -sinf(x));
