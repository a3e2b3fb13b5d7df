/* See ops/softmax.c. */
#include "ops/cuda/_softmax.h"

SOFTMAX_KERNEL(softmax, false);
