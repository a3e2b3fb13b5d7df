/* A bench to run a kernel's passes on, and its op's reference on the same numbers: what the
 * comparisons in float32 (test_ops_kernels.c) and in bfloat16 (narrow_cases.h) share.
 *
 * Numbers are multiples of 1/16 below 2 in size, which bfloat16 holds, as do weights: sums of their
 * products are exact in float32 whatever their order; windows have ties, rectifiers zeros. */
#ifndef TESTS_KERNEL_BENCH_H
#define TESTS_KERNEL_BENCH_H
#include "base/memory.h"
#include "graph/choose.h"
#include "ops/cases.h"
#include "ops/all.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { IN_MAX = 5, WEIGHTS_MAX = 8, SAVED_MAX = 4, OUT_MAX = 4, COPIES_MAX = 16 };

typedef struct kernel_case {
    const char *op;
    keel_case c;
} kernel_case;

/* Beside the ops' own cases: tried with every kernel of the op, in every pass it has. */
static const kernel_case kernel_cases[] = {
    { "scale", { "9,15,37", "37", NULL } },
    /* sums over a line and over columns, by more than a stretch; ties; dims that stay between */
    { "log1p", { "70", NULL, "positive" } },
    { "expm1", { "70", NULL, NULL } },
    { "noise", { "3,47", NULL, NULL } }, /* more blocks than a vector has */
    { "noise", { "200", NULL, "multiplies" } },
    { "compare", { "7,9,33|1,1,33", NULL, "is 0" } },
    { "compare", { "7,9,33|7,9,1", NULL, "is 1" } },
    { "compare", { "200|200", NULL, "is 3" } },
    { "compare", { "9,3|9,3", NULL, "is 5" } },
    { "compare", { "200", NULL, "left 0.5 is 2" } },
    { "reduce", { "3,1100", NULL, "to 1 over 1" } },
    { "reduce", { "3,37", NULL, "to 2 over 1" } },
    { "reduce", { "150,37", NULL, "to 0 over 0 keepdims" } },
    { "reduce", { "3,70,37", NULL, "to 3 over 1" } },
    { "reduce", { "2,5,7,3", NULL, "to 2 over 1,2" } },
    { "reduce", { "3,4,5", NULL, "to 0 over 0,2" } },
    { "reduce", { "4100", NULL, "to 3 over 0" } },
    /* few filters: blocks and single outputs, groups of taps with some left over, windows that are
     * larger than the image, that leave places out, and that have holes */
    { "conv2d", { "7,19,20", "3,3,20,1|1", "pad 1,1,1,1" } },
    { "conv2d", { "9,21,16", "3,3,16,3|3", "pad 1,1,1,1" } },
    { "conv2d", { "6,25,37", "5,5,37,2", "pad 2,2,2,2" } },
    { "conv2d", { "8,17,9", "4,4,9,4|4", "strides 2,3 pad 1,2,0,3" } },
    { "conv2d", { "4,5,24", "9,9,24,5|5", "pad 4,4,4,4" } },
    { "conv2d", { "11,13,8", "2,3,8,6", "dilation 3,2 pad 1,0,2,2" } },
    { "conv2d", { "5,14,33", "3,1,33,7|7", NULL } },
    { "conv2d", { "3,40,18", "1,7,18,8|8", "pad 0,0,6,0" } },
    { "conv2d", { "2,3,16", "1,1,16,1", "pad 2,1,1,2" } },
    { "conv2d", { "43,1,21", "5,1,21,2|2", "pad 2,2,0,0" } },
    { "conv2d", { "1,43,21", "1,4,21,3", "pad 0,0,3,0" } },
    { "conv3d", { "5,6,21,12", "3,3,3,12,1|1", "pad 1,1,1,1,1,1" } },
    { "conv3d", { "4,5,9,17", "2,3,2,17,4", "strides 2,1,3 pad 0,1,2,0,1,1" } },
    { "conv3d", { "6,7,1,8", "2,3,1,8,5|5", "dilation 3,2,1 pad 1,2,2,2,0,0" } },
    { "conv2d", { "9,21,3", "3,3,3,16|16", "pad 1,1,1,1" } },
    { "conv2d", { "8,19,1", "5,4,1,37", "strides 2,3 pad 2,2,1,2" } },
    { "conv2d", { "6,7,4", "3,3,4,24|24", "dilation 2,2 strides 1,2 pad 2,2,2,2" } },
    { "conv2d", { "5,3,8", "2,1,8,9", "strides 3,4" } },
    { "conv2d", { "5,29,1", "1,16,1,8|8", "pad 0,0,7,8" } },
    { "conv2d", { "7,11,2", "3,4,2,9|9", "strides 2,1 pad 1,1,1,2" } },
    { "conv2d", { "6,13,3", "5,3,3,15", "strides 1,2 pad 2,2,0,1" } },
    { "conv2d", { "28,28,1", "3,3,1,32|32", NULL } },
    { "conv2d", { "13,13,32", "3,3,32,64|64", NULL } },
    { "conv2d", { "14,15,20", "3,3,20,30", "strides 2,2 pad 1,1,1,1" } },
    { "conv2d", { "29,29,3", "7,7,3,16|16", "strides 2,2 pad 3,2,3,2" } },
    /* few channels: lines of 1 to 5 turns, places that are no multiple, more outputs than a block
     */
    { "conv2d", { "6,5,3", "7,7,3,32|32", "strides 2,2 pad 3,3,3,3" } },
    { "conv2d", { "17,18,3", "3,3,3,24", "strides 2,2 pad 0,1,0,1" } },
    { "conv2d", { "8,12,3", "4,4,3,96|96", "strides 4,4" } },
    { "conv2d", { "1,1,3", "3,3,3,8|8", "pad 1,1,1,1" } },
    { "conv2d", { "5,6,1", "5,5,1,9", "pad 2,2,2,2" } },
    { "conv2d", { "7,7,4", "5,5,4,8|8", "pad 4,0,1,3" } },
    { "conv2d", { "11,13,2", "6,8,2,16|16", "strides 3,1 pad 2,3,7,0 dilation 1,2" } },
    { "conv2d", { "1,40,4", "1,31,4,9|9", "pad 0,0,15,15" } },
    { "conv2d", { "7,6,4", "2,2,4,70", NULL } },
    { "conv2d", { "3,4,4", "2,2,4,136|136", NULL } },
    { "conv2d", { "9,9,64", "1,1,64,48|48", NULL } },
    { "conv2d", { "9,8,64", "1,1,64,48", "strides 2,2" } },
    { "conv2d", { "9,9,12", "3,3,4,24|24", "groups 3 pad 1,1,1,1" } },
    { "conv2d", { "17,17,5", "3,3,5,7|7", "dilation 2,3 pad 2,2,3,3" } },
    { "conv2d", { "13,14,4", "2,2,4,70", "strides 3,3" } },
    { "conv2d", { "11,9,3", "4,5,3,133|133", "strides 1,2 pad 3,1,2,4" } },
    { "conv2d", { "13,11,70", "1,1,70,133|133", "strides 3,2" } },
    { "conv2d", { "31,30,20", "1,1,20,18|18", "strides 1,2" } },
    { "conv2d", { "3,3,530", "1,1,530,37", "strides 2,2" } },
    { "conv2d", { "2,3,1030", "1,1,1030,1030|1030", NULL } },
    { "conv2d", { "12,11,66", "1,1,66,70|70", NULL } },
    { "conv2d", { "6,6,16", "3,3,16,16|16", "strides 2,2" } },
    { "conv2d", { "7,7,35", "3,3,35,61|61", "pad 1,1,1,1" } },
    { "conv2d", { "4,9,32", "3,3,32,64", "pad 1,0,0,2" } },
    { "conv2d", { "9,3,96", "3,3,96,48|48", "pad 2,1,1,2" } },
    { "conv2d", { "6,3,48", "3,3,48,160|160", "pad 2,2,3,3" } },
    { "conv2d", { "14,14,128", "3,3,128,32", NULL } },
    { "conv2d", { "13,9,62", "3,3,62,94|94", "strides 2,2 pad 1,1,1,1" } },
    { "conv2d", { "12,14,32", "3,3,32,64|64", "strides 2,2 pad 0,1,0,1" } },
    { "conv2d", { "10,15,46", "3,3,46,160", "strides 2,2 pad 1,1,0,0" } },
    { "conv2d", { "8,16,144", "3,3,144,32|32", "strides 2,2" } },
    { "conv2d", { "3,4,32", "3,3,32,64", "strides 2,2 pad 1,2,2,3" } },
    { "conv2d", { "1,2,32", "3,3,32,32|32", "strides 2,2 pad 1,1,2,2" } },
    { "conv2d", { "6,5,62", "3,3,62,64", "strides 2,2 pad 3,3,4,4" } },
    { "conv2d", { "5,6,70", "1,1,70,150", NULL } },
    { "conv2d", { "5,5,33", "1,1,33,67|67", NULL } },
    { "conv2d", { "9,6,64", "3,3,64,96|96", "pad 1,1,1,1" } },
    { "conv2d", { "7,13,96", "3,3,96,32", "pad 2,1,0,2" } },
    { "conv2d", { "7,7,32", "3,3,32,288|288", "pad 1,1,1,1" } },
    { "conv2d", { "201,1,1", "3,1,1,16|16", "pad 1,1,0,0" } },
    { "conv2d", { "1,211,20", "1,3,20,37|37", "pad 0,0,1,1" } },
    { "conv2d", { "205,1,70", "9,1,70,33", NULL } },
    { "conv2d", { "7,1,33", "5,1,33,65|65", "pad 8,1,0,0" } },
    { "conv2d", { "3,1,18", "7,1,18,5", "pad 3,3,0,0" } },
    { "conv2d", { "203,1,32", "3,1,32,32|32", "pad 1,1,0,0" } },
    { "conv2d", { "1,39,33", "1,3,33,130|130", "pad 0,0,2,0" } },
    { "conv2d", { "138,1,96", "3,1,96,17", NULL } },
    { "conv2d", { "1,203,19", "1,3,19,24|24", "pad 0,0,8,0 dilation 1,4" } },
    { "conv3d", { "9,8,9,16", "3,3,3,16,32|32", "pad 1,1,1,1,1,1" } },
    { "conv3d", { "8,9,8,20", "3,2,3,20,33", "strides 2,2,2 pad 1,1,0,1,1,1" } },
    { "conv2d", { "17,16,20", "5,5,20,32|32", "pad 2,2,2,2" } },
    { "conv2d", { "31,33,18", "5,5,18,34|34", "strides 2,2 pad 1,2,0,3" } },
    { "conv2d", { "17,19,40", "6,5,40,33", "pad 3,1,2,2" } },
    { "conv2d", { "18,19,32", "5,3,32,32|32", NULL } },
    { "conv2d", { "35,32,16", "6,6,16,32|32", "strides 2,2 pad 3,0,2,2" } },
    { "conv2d", { "20,19,16", "7,7,16,32", "pad 3,3,3,3" } },
    { "conv2d", { "33,31,20", "4,4,20,34|34", "strides 2,2 pad 1,1,2,1" } },
    { "conv2d", { "16,17,24", "4,3,24,66", "pad 1,2,1,1" } },
    { "conv2d", { "18,9,64", "3,4,64,70|70", "strides 2,2 pad 0,1,1,1" } },
    { "conv2d", { "11,9,70", "2,2,70,62|62", "pad 0,1,1,0" } },
    { "conv2d", { "13,16,64", "2,2,64,96", "pad 1,1,0,1" } },
    { "conv2d", { "14,13,32", "2,2,32,64|64", "pad 0,1,1,0" } },
    { "conv2d", { "18,17,32", "4,4,32,64|64", "strides 2,2 pad 1,1,2,1" } },
    { "conv2d", { "15,14,32", "4,4,32,32", "pad 1,2,1,1" } },
    { "conv3d", { "5,9,8,1", "3,3,3,1,40|40", "pad 1,1,1,1,1,1" } },
    { "conv3d", { "5,7,11,2", "2,3,3,2,33", "strides 2,1,2 pad 0,1,2,0,1,1" } },
    { "conv3d", { "6,15,13,32", "2,3,3,32,64|64", "strides 1,2,2 pad 0,1,1,1,0,1" } },
    { "conv3d", { "5,16,18,24", "3,3,3,24,32|32", "pad 1,1,1,1,1,1" } },
    { "conv3d", { "7,15,14,32", "2,3,3,32,64", "strides 2,1,1 pad 1,0,1,1,1,1 dilation 2,1,1" } },
    { "conv3d", { "4,9,17,32", "3,3,3,32,32|32", "strides 3,1,1 pad 2,2,0,0,1,1" } },
    { "conv3d", { "7,33,16,12", "4,4,4,12,64|64", "strides 2,2,2 pad 1,1,1,1,1,2" } },
    { "conv3d", { "4,19,17,16", "2,5,5,16,64", "pad 1,0,2,2,2,2" } },
    { "conv3d", { "8,8,8,1", "3,3,3,1,16|16", NULL } },
    { "conv3d", { "5,6,7,24", "1,1,1,24,40|40", NULL } },
    { "conv3d", { "7,7,7,12", "2,2,2,4,24|24", "groups 3 dilation 2,1,2" } },
    { "conv3d", { "1,9,9,16", "1,3,3,16,32|32", "pad 0,0,1,1,1,1" } },
    { "conv_transpose",
      { "1,8,7,32", "1,3,3,16,32|16", "strides 1,2,2 pad 0,0,0,1,0,1 to 1,16,14" } },
    { "conv_transpose", { "1,8,7,20", "1,4,4,33,20", "strides 1,2,2 to 1,18,16" } },
    { "conv_transpose", { "1,9,9,64", "1,5,5,3,64|3", "pad 0,0,2,2,2,2 to 1,9,9" } },
    { "conv_transpose",
      { "4,5,6,16", "3,3,3,24,16|24", "strides 2,2,2 pad 0,1,0,1,0,1 to 8,10,12" } },
    { "conv_transpose", { "1,15,14,64", "1,3,3,64,64|64", "pad 0,0,1,1,1,1 to 1,15,14" } },
    { "conv_transpose",
      { "1,16,15,64", "1,4,4,32,64|32", "strides 1,2,2 pad 0,0,1,1,1,1 to 1,32,30" } },
    { "conv_transpose", { "1,9,12,48", "1,3,3,32,48", "pad 0,0,1,1,1,1 to 1,9,12" } },
    { "conv_transpose", { "1,16,16,96", "1,3,3,70,96|70", "to 1,18,18" } },
    { "conv_transpose", { "1,11,1,32", "1,5,1,16,32|16", "strides 1,3,1 to 1,36,1" } },
    { "depthwise_conv2d", { "14,14,32", "3,3,32,1|32", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "15,14,19", "3,3,19,1", "strides 2,2 pad 0,1,0,1" } },
    { "depthwise_conv2d", { "9,9,8", "5,5,8,1|8", "pad 2,2,2,2" } },
    { "depthwise_conv2d", { "9,9,6", "3,3,6,2|12", NULL } },
    { "depthwise_conv2d", { "7,7,40", "3,3,40,1", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "5,11,17", "3,3,17,1|17", NULL } },
    { "depthwise_conv2d", { "2,1,33", "3,3,33,1|33", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "9,12,16", "3,3,16,1|16", "strides 2,2 pad 1,1,1,1" } },
    { "depthwise_conv2d", { "12,9,48", "3,3,48,1", "strides 2,2 pad 2,1,3,2" } },
    { "depthwise_conv2d", { "13,18,21", "3,3,21,1|21", "strides 2,2" } },
    { "depthwise_conv2d", { "11,10,35", "3,3,35,1|35", "strides 2,1 pad 1,1,1,1" } },
    { "depthwise_conv2d", { "11,10,35", "3,3,35,1|35", "strides 3,3 pad 1,0,1,0" } },
    { "depthwise_conv2d", { "12,12,20", "3,3,20,1|20", "dilation 2,3 pad 2,2,3,3" } },
    { "depthwise_conv2d", { "41,50,67", "3,3,67,1", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "50,41,67", "3,3,67,1|67", "strides 2,2 pad 0,1,0,1" } },
    { "depthwise_conv2d", { "8,9,36", "2,5,36,1|36", "strides 1,2 pad 0,1,2,2" } },
    { "depthwise_conv2d", { "9,9,9", "11,11,9,1", "pad 5,5,5,5" } },
    { "depthwise_conv2d", { "14,17,19", "5,5,19,1|19", "pad 2,2,2,2" } },
    { "depthwise_conv2d", { "23,31,40", "5,5,40,1", "strides 2,2 pad 1,2,1,2" } },
    { "depthwise_conv2d", { "7,7,33", "5,5,33,1|33", "strides 2,2 pad 2,2,2,2" } },
    { "depthwise_conv2d", { "3,2,17", "5,5,17,1", "pad 2,2,2,2" } },
    { "depthwise_conv2d", { "15,18,24", "7,7,24,1|24", "pad 3,3,3,3" } },
    { "depthwise_conv2d", { "19,20,9", "7,7,9,1", "strides 2,2 pad 2,3,3,2" } },
    { "depthwise_conv2d", { "60,61,40", "5,5,40,1", "pad 2,2,2,2" } },
    { "depthwise_conv2d", { "40,30,4", "3,3,4,1|4", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "3,9,64", "3,3,64,1", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "1,21,8", "1,3,8,1|8", "pad 0,0,2,0" } },
    { "depthwise_conv2d", { "5,9,16", "2,3,16,1", "strides 1,2 dilation 2,1 pad 0,0,2,1" } },
    { "depthwise_conv2d", { "6,9,20", "5,5,20,1|20", "pad 4,3,4,3" } },
    { "depthwise_conv2d", { "8,11,12", "5,5,12,1", "strides 2,2 pad 2,1,3,0" } },
    { "depthwise_conv2d", { "5,6,32", "7,7,32,1|32", "pad 3,3,3,3" } },
    { "depthwise_conv2d", { "3,13,18", "7,7,18,1", "pad 3,3,3,3" } },
    { "depthwise_conv2d", { "9,10,12", "7,7,12,1|12", "strides 2,2 pad 2,3,3,2" } },
    { "depthwise_conv2d", { "9,10,13", "3,3,13,2|26", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "11,8,17", "3,3,17,4", "strides 2,2 pad 0,1,0,1" } },
    { "depthwise_conv2d", { "8,7,11", "5,5,11,3|33", "pad 2,2,2,2" } },
    { "depthwise_conv2d", { "20,6,8", "16,1,8,2", NULL } },
    { "conv2d", { "14,15,20", "3,3,1,20|20", "groups 20 pad 1,1,1,1" } },
    { "conv2d", { "13,15,35", "7,7,1,35|35", "groups 35 pad 3,3,3,3" } },
    { "conv2d", { "13,16,24", "5,5,1,24", "groups 24 strides 2,2 pad 1,2,1,2" } },
    { "conv2d", { "5,6,32", "7,7,1,32|32", "groups 32 pad 3,3,3,3" } },
    { "conv2d", { "7,9,12", "3,3,1,12|12", "groups 12 dilation 2,2 pad 2,2,2,2" } },
    { "conv2d", { "1,21,8", "1,3,1,8", "groups 8 pad 0,0,2,0" } },
    { "conv2d", { "9,8,10", "3,3,1,20|20", "groups 10 pad 1,1,1,1" } },
    { "dense", { "784", "784,512|512", NULL } },
    { "dense", { "512", "512,10|10", NULL } },
    { "dense", { "5,33", "33,130", NULL } },
    { "dense", { "70,400", "400,38|38", NULL } },
    { "dense", { "129", "129,67", NULL } },
    { "dense", { "3,64", "64,48|48", NULL } },
    { "matmul", { "3,5,33|3,33,20", NULL, NULL } },
    { "matmul", { "2,16,24|2,24,32", NULL, NULL } },
    { "dense_transposed", { "129", "67,129", NULL } },
    { "dense_transposed", { "5,33", "530,33", NULL } },
    { "max_pool2d", { "12,12,64", NULL, NULL } },
    { "max_pool2d", { "13,12,19", NULL, "pool 3,3 strides 2,2 pad 0,1,1,1" } },
    { "max_pool2d", { "9,9,33", NULL, "pool 2,3 strides 1,1" } },
    { "max_pool2d", { "11,10,33", NULL, NULL } },
    { "max_pool2d", { "12,12,64", NULL, "relu" } },
    { "max_pool2d", { "13,12,19", NULL, "pool 3,3 strides 2,2 pad 0,1,1,1 relu" } },
    { "average_pool2d", { "12,12,64", NULL, NULL } },
    { "average_pool2d", { "11,13,33", NULL, NULL } },
    { "average_pool2d", { "13,12,19", NULL, "pool 3,3 strides 2,2 pad 0,1,1,1" } },
    /* windows that leave gaps; one line */
    { "average_pool2d", { "8,18,8", NULL, "pool 2,2 strides 3,5" } },
    { "average_pool2d", { "7,9,5", NULL, "pool 1,2 strides 2,3 pad 0,0,1,0" } },
    { "average_pool2d", { "1,13,5", NULL, "pool 1,3 strides 1,2" } },
    { "max_pool2d", { "1,13,5", NULL, "pool 1,3 strides 1,2 relu" } },
    { "max_pool2d", { "7,9,5", NULL, "pool 1,2 strides 2,3 pad 0,0,1,0" } },
    { "depthwise_conv2d", { "10,11,17", "2,2,17,1|17", "strides 3,4" } },
    { "depthwise_conv2d", { "9,7,5", "1,2,5,3|15", "strides 2,3 pad 0,1,1,0" } },
    { "depthwise_conv2d", { "11,12,8", "3,3,8,1", "strides 5,4 pad 1,0,1,1" } },
    { "conv_transpose", { "1,3,4,5", "1,2,2,3,5|3", "strides 1,3,4 to 1,9,15" } },
    { "conv_transpose", { "2,3,2,8", "1,2,1,9,8", "strides 2,3,2 pad 0,0,1,0,0,1 to 4,8,3" } },
    { "conv2d", { "1,23,5", "1,2,5,7|7", "strides 1,3" } },
    { "conv2d", { "9,13,33", "2,3,33,17", "strides 3,5 pad 1,0,1,1" } },
    { "conv3d", { "5,7,8,5", "2,2,3,5,7|7", "strides 3,3,5 pad 1,0,0,0,1,1" } },
    { "average_unpool2d", { "6,6,19", NULL, "to 13,12 pool 3,3 strides 2,2 pad 0,1,1,1" } },
    { "average_unpool2d", { "9,8,20", NULL, "to 9,8 pool 3,3 strides 1,1 pad 1,1,1,1" } },
    { "average_unpool2d", { "3,4,8", NULL, "to 8,18 pool 2,2 strides 3,5" } },
    { "average_unpool2d", { "1,6,5", NULL, "to 1,13 pool 1,3 strides 1,2" } },
    { "max_unpool2d", { "13,12,19|6,6,19", NULL, "pool 3,3 strides 2,2 pad 0,1,1,1" } },
    { "max_unpool2d", { "13,12,19|6,6,19", NULL, "pool 3,3 strides 2,2 pad 0,1,1,1 relu" } },
    { "max_unpool2d", { "9,8,20|9,8,20", NULL, "pool 3,3 strides 1,1 pad 1,1,1,1" } },
    { "max_unpool2d", { "8,18,8|3,4,8", NULL, "pool 2,2 strides 3,5" } },
    { "max_unpool2d", { "1,13,5|1,6,5", NULL, "pool 1,3 strides 1,2 relu" } },
    { "max_unpool2d", { "17,18,4|2,3,4", NULL, "pool 16,16 strides 1,1 relu" } },
    { "max_unpool2d", { "17,17,1|2,2,1", NULL, "pool 16,16 strides 1,1" } },
    { "global_average_pool2d", { "7,7,100", NULL, NULL } },
    { "relu", { "7,7,33", NULL, NULL } },
    { "relu", { "7,7,33", NULL, "max_value 0.5 negative_slope 0.25 threshold 0.25" } },
    { "relu6", { "7,7,33", NULL, NULL } },
    { "sigmoid", { "7,7,33", NULL, NULL } },
    { "tanh", { "7,7,33", NULL, NULL } },
    { "silu", { "7,7,33", NULL, NULL } },
    { "gelu", { "7,7,33", NULL, NULL } },
    { "gelu", { "7,7,40", NULL, NULL } },
    { "silu", { "7,7,40", NULL, NULL } },
    { "leaky_relu", { "7,7,33", NULL, "negative_slope 0.3" } },
    { "zero_pad2d", { "7,9,33", NULL, "pad 1,2,3,0" } },
    { "upsample", { "5,7,33", NULL, "axis 1 factor 3" } },
    { "upsample", { "5,7,40", NULL, "axis 0 factor 2" } },
    { "upsample", { "5,7,33", NULL, "axis 0" } },
    { "add", { "7,9,33|7,9,33", NULL, NULL } },
    { "add", { "1001|1001|1001", NULL, NULL } },
    { "softmax", { "1000", NULL, NULL } },
    { "softmax", { "7,37,5", NULL, "axis 1" } },
    { "softmax", { "7,37", NULL, NULL } },
    { "softmax", { "9,70", NULL, "axis 0" } },
    { "softmax", { "3,50,1", NULL, "axis 1" } },
    { "log_softmax", { "3,50,1", NULL, "axis 1" } },
    { "log_softmax", { "1000", NULL, NULL } },
    { "log_softmax", { "7,37", NULL, NULL } },
    { "sparsemax", { "1000", NULL, NULL } },
    { "sparsemax", { "7,37", NULL, NULL } },
    { "glu", { "7,38", NULL, NULL } },
    { "glu", { "6,7,33", NULL, "axis 0" } },
    { "tanh_shrink", { "7,7,33", NULL, NULL } },
    { "squareplus", { "7,7,33", NULL, "b 4" } },
    { "dropout", { "1003", NULL, "rate 0.5" } },
    { "dropout", { "7,9,31", NULL, "rate 0.2" } },
    { "dropout", { "7,9,31", NULL, "rate 0.2 noise 1,1,1" } },
    { "dropout", { "7,9,31", NULL, "rate 0.2 noise 1,1,31" } },
    { "dropout", { "7,9,31", NULL, "rate 0.5 noise 7,1,31" } },
    { "dropout", { "7,9,133", NULL, "rate 0.5 noise 1,9,133" } },
    { "dropout", { "3,9,5,6", NULL, "rate 0.5 noise 3,1,5,1" } },
    { "where", { "7,9,33|7,9,33|7,9,33", NULL, NULL } },
    { "where", { "7,9,1|7,9,33|1,1,33", NULL, NULL } },
    { "where", { "1,1,33|7,9,33|7,1,33", NULL, NULL } },
    { "where", { "5,1,19|1,6,1|1,1,1", NULL, NULL } },
    { "where", { "200|1", NULL, "left 1.5" } },
    { "where", { "37,3|37,3", NULL, "right -2" } },
    { "where", { "201", NULL, "left 1 right 0" } },
    { "cumsum", { "201", NULL, NULL } },
    { "cumsum", { "5,17", NULL, NULL } },
    { "cumsum", { "3,9,35", NULL, "axis 1" } },
    { "cumsum", { "40,2", NULL, "axis 0" } },
    { "gather", { "9", "5,40", NULL } },
    { "multiply", { "7,9,33|7,9,33", NULL, NULL } },
    { "multiply", { "7,9,33|1,1,33", NULL, NULL } },
    { "multiply", { "1,1,40|13,5,40", NULL, NULL } },
    { "multiply", { "7,9,33|7,9,1", NULL, NULL } },
    { "multiply", { "2,1,1|2,37,19", NULL, NULL } },
    { "multiply", { "6,7,40|6,7,1", NULL, NULL } },
    { "multiply", { "1,1,1|5,9,16", NULL, NULL } },
    { "multiply", { "5,7,11|5,1,11", NULL, NULL } },
    { "multiply", { "37,19|1,1", NULL, NULL } },
    { "multiply", { "4,5,6|1,5,1", NULL, NULL } },
    { "multiply", { "7,9,33", NULL, "right 0.5" } },
    { "plus", { "7,9,33|7,9,33", NULL, NULL } },
    { "plus", { "7,9,33|1,1,33", NULL, NULL } },
    { "plus", { "2,1,1|2,37,19", NULL, NULL } },
    { "plus", { "5,1,33|1,7,33", NULL, NULL } },
    { "subtract", { "1,9,19|6,1,19", NULL, NULL } },
    { "multiply", { "3,5,1|3,1,70", NULL, NULL } },
    { "multiply", { "2,4,1,1,5|2,1,3,6,5", NULL, NULL } },
    { "divide", { "1,7|6,1", NULL, "positive" } },
    { "subtract", { "7,9,33|7,9,33", NULL, NULL } },
    { "subtract", { "1,1,40|13,5,40", NULL, NULL } },
    { "subtract", { "7,9,33|7,9,1", NULL, NULL } },
    { "subtract", { "7,9,33", NULL, "left 0.5" } },
    { "slice", { "7,33", NULL, "begin 6,0 step -1,1 count 7,33" } },
    { "slice", { "9,8,35", NULL, "begin 1,2,0 count 5,3,35" } },
    { "slice", { "9,8,35", NULL, "begin 1,2,3 step 2,1,1 count 3,5,20" } },
    { "slice", { "3,9,35", NULL, "begin 0,0,34 step 1,1,-3 count 3,9,11" } },
    { "concatenate", { "7,9,33|7,9,5", NULL, NULL } },
    { "concatenate", { "7,9,8|7,9,4|7,9,12", NULL, NULL } },
    { "concatenate", { "5,8|2,8|9,8", NULL, "axis 0" } },
    { "pad", { "7,9,8", NULL, "before 1,0,4 behind 0,2,4 value -0.5" } },
    { "pad", { "5,9,33", NULL, "before 0,3,0 behind 1,0,0" } },
    { "reduce", { "7,9,33", NULL, "to 0 over 0,1" } },
    { "reduce", { "7,9,33", NULL, "to 1 over 2 keepdims" } },
    { "reduce", { "5,1100", NULL, "to 0 over 1" } },
    { "reduce", { "5,1100", NULL, "to 2 over 1" } },
    { "reduce", { "40,33", NULL, "to 3 over 0" } },
    { "reduce", { "7,3,5", NULL, "to 2 over 0,2 keepdims" } },
    { "adaptive_pool", { "13,8", NULL, "axis 0 size 5" } },
    { "adaptive_pool", { "3,14,9", NULL, "axis 1 size 6 largest" } },
    { "group_norm", { "7,5,24", "24|24", "groups 8" } },
    { "group_norm", { "19,33", "33|33", "groups 11" } },
    { "masked", { "9,33|9", NULL, NULL } },
    { "masked_mean", { "40,67|40", NULL, NULL } },
    { "masked_scores", { "2,9,33|33", NULL, "causal" } },
    { "not_equal_to", { "9,33", NULL, "any" } },
    { "gather", { "19", "7,130", NULL } },
    { "gather", { "70", "9,300", NULL } },
    { "gather", { "401", "37,5", NULL } },
    { "softmax", { "2,1100", NULL, NULL } },
    { "layer_norm", { "2,1100", "1100|1100", NULL } },
    { "layer_norm", { "3,1027", "1027|1027", NULL } },
    { "add_layer_norm", { "2,1100|2,1100", "1100|1100", NULL } },
    { "masked_softmax", { "3,1100|1,1100", NULL, NULL } },
    { "permute", { "5,3,4,2", NULL, "from 1,0,2,3" } },
    { "permute", { "3,2,5,9", NULL, "from 2,0,1,3" } },
    { "permute", { "6,7", NULL, "from 0,1" } },
    { "permute", { "9,70,3", NULL, "from 2,0,1" } },
    { "permute", { "3,40,37", NULL, "from 0,2,1" } },
    { "upsample", { "5,7,33", NULL, "axis 1 factor 3 between" } },
    { "upsample", { "6,5,19", NULL, "axis 0 between" } },
    { "upsample", { "9", NULL, "factor 4 between" } },
    { "average_pool2d", { "9,8,20", NULL, "pool 3,3 strides 1,1 pad 1,1,1,1" } },
    { "max_pool2d", { "9,8,20", NULL, "pool 3,3 strides 1,1 pad 1,1,1,1" } },
    { "max_pool2d", { "5,13,8", NULL, "pool 2,2 strides 3,5" } },
    { "max_pool2d", { "6,9,5", NULL, "pool 3,4 strides 2,1 pad 1,1,2,1" } },
    { "rescaling", { "7,7,33", NULL, "scale 0.25 offset -0.5" } },
    { "normalization", { "19,15,3", NULL, "last" } },
    { "normalization", { "19,15,3", NULL, "last invert" } },
    { "normalization", { "19,15,3", NULL, "all" } },
    { "batch_norm", { "6,7,64", "64|64|64|64", NULL } },
    { "batch_norm", { "5,5,19", "19|19|19|19", NULL } },
    { "batch_norm", { "300", "300|300|300|300", NULL } },
    { "batch_norm", { "40,41,5", "5|5|5|5", NULL } },
    { "batch_norm", { "56,30,8", "8|8|8|8", "relu" } },
    { "batch_norm", { "9,7,64", "64|64|64|64", "relu" } },
    { "batch_norm", { "5,5,19", "19|19|19|19", "relu max_value 1" } },
    { "batch_norm", { "9,9,40|9,9,40", "40|40|40|40", "relu" } },
    { "batch_norm", { "5,5,19|5,5,19", "19|19|19|19", NULL } },
    { "batch_norm", { "7,7,24|7,7,24", "24|24|24|24", "relu frozen" } },
    { "batch_norm", { "9,7,64", "64|64|64|64", "silu" } },
    { "batch_norm", { "5,5,19", "19|19|19|19", "silu" } },
    { "batch_norm", { "7,7,24", "24|24|24", "silu frozen no_center" } },
    { "masked_batch_norm", { "6,7,64|6,7", "64|64|64|64", NULL } },
    { "masked_batch_norm", { "5,5,19|5,5", "19|19|19|19", NULL } },
    { "masked_batch_norm", { "4,300|4", "300|300|300|300", NULL } },
    { "masked_batch_norm", { "1600,5|1600", "5|5|5|5", NULL } },
    { "masked_batch_norm", { "40,24|40", "24|24|24", "no_center" } },
    { "masked_batch_norm", { "90,12|90", "12|12|12|12", "strange" } },
    { "masked_batch_norm", { "7,7,24|7,7", "24|24|24|24", "frozen" } },
    { "simple_rnn", { "2,70", "70,70", "sequences" } },
    { "simple_rnn", { "1,70|70", "70,70", "stated" } },
    { "lstm", { "1,164|41|41", "41,164", "stated" } },
    { "lstm", { "1,292|73|73|4,73", "73,292", "stated dropped states" } },
    { "gru", { "1,135|45|3,45", "45,135", "stated dropped" } },
    { "gru", { "1,105|35", "35,105|2,105", "reset_after stated" } },
    { "lstm", { "7,68", "17,68", NULL } },
    { "lstm", { "5,280|5", "70,280", "sequences backwards masked" } },
    { "gru", { "5,201|5", "67,201|2,201", "sequences backwards masked reset_after" } },
    { "lstm", { "4,32|4|8|8|4,8", "8,32", "masked stated dropped states sequences zeros" } },
    { "gru", { "4,24|4|8|3,8", "8,24|2,24", "reset_after masked stated dropped sequences" } },
    { "gru", { "4,24|4|8|3,8", "8,24", "masked stated dropped states sequences zeros" } },
    /* the numbers of units at which src/ops/cuda/_recurrent_sequence.h goes another way */
    { "lstm", { "3,256|3|64|64|4,64", "64,256", "masked stated dropped states sequences" } },
    { "lstm", { "2,264|2|66|66|4,66", "66,264", "masked stated dropped states sequences zeros" } },
    { "lstm",
      { "2,284|2|71|71|4,71", "71,284", "masked stated dropped states sequences backwards" } },
    { "lstm", { "2,304|2|76|76|4,76", "76,304", "masked stated dropped states sequences" } },
    { "gru",
      { "3,192|3|64|3,64", "64,192|2,192", "reset_after masked stated dropped states sequences" } },
    { "gru",
      { "2,201|2|67|3,67", "67,201|2,201",
        "reset_after masked stated dropped states sequences backwards" } },
    { "gru",
      { "2,216|2|72|3,72", "72,216|2,216",
        "reset_after masked stated dropped states sequences zeros" } },
    { "gru",
      { "2,231|2|77|3,77", "77,231|2,231", "reset_after masked stated dropped states sequences" } },
    { "gru", { "3,189|3|63|3,63", "63,189", "masked stated dropped states sequences" } },
    { "gru", { "2,204|2|68|3,68", "68,204", "masked stated dropped states sequences zeros" } },
    { "gru", { "2,210|2|70|3,70", "70,210", "masked stated dropped states sequences backwards" } },
    { "gru", { "2,228|2|76|3,76", "76,228", "masked stated dropped states sequences" } },
    { "simple_rnn", { "2,64|2|64|1,64", "64,64", "masked stated dropped states sequences" } },
    { "simple_rnn",
      { "2,66|2|66|1,66", "66,66", "masked stated dropped states sequences backwards" } },
    { "simple_rnn", { "2,71|2|71|1,71", "71,71", "masked stated dropped states sequences zeros" } },
    { "simple_rnn", { "2,76|2|76|1,76", "76,76", "masked stated dropped states sequences" } },
    { "lstm", { "2,512", "128,512", "sequences" } },
    { "lstm", { "2,520", "130,520", "sequences" } },
    { "gru", { "2,384", "128,384|2,384", "sequences reset_after" } },
    { "gru", { "2,390", "130,390|2,390", "sequences reset_after" } },
    { "gru", { "2,303", "101,303", "sequences" } },
    { "gru", { "2,570", "190,570", "sequences" } },
    { "simple_rnn", { "2,128", "128,128", "sequences" } },
    { "simple_rnn", { "2,130", "130,130", "sequences" } },
    { "masked_softmax", { "3,7,70", NULL, "causal" } },
    { "masked_softmax", { "2,40,37|2,1,37", NULL, "window 5" } },
    { "masked_softmax", { "2,40,37|1,40,37", NULL, "uniform" } },
    { "masked_softmax", { "2,40,37|1,40,1|1,1,37|2,40,37", NULL, "causal" } },
    { "dot_product_attention", { "70,3,19|131,3,19|131,3,37", NULL, "scale 0.0625" } },
    { "dot_product_attention",
      { "131,4,9|131,2,9|131,2,5", NULL, "scale 0.0625 causal rate 0.5" } },
    { "dot_product_attention",
      { "2,50,2,8|2,67,2,8|2,67,2,8|2,1,50,67|2,2,1,67", NULL, "scale 0.0625 uniform window 9" } },
    { "dot_product_attention",
      { "50,2,8|67,1,8|67,1,18|1,50,1|2,1,67", NULL, "scale 0.0625 causal rate 0.2" } },
    { "dot_product_attention",
      { "50,2,8|67,2,8|67,2,8|1,1,67", NULL, "scale 0.0625 causal less 3" } },
    { "dot_product_attention", { "131,1,64|131,1,64|131,1,64", NULL, "scale 0.0625 causal" } },
    { "dot_product_attention",
      { "29,1,8|270,1,8|270,1,24", NULL, "scale 0.0625 causal rate 0.3" } },
    { "dot_product_attention",
      { "61,2,24|29,1,24|29,1,40|1,61,1", NULL, "scale 0.0625 window 20 causal" } },
    { "dot_product_attention", { "1,2,8|139,2,8|139,2,8|1,1,139", NULL, "scale 0.0625" } },
    { "dot_product_attention",
      { "140,1,5|140,1,5|140,1,5|1,140,140", NULL, "scale 0.0625 window 3 rate 0.2" } },
    { "dot_product_attention",
      { "130,1,64|130,1,64|130,1,64", NULL, "scale 0.0625 causal window 3" } },
    { "dot_product_attention", { "5,1,64|70,1,64|70,1,60", NULL, "scale 0.0625 rate 0.3" } },
    { "dot_product_attention", { "70,1,60|5,1,60|5,1,64", NULL, "scale 0.0625" } },
    { "dot_product_attention", { "65,2,7|65,1,7|65,1,4|1,1,65", NULL, "scale 0.0625 causal" } },
    { "dot_product_attention", { "3,1,40|65,1,40|65,1,36|1,3,65", NULL, "scale 0.0625 uniform" } },
    { "dot_product_attention",
      { "33,2,12|31,1,12|31,1,12|2,33,1|1,33,31", NULL, "scale 0.0625 less 2 rate 0.5" } },
    { "dot_product_attention",
      { "2,9,2,16|2,33,2,16|2,33,2,16|2,1,1,33|1,2,9,1", NULL, "scale 0.0625" } },
    { "dot_product_attention",
      { "97,1,5|66,1,5|66,1,3", NULL, "scale 0.0625 causal window 40 rate 0.1" } },
    { "dot_product_attention", { "34,1,33|33,1,33|33,1,1", NULL, "scale 0.0625 causal" } },
    { "dot_product_attention", { "3,1,80|37,1,80|37,1,65", NULL, "scale 0.0625 causal rate 0.4" } },
    { "dot_product_attention", { "37,2,72|4,1,72|4,1,80|1,1,4", NULL, "scale 0.0625" } },
    { "dot_product_attention", { "3,1,140|20,1,140|20,1,150", NULL, "scale 0.0625 causal" } },
    { "dot_product_attention", { "78,1,8|78,1,8|78,1,8", NULL, "scale 0.0625 causal" } },
    { "dot_product_attention", { "150,1,1|150,1,1|150,1,1", NULL, "scale 0.0625 causal" } },
    { "dot_product_attention",
      { "200,1,16|200,1,16|200,1,16", NULL, "scale 0.0625 causal window 7" } },
    { "dot_product_attention",
      { "97,1,64|97,1,64|97,1,64", NULL, "scale 0.0625 causal window 4" } },
    { "dot_product_attention", { "70,1,64|5,1,64|5,1,56", NULL, "scale 0.0625" } },
    { "dot_product_attention", { "5,1,48|70,1,48|70,1,40", NULL, "scale 0.0625 rate 0.3" } },
    { "dot_product_attention", { "66,1,104|3,1,104|3,1,128", NULL, "scale 0.0625" } },
    { "dot_product_attention", { "3,1,128|66,1,128|66,1,96", NULL, "scale 0.0625 rate 0.2" } },
    { "dot_product_attention",
      { "70,1,128|70,1,128|70,1,128", NULL, "scale 0.0625 causal window 2" } },
    { "dot_product_attention", { "40,1,8|70,1,8|70,1,8|1,40,70", NULL, "scale 0.0625 rate 0.3" } },
    { "dot_product_attention", { "20,2,8|70,1,8|70,1,8|2,1,70", NULL, "scale 0.0625 rate 0.5" } },
    { "dot_product_attention", { "70,1,8|36,1,8|36,1,8|1,70,36", NULL, "scale 0.0625 uniform" } },
    { "dot_product_attention",
      { "66,1,8|45,1,8|45,1,16|1,1,45", NULL, "scale 0.0625 causal less 3 rate 0.25" } },
    { "dot_product_attention", { "2,34,1,8|2,35,1,8|2,35,1,8|2,1,1,35", NULL, "scale 0.0625" } },
    { "dot_product_attention", { "9,2,8|140,1,8|140,1,8", NULL, "scale 0.0625" } },
    { "dot_product_attention",
      { "100,1,8|20,1,8|20,1,16", NULL, "scale 0.0625 window 5 uniform" } },
    { "dot_product_attention", { "67,1,16|34,1,16|34,1,8|1,67,1", NULL, "scale 0.0625 less 2" } },
    { "dot_product_attention", { "9,2,8|90,2,8|90,2,8", NULL, "scale 4" } },
    { "dot_product_attention", { "20,2,260|131,1,260|131,1,8", NULL, "scale 0.0625 rate 0.2" } },
    { "dot_product_attention",
      { "131,1,8|150,1,8|150,1,270|1,1,150", NULL, "scale 0.0625 causal less 3" } },
    { "dot_product_attention",
      { "280,1,4|280,1,4|280,1,257", NULL, "scale 0.0625 causal window 9" } },
    { "dot_product_attention", { "3,1,8|520,1,8|520,1,8|1,3,520", NULL, "scale 0.0625 uniform" } },
    { "matmul", { "3,17,40|3,40,37", NULL, NULL } },
    { "matmul", { "1,70|70,9", NULL, NULL } },
    { "matmul", { "2,33,5|2,5,130", NULL, NULL } },
    { "permute", { "19,35", NULL, "from 1,0" } },
    { "permute", { "5,3,17", NULL, "from 1,0,2" } },
    { "permute", { "9,3,2,18", NULL, "from 3,1,0,2" } },
    { "permute", { "3,16,8", NULL, "from 0,2,1" } },
    { "layer_norm", { "150,64", "64|64", NULL } },
    { "layer_norm", { "5,133", "133|133", NULL } },
    { "layer_norm", { "40,36", "36|36", NULL } },
    { "layer_norm", { "3,7,19", "7,19", "dims 2 no_center" } },
    { "layer_norm", { "9,70", "70", "rms no_center" } },
    { "add_layer_norm", { "150,64|150,64", "64|64", NULL } },
    { "add_layer_norm", { "5,133|5,133", "133|133", NULL } },
    { "add_layer_norm", { "3,7,19|3,7,19", "7,19", "dims 2 no_center" } },
    { "add_layer_norm", { "9,70|9,70", "70", "rms no_center" } },
    { "rounded", { "7,9,5", NULL, "to 0 odd" } },
    { "rounded", { "7,9,5", NULL, "to 1 times 4 odd" } },
    { "rounded", { "7,9,5", NULL, "to 2 times 8 odd" } },
    { "rounded", { "7,9,5", NULL, "to 3 times 4 odd" } },
    { "rounded", { "7,9,5", NULL, "to 4 odd" } },
    { "rounded", { "7,9,5", NULL, "to 5 odd" } },
    { "whole_numbers", { "7,9|7,9", NULL, "how 0 times 16" } },
    { "whole_numbers", { "7,9|7,9", NULL, "how 1 times 1024 odd" } },
    { "whole_numbers", { "7,9|7,1", NULL, "how 2 times 16 odd" } },
    { "whole_numbers", { "7,9|1,9", NULL, "how 3 times 16" } },
    { "whole_numbers", { "7,9|7,9", NULL, "how 4 times 16 odd" } },
    { "whole_numbers", { "37,3|37,3", NULL, "how 5 times 16" } },
    { "whole_numbers", { "19", NULL, "left 96 how 5 times 16 odd" } },
    { "whole_numbers", { "37,3|37,3", NULL, "how 6 times 16" } },
    { "whole_numbers", { "19", NULL, "right 12 how 6 times 16 odd" } },
    { "erfinv", { "7,33", NULL, "inside odd" } },
    { "bessel_i0", { "7,33", NULL, "times 16 odd" } },
    { "argmax", { "5,40", NULL, "odd" } },
    { "argmax", { "7,9,33", NULL, "axis 1 odd" } },
    { "argmax", { "1,7", NULL, "axis 0" } },
    { "argmax", { "3,256", NULL, NULL } },
    { "argmax", { "2,1100", NULL, NULL } },
    { "product", { "5,17", NULL, "positive" } },
    { "product", { "2,1100", NULL, NULL } },
    { "product", { "7,9,33", NULL, "axis 0" } },
    { "product", { "4,9", NULL, "odd" } },
    { "sparsemax", { "7,9,33", NULL, "axis 1" } },
    { "sparsemax", { "2,1100", NULL, NULL } },
    { "sparsemax", { "3,70", NULL, "times 16" } },
    { "band", { "3,17,19", NULL, "low -4 high 5" } },
    { "band", { "40,33", NULL, "low 0 high 99" } },
    { "cumprod", { "5,17", NULL, NULL } },
    { "cumprod", { "2,70", NULL, NULL } },
    { "cumprod", { "2,70", NULL, "positive" } },
    { "cumprod", { "3,9,35", NULL, "axis 1" } },
    { "sorted", { "5,17", NULL, "odd" } },
    { "sorted", { "2,70", NULL, "odd" } },
    { "sorted", { "1100,2", NULL, "axis 0 odd" } },
    { "sorted", { "2,513", NULL, NULL } },
    { "sorted", { "7,9,33", NULL, "axis 1" } },
    { "argsort", { "5,17", NULL, "odd" } },
    { "argsort", { "3,256", NULL, "odd" } },
    { "argsort", { "600,2", NULL, "axis 0 odd" } },
    { "argsort", { "7,9,33", NULL, "axis 0" } },
    { "take_along", { "7,33|7,1", NULL, "times 8" } },
    { "take_along", { "5,6,7|5,70,7", NULL, "axis 1 times 2 odd" } },
    { "take_along", { "2,9|2,600", NULL, "times 4" } },
    { "take_along", { "300,2|5,2", NULL, "axis 0 times 64" } },
    { "hsv", { "9,7,3", NULL, "positive" } },
    { "hsv", { "9,7,3", NULL, NULL } },
    { "hsv", { "9,7,3", NULL, "to_rgb" } },
    { "resize", { "9,11,3", NULL, "axis 0 length 9 size 17 bilinear" } },
    { "resize", { "9,11,3", NULL, "axis 1 length 11 size 4 bilinear antialias" } },
    { "resize", { "9,11,3", NULL, "axis 1 length 6 begin 3 size 13" } },
    { "resize", { "33,5", NULL, "axis 0 length 33 size 20 bicubic" } },
    { "resize", { "33,5", NULL, "axis 0 length 40 begin -3 size 70 lanczos3 fill 0.5" } },
    { "resize", { "33,5", NULL, "axis 0 length 33 size 7 area" } },
    { "resize", { "33,5", NULL, "axis 0 length 33 size 40 bilinear scale -1.5 translation 40" } },
    { "resize", { "5,33", NULL, "axis 1 length 33 begin 2 size 33 fill 1" } },
    { "erase", { "19,17,3", NULL, "colours maybe fill 0.5" } },
    { "erase", { "9,13,2", NULL, "noise area 0.75" } },
    { "recolor", { "9,7,3", NULL, "brightness a -1 a_to 1" } },
    { "recolor", { "21,17,3", NULL, "contrast a 0.5 a_to 1.5" } },
    { "recolor", { "7,9,5", NULL, "contrast a 0.5 a_to 3" } },
    { "recolor", { "9,7,3", NULL, "fade a -1 a_to 1" } },
    { "recolor", { "9,7,1", NULL, "gray a 0.5 b 0 b_to 1" } },
    { "recolor", { "9,7,3", NULL, "saturate a 0 a_to 1 positive low 0 high 1" } },
    { "recolor", { "9,7,3", NULL, "hue a 0 a_to 1 b 0 b_to 1" } },
    { "recolor", { "9,7,3", NULL, "posterize a 1 a_to 8" } },
    { "recolor", { "9,7,3", NULL, "posterize a 3 times 128 low 0 high 255" } },
    { "recolor", { "9,7,3", NULL, "solarize a -20 a_to 20 b 0 b_to 255" } },
    { "recolor", { "21,17,3", NULL, "stretch low -3 high 5" } },
    { "smooth", { "9,11,3", NULL, "sharpens first 0 first_to 1" } },
    { "smooth", { "9,11,2", NULL, "size 3,5 maybe first 0.5 deviation 0.5 deviation_to 2" } },
    { "equalize", { "9,11,3", NULL, "low -2 high 2" } },
    { "equalize", { "9,11,3", NULL, "low -2 high 2 bins 16" } },
    { "one_of", { "9,7,3", NULL, NULL } },
    { "one_of", { "4,5,3", NULL, "always 1" } },
    { "one_of", { "4,5,3", NULL, "always 2" } },
    { "one_of", { "4,5,3", NULL, "always 4" } },
    { "frames", { "2,97", NULL, "size 16 stride 5 hann" } },
    { "frames", { "70", NULL, "size 64 stride 9 hamming length 32 centred" } },
    { "frames", { "50", NULL, "size 4 stride 7" } },
    { "overlap", { "9,16", NULL, "size 16 stride 5 begin 3 count 50 hann inverse" } },
    { "overlap", { "7,4", NULL, "size 4 stride 7 begin 2 count 40" } },
    { "clahe", { "9,14,2", NULL, "low -2 high 2" } },
    { "clahe", { "13,11,1", NULL, "grid 3,2 limit 1.5 low -2 high 2" } },
    { "augmix", { "9,7,3|9,7,3|9,7,3|9,7,3", NULL, "alpha 0.7" } },
    { "elastic", { "22,25,3", NULL, "reflect maybe" } },
    { "elastic", { "23,21,2", NULL, "wrap scale 0.5" } },
    { "mel_spectrogram", { "90", NULL, "size 32 hann" } },
    { "mel_spectrogram", { "90", NULL, "size 30 hamming length 20 decibels top 9" } },
    { "fourier", { "2,96,2", NULL, "size 96" } },
    { "fourier", { "22,2", NULL, "size 22" } },
    { "fourier", { "2,70", NULL, "size 64 from_reals" } },
    { "fourier", { "50", NULL, "size 63 from_reals" } },
    { "fourier", { "40,2", NULL, "size 64 to_reals" } },
    { "fourier", { "31,2", NULL, "size 121 to_reals" } },
    { "cholesky", { "2,7,7", NULL, "definite" } },
    { "cholesky", { "35,35", NULL, "definite" } },
    { "determinant", { "3,5,5", NULL, NULL } },
    { "determinant", { "2,1,1", NULL, "odd" } },
    { "determinant", { "5,5", NULL, "odd" } },
    { "log_determinant", { "2,7,7", NULL, "times 0.5" } },
    { "log_determinant", { "34,34", NULL, NULL } },
    { "inverse", { "2,6,6", NULL, NULL } },
    { "inverse", { "35,35", NULL, "definite" } },
    { "solve", { "2,6,6|2,6,3", NULL, NULL } },
    { "qr", { "2,7,5", NULL, NULL } },
    { "qr", { "9,4", NULL, "complete" } },
    { "qr", { "40,3", NULL, NULL } },
    { "singular_values", { "2,7,5", NULL, NULL } },
    { "singular_values", { "3,130", NULL, NULL } },
    { "pseudo_inverse", { "2,5,7", NULL, NULL } },
    { "pseudo_inverse", { "130,2", NULL, NULL } },
    { "solve", { "3,3|3,40", NULL, "definite" } },
    { "solve", { "33,33|33,2", NULL, "definite" } },
};
enum { KERNEL_CASES = sizeof kernel_cases / sizeof *kernel_cases };

