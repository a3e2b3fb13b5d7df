/* conv2d with 2x2 windows by Winograd with tiles of 3x3 outputs: see conv2d_winograd.c. */
#define TILE 3
#define TAPS 2
#include "ops/x86/conv2d_winograd.c"
