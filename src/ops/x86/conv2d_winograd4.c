/* conv2d by Winograd with tiles of 4x4 outputs: see conv2d_winograd.c. */
#define TILE 4
#define TAPS 3
#include "ops/x86/conv2d_winograd.c"
