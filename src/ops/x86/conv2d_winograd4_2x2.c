/* conv2d with 2x2 windows by Winograd with tiles of 4x4 outputs: see conv2d_winograd.c. */
#define TILE 4
#define TAPS 2
#include "ops/x86/conv2d_winograd.c"