/* The narrow type: KEEL_FLOAT16 where a test says so. Arrays of it are of keel_bf16 all the same,
 * which has the same size. */
static keel_dtype bench_held = KEEL_BFLOAT16;

/* For a loop over what values may be stored in: float32, bfloat16 and float16. Whether it is
 * narrow. */
enum { BENCH_TYPES = 3 };
static inline bool bench_choose(int type)
{
    bench_held = type == 2 ? KEEL_FLOAT16 : KEEL_BFLOAT16;
    return type > 0;
}

/* One op twice over the same numbers: in float32, and held in the narrow type where `both`. */
typedef struct bench {
    keel_node wide, narrow;
    keel_spec wide_in[IN_MAX], narrow_in[IN_MAX], weight_spec[WEIGHTS_MAX];
    _Alignas(16) char args[4096];
    keel_step_facts step;
    int64_t rows;
    bool both;
    float *in[IN_MAX], *weight[WEIGHTS_MAX], *out_grad;
    float *more_grad[OUT_MAX];       /* of second outputs and so on */
    keel_bf16 *more_grad16[OUT_MAX]; /* of those that are values of the row, not states */
    keel_bf16 *in16[IN_MAX], *out_grad16;
    double *merged, *merged_backward;
} bench;

typedef struct results { /* of a pass; values are narrow where it ran on such */
    void *out, *saved[SAVED_MAX], *in_grad[IN_MAX];
    void *more_out[OUT_MAX]; /* as more_grad */
    float *weight_grad[WEIGHTS_MAX];
    double *partial;
} results;

