/* See ops/sparse_sigmoid.c. */
#include "ops/cuda/_each.h"

EACH_FROM_OUT(sparse_sigmoid, x <= -1 ? 0 : x >= 1 ? 1 : (x + 1) / 2, y > 0 && y < 1 ? 0.5f : 0);
