/* See ops/erf.c. */
#include "ops/cuda/_each.h"

EACH_FROM_IN(erf, erff(x), 1.12837916709551257f * expf(-x * x));