/* ---- numbers --------------------------------------------------------------------------------- */

static uint32_t seed = 1;
static inline float draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)((int)(seed >> 26) - 32) / 16;
}

static inline float *numbers(int64_t count, bool positive)
{
    float *f = keel_aligned_calloc((size_t)count, sizeof *f);
    for (int64_t i = 0; i < count; i++) f[i] = positive ? fabsf(draw()) + 0.5f : draw();
    return f;
}

/* Numbers on the diagonals of matrices so large that these are positive definite. */
static inline void weigh_diagonals(float *f, int64_t count, int64_t n)
{
    for (int64_t i = 0; i < count; i++)
        if (i / n % n == i % n) f[i] = floorf(fabsf(f[i])) + 2 * (float)n;
}

/* What counts is far from zero, and what does not is far from that; bfloat16 holds both. */
static inline void leave_out_by(float *x, const float *mask, int64_t count, int64_t channels)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = mask[i / channels] > 0.5f ? 160 + rintf(8 * x[i]) : -240;
}

/* What the words of a case make of the numbers of an input. */
static inline void bend(float *f, int64_t count, const char *args)
{
    static const float odd[] = { NAN, INFINITY, -INFINITY, -0.0f, 0 };
    double times = keel_case_has(args, "inside") ? 0.5 : 1; /* -1 to 1 */
    keel_case_number(args, "times", &times);
    for (int64_t i = 0; i < count; i++) f[i] *= (float)times;
    for (int64_t i = 0; keel_case_has(args, "odd") && i < count; i += 3) f[i] = odd[i / 3 % 5];
}

