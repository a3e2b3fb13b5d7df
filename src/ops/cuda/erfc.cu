/* See ops/erfc.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(erfc, erfcf(x), -1.12837916709551257f * expf(-x * x));
