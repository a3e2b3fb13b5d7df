/* conv2d on bfloat16 values with 2x2 windows by Winograd: see conv2d_winograd_avx512_bf16.c. */
#define TILE 3
#define TAPS 2
#include "ops/x86/conv2d_winograd_avx512_bf16.c"