static inline void narrow_to(keel_bf16 *to, const float *from, int64_t count)
{
    (bench_held == KEEL_FLOAT16 ? keel_f16_narrow : keel_bf16_narrow)(to, from, count);
}

static inline float wide_of(keel_bf16 x)
{
    return bench_held == KEEL_FLOAT16 ? keel_f16_wide(x) : keel_bf16_wide(x);
}

static inline keel_bf16 *narrowed(const float *f, int64_t count)
{
    keel_bf16 *b = keel_aligned_calloc((size_t)count, sizeof *b);
    narrow_to(b, f, count);
    return b;
}

/* The kernel's pass for the narrow type. */
static inline keel_run narrow_pass(const keel_kernel *k, keel_pass pass)
{
    return (bench_held == KEEL_FLOAT16 ? k->half : k->narrow)[pass];
}

/* ---- the bench ------------------------------------------------------------------------------- */

static inline keel_status node_of(keel_node *n, keel_spec *in, bench *b, const keel_op *op,
                                  const keel_case *c, bool training, keel_dtype held)
{
    *n = (keel_node){ .op = op,
                      .args = b->args,
                      .layer = "a layer",
                      .training = training,
                      .backward = training,
                      .real = KEEL_FLOAT32,
                      .held = held,
                      .stream = 5,
                      .in = in,
                      .weight = b->weight_spec };
    n->n_in = keel_case_shapes(c->in, held, in, IN_MAX);
    n->n_weight = keel_case_shapes(c->weights, KEEL_FLOAT32, b->weight_spec, WEIGHTS_MAX);
    return keel_node_infer(n);
}

