/* See ops/log_determinant.c. */
#include "ops/cuda/_determinant.h"

DETERMINANT_KERNEL(log_determinant, true);
