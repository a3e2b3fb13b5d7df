/* See ops/log_softmax.c. */
#include "ops/cuda/_softmax.h"

SOFTMAX_KERNEL(log_softmax, true);