/* Whether output i is among those that a narrow node holds in the narrow type. */
static inline bool is_narrow(const bench *b, int i)
{
    return b->both && b->narrow.out[i].dtype == bench_held;
}

static inline keel_status bench_open(bench *b, const keel_op *op, const keel_case *c, bool training,
                                     int64_t rows, bool both)
{
    *b = (bench){ .rows = rows,
                  .step = { .seed = 7, .epoch = 3, .first_row = 1000, .rows = rows },
                  .both = both };
    assert_true(op->args_size <= sizeof b->args);
    if (op->args_for_case) op->args_for_case(b->args, c->args);
    KEEL_TRY(node_of(&b->wide, b->wide_in, b, op, c, training, KEEL_FLOAT32));
    if (both) KEEL_TRY(node_of(&b->narrow, b->narrow_in, b, op, c, training, bench_held));
    for (int i = 0; i < b->wide.n_in; i++) {
        const int64_t n = rows * keel_row_count(&b->wide_in[i]);
        b->in[i] = numbers(n, keel_case_has(c->args, "positive"));
        bend(b->in[i], n, c->args);
        if (i == 0 && keel_case_has(c->args, "definite"))
            weigh_diagonals(b->in[i], n, b->wide_in[i].shape.dim[b->wide_in[i].shape.rank - 1]);
        if (both) b->in16[i] = narrowed(b->in[i], n);
    }
    if (keel_case_has(c->args, "strange")) {
        const int64_t n = rows * keel_row_count(&b->wide_in[0]);
        const keel_shape *shape = &b->wide_in[0].shape;
        leave_out_by(b->in[0], b->in[1], n, shape->dim[shape->rank - 1]);
        if (both) narrow_to(b->in16[0], b->in[0], n);
    }
    for (int i = 0; i < b->wide.n_weight; i++) {
        const int64_t n = keel_row_count(&b->wide.weight[i]);
        b->weight[i] = numbers(n, strstr(op->name, "batch_norm") != NULL);
        /* so that bfloat16 holds a quarter of the sum of nine, which Winograd makes of them */
        const bool nine = strcmp(op->name, "conv2d") == 0 || strcmp(op->name, "conv3d") == 0;
        for (int64_t e = 0; both && nine && e < n; e++)
            b->weight[i][e] = fminf(fmaxf(b->weight[i][e], -1.75f), 1.75f);
    }
    b->out_grad = numbers(rows * keel_row_count(&b->wide.out[0]), false);
    if (both) b->out_grad16 = narrowed(b->out_grad, rows * keel_row_count(&b->wide.out[0]));
    assert_true(b->wide.n_out <= OUT_MAX);
    for (int i = 1; i < b->wide.n_out; i++) {
        const int64_t n = rows * keel_row_count(&b->wide.out[i]);
        b->more_grad[i] = numbers(n, false);
        if (is_narrow(b, i)) b->more_grad16[i] = narrowed(b->more_grad[i], n);
    }
    return KEEL_OK;
}

