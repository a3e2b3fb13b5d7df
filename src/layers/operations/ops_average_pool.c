/* The mean of each window, over one or two dims of places. */
#include "layers/operations/_windows.h"

KEEL_WINDOWS_OPERATION(ops_average_pool, "AveragePool", average_pool2d, "The mean of each window.")
