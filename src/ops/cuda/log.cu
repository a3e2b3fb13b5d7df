/* See ops/log.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(log, logf(x), 1 / x);