static inline void bench_close(bench *b)
{
    for (int i = 0; i < IN_MAX; i++) keel_free(b->in[i]), keel_free(b->in16[i]);
    for (int i = 0; i < WEIGHTS_MAX; i++) keel_free(b->weight[i]);
    for (int i = 0; i < OUT_MAX; i++) keel_free(b->more_grad[i]), keel_free(b->more_grad16[i]);
    keel_free(b->out_grad);
    keel_free(b->out_grad16);
    keel_free(b->merged);
    keel_free(b->merged_backward);
    keel_node_clear(&b->wide);
    keel_node_clear(&b->narrow);
}

/* ---- results --------------------------------------------------------------------------------- */

static inline void *begin(int64_t count, bool narrow)
{
    float *f = numbers(count, false);
    if (!narrow) return f;
    keel_bf16 *b = narrowed(f, count);
    keel_free(f);
    return b;
}

/* Gradients start as equal numbers on both sides, so that adding is seen; outputs start as rubbish.
 */
static inline void results_open(results *r, const bench *b, bool narrow)
{
    const keel_node *n = &b->wide;
    *r = (results){ 0 };
    seed = 99;
    r->out = begin(b->rows * keel_row_count(&n->out[0]), narrow);
    for (int i = 1; i < n->n_out; i++)
        r->more_out[i] = begin(b->rows * keel_row_count(&n->out[i]), narrow && is_narrow(b, i));
    for (int i = 0; i < n->n_saved; i++)
        r->saved[i] = keel_aligned_calloc((size_t)(b->rows * keel_row_count(&n->saved[i])),
                                          keel_dtype_size(n->saved[i].dtype));
    for (int i = 0; i < n->n_in; i++)
        r->in_grad[i] = begin(b->rows * keel_row_count(&n->in[i]), narrow);
    for (int i = 0; i < n->n_weight; i++)
        r->weight_grad[i] = numbers(keel_row_count(&n->weight[i]), false);
    const int64_t one = n->partial > n->partial_backward ? n->partial : n->partial_backward;
    r->partial = keel_aligned_calloc((size_t)(one * b->rows) + 1, sizeof(double));
}

