/* See ops/determinant.c. */
#include "ops/cuda/_determinant.h"

DETERMINANT_KERNEL(determinant, false);