static inline void results_free(results *r)
{
    keel_free(r->out);
    for (int i = 0; i < OUT_MAX; i++) keel_free(r->more_out[i]);
    for (int i = 0; i < SAVED_MAX; i++) keel_free(r->saved[i]);
    for (int i = 0; i < IN_MAX; i++) keel_free(r->in_grad[i]);
    for (int i = 0; i < WEIGHTS_MAX; i++) keel_free(r->weight_grad[i]);
    keel_free(r->partial);
}

/* ---- running --------------------------------------------------------------------------------- */

static keel_derived *copies[COPIES_MAX];
static int n_copies;
static inline keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    const bench *b = context;
    keel_derived *d = keel_calloc(1, sizeof *d);
    *d = *want;
    d->data = keel_aligned_calloc(want->bytes, 1);
    d->refresh(d, b->weight[d->weight]);
    assert_true(n_copies < COPIES_MAX);
    copies[n_copies++] = d;
    *got = d;
    return KEEL_OK;
}

static inline void forget_copies(void)
{
    while (n_copies > 0) {
        keel_derived *d = copies[--n_copies];
        if (d->release) d->release(d->plan);
        keel_free(d->data);
        keel_free(d);
    }
}

static inline keel_run reference_of(const keel_op *op, keel_pass pass)
{
    const keel_run all[] = { op->forward[0], op->backward[0], op->weights[0], op->partial[0],
                             op->partial_backward[0] };
    return all[pass];
}

/* Rows [first, first + rows) of the bench as the call of a pass. */
static inline void call_some(bench *b, keel_run run, bool narrow, keel_pass pass,
                             const keel_prepare *p, results *r, int64_t first, int64_t rows)
{
    const keel_node *n = p->node;
    const size_t size = narrow ? sizeof(keel_bf16) : sizeof(float);
    const void *in[IN_MAX];
    void *in_grad[IN_MAX];
    bool in_adds[IN_MAX];
    void *scratch = keel_aligned_calloc((size_t)p->scratch + 64, 1);
    memset(scratch, 0xff, (size_t)p->scratch); /* NaN: nobody may rely on zeros */
    const size_t at_out = (size_t)(first * keel_row_count(&n->out[0])) * size;
    void *out[OUT_MAX] = { (char *)r->out + at_out };
    void *saved[SAVED_MAX], *weight_grad[WEIGHTS_MAX];
    const void *out_grad[OUT_MAX] = { (narrow ? (char *)b->out_grad16 : (char *)b->out_grad) +
                                      at_out };
    const void *weight[WEIGHTS_MAX];
    keel_call c = { .node = n,
                    .step = &b->step,
                    .rows = rows,
                    .row = 40 + first,
                    .in = in,
                    .out = out,
                    .out_grad = out_grad,
                    .saved = saved,
                    .weight = weight,
                    .weight_grad = weight_grad,
                    .in_grad = in_grad,
                    .in_adds = in_adds,
                    .weight_adds = p->weight_adds,
                    .partial = r->partial,
                    .merged = pass == KEEL_BACKWARD ? b->merged_backward : b->merged,
                    .merged_forward = b->merged,
                    .scratch = scratch,
                    .plan = p->plan };
    for (int i = 0; i < n->n_in; i++) {
        const size_t at = (size_t)(first * keel_row_count(&n->in[i])) * size;
        in[i] = (narrow ? (const char *)b->in16[i] : (const char *)b->in[i]) + at;
        in_grad[i] = (char *)r->in_grad[i] + at;
        in_adds[i] = p->in_adds;
    }
    for (int i = 1; i < n->n_out; i++) {
        const size_t at = (size_t)(first * keel_row_count(&n->out[i])) * size;
        if (narrow && !is_narrow(b, i)) continue; /* nobody reads what is not a value of the row */
        out[i] = (char *)r->more_out[i] + at;
        out_grad[i] = (narrow ? (char *)b->more_grad16[i] : (char *)b->more_grad[i]) + at;
    }
    for (int i = 0; i < n->n_saved; i++)
        saved[i] = (char *)r->saved[i] + (size_t)(first * keel_row_count(&n->saved[i])) *
                                             keel_dtype_size(n->saved[i].dtype);
    for (int i = 0; i < n->n_weight; i++) {
        weight[i] = b->weight[i];
        weight_grad[i] = r->weight_grad[i];
    }
    if (pass == KEEL_PARTIAL) c.partial += first * n->partial;
    if (pass == KEEL_PARTIAL_BACKWARD) c.partial += first * n->partial_backward;
    run(&c);
    assert_int_equal(keel_call_status_take(), KEEL_OK);
    keel_free(scratch);
}

/* Does the kernel take this pass? Asked before the reference runs, which takes its time. */
static inline bool pass_takes(bench *b, const keel_kernel *kernel, keel_pass pass, bool adds)
{
    keel_prepare p = { .node = b->both ? &b->narrow : &b->wide,
                       .pass = pass,
                       .rows = b->rows,
                       .in_adds = adds,
                       .weight_adds = adds,
                       .derive = derive,
                       .context = b };
    if (!(b->both ? narrow_pass(kernel, pass) : kernel->run[pass])) return false;
    const keel_status s = keel_kernel_prepare(kernel, &p);
    if (s == KEEL_OK && kernel->release) kernel->release(p.plan);
    forget_copies();
    return s != KEEL_EUNSUP;
}

/* One pass in `parts` calls: the kernel's, its narrow one where the bench has both, or with NULL
 * the reference in float32. false: the kernel has no such pass, or declines. */
static inline bool pass_run(bench *b, const keel_kernel *kernel, keel_pass pass, bool adds,
                            int parts, results *r)
{
    const bool narrow = kernel && b->both;
    const keel_run run = !kernel  ? reference_of(b->wide.op, pass)
                         : narrow ? narrow_pass(kernel, pass)
                                  : kernel->run[pass];
    if (!run) return false;
    for (int i = 0; i < parts; i++) {
        const int64_t first = i * b->rows / parts, rows = (i + 1) * b->rows / parts - first;
        keel_prepare p = { .node = narrow ? &b->narrow : &b->wide,
                           .pass = pass,
                           .rows = rows,
                           .in_adds = adds,
                           .weight_adds = adds || i > 0,
                           .scratch = kernel ? 0 : b->wide.scratch,
                           .derive = derive,
                           .context = b };
        if (rows == 0) continue;
        if (kernel) {
            const keel_status s = keel_kernel_prepare(kernel, &p);
            if (s == KEEL_EUNSUP) return false;
            if (s < 0) fail_msg("%s_%s: prepare: %s", kernel->op->name, kernel->name, keel_error());
        }
        call_some(b, run, narrow, pass, &p, r, first, rows);
        if (kernel && kernel->release) kernel->release(p.plan);
        forget_copies();
    }
    return true;
}

/* Records of the whole, by the reference: what forward and backward of such an op read. */
static inline void merge(bench *b)
{
    const keel_node *n = &b->wide;
    results r;
    results_open(&r, b, false);
    if (n->merged > 0) {
        b->merged = keel_aligned_calloc((size_t)n->merged, sizeof(double));
        pass_run(b, NULL, KEEL_PARTIAL, false, 1, &r);
        keel_node_merge(n, false, r.partial, b->rows, b->merged);
        pass_run(b, NULL, KEEL_FORWARD, false, 1, &r); /* what it saves is read below */
    }
    if (n->merged_backward > 0) {
        b->merged_backward = keel_aligned_calloc((size_t)n->merged_backward, sizeof(double));
        pass_run(b, NULL, KEEL_PARTIAL_BACKWARD, false, 1, &r);
        keel_node_merge(n, true, r.partial, b->rows, b->merged_backward);
    }
    results_free(&r);
}

/* Has the op this pass here? Weight gradients read off the merged record need one. */
static inline bool has_pass(const bench *b, keel_pass pass)
{
    const keel_node *n = &b->wide;
    if (!reference_of(n->op, pass)) return false;
    if (pass == KEEL_PARTIAL) return n->partial > 0;
    if (pass == KEEL_PARTIAL_BACKWARD) return n->partial_backward > 0;
    return pass != KEEL_WEIGHTS || !n->op->weights_from_merged || b->merged_backward;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Half a unit in the last place of the narrow number nearest to x. */
static inline double half_unit(double x)
{
    const int bits = bench_held == KEEL_FLOAT16 ? 11 : 8, least = bits == 11 ? -13 : -125;
    int e;
    if (x == 0 || !isfinite(x)) return 0;
    frexp(x, &e);
    return ldexp(1, (e < least ? least : e) - bits - 1);
}

/* Whether numbers that are not finite may be equal, too, and what is beyond the narrow type: for
 * ops whose cases divide by 0 and the like. Elsewhere it would hide a fault. */
static bool same_unbounded = false;

/* How often a narrow result may be rounded, and whether gradients of weights beside narrow values
 * are. */
static int narrow_roundings = 1;
static bool gradients_rounded = false;
/* For a kernel that rounds what it goes on with: by how many units of the narrow type at the
 * largest number results may differ. */
static int narrow_inside = 0;

/* Within a hundred thousandth of the largest, for sums in another order; got is float, or narrow
 * where `narrow`: then rounded once more. rounded: got is float, but was narrow before it was
 * added. */
static inline void same_or_rounded(const char *what, const float *want, const void *got,
                                   bool narrow, bool rounded, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(want[i])) most = fmax(most, fabs((double)want[i]));
    /* what is rounded before it is added may be as large as any */
    const double more = rounded                          ? 2 * half_unit(most)
                        : narrow && narrow_roundings > 1 ? half_unit(most)
                                                         : narrow_inside * 2 * half_unit(most);
    for (int64_t i = 0; i < n; i++) {
        const double x = want[i];
        const double y = narrow ? wide_of(((const keel_bf16 *)got)[i]) : ((const float *)got)[i];
        const double room = 1e-5 * most + 1e-30 + (narrow ? half_unit(x) * (1 + 1e-6) : 0) + more;
        keel_bf16 stored = 0;
        if (narrow) narrow_to(&stored, &want[i], 1);
        const bool alike = same_unbounded && (x == y || (isnan(x) && isnan(y)) ||
                                              (narrow && isinf(y) && wide_of(stored) == y));
        if (!(fabs(x - y) <= room || alike))
            fail_msg("%s: element %lld is %.9g, the reference has %.9g (%.3g may lie between; "
                     "largest %.3g)",
                     what, (long long)i, y, x, room, most);
    }
}

static inline void same(const char *what, const float *want, const void *got, bool narrow,
                        int64_t n)
{
    same_or_rounded(what, want, got, narrow, false, n);
}

static inline void same_doubles(const char *what, const double *want, const double *got, int64_t n)
{
    double most = 0;
    for (int64_t i = 1; i < n; i++) most = fmax(most, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(want[i] - got[i]) <= 4e-7 * most))
            fail_msg("%s: record [%lld] is %.12g, the reference has %.12g", what, (long long)i,
                     got[i], want[i]);
}

/* What a pass writes: of the reference, and of a kernel. */
static inline void compare(const bench *b, keel_pass pass, const char *name, const results *want,
                           const results *got)
{
    static const char *const passes[] = { "forward", "backward", "weights", "partial",
                                          "partial_backward" };
    const keel_node *n = &b->wide;
    char what[200];
    snprintf(what, sizeof what, "%s %s of %lld rows", name, passes[pass], (long long)b->rows);
    if (pass == KEEL_FORWARD) {
        same(what, want->out, got->out, b->both, b->rows * keel_row_count(&n->out[0]));
        for (int i = 1; i < n->n_out; i++)
            same(what, want->more_out[i], got->more_out[i], is_narrow(b, i),
                 b->rows * keel_row_count(&n->out[i]));
        for (int i = 0; i < n->n_saved; i++) {
            const int64_t saved = b->rows * keel_row_count(&n->saved[i]);
            if (keel_dtype_is_real(n->saved[i].dtype)) /* sums; else which element it was */
                same(what, want->saved[i], got->saved[i], false, saved);
            else
                assert_memory_equal(want->saved[i], got->saved[i],
                                    (size_t)saved * keel_dtype_size(n->saved[i].dtype));
        }
    }
    for (int i = 0; pass == KEEL_BACKWARD && i < n->n_in; i++)
        same(what, want->in_grad[i], got->in_grad[i], b->both, b->rows * keel_row_count(&n->in[i]));
    for (int i = 0; pass == KEEL_WEIGHTS && i < n->n_weight; i++)
        same_or_rounded(what, want->weight_grad[i], got->weight_grad[i], false,
                        b->both && gradients_rounded, keel_row_count(&n->weight[i]));
    if (pass == KEEL_PARTIAL) same_doubles(what, want->partial, got->partial, n->partial * b->rows);
    if (pass == KEEL_PARTIAL_BACKWARD)
        same_doubles(what, want->partial, got->partial, n->partial_backward * b->rows);
}

#endif
