/* The args of ops/whole_numbers.c. */
#ifndef KEEL_OPS_WHOLE_NUMBERS_H
#define KEEL_OPS_WHOLE_NUMBERS_H
#include "ops/args.h"

typedef enum keel_whole {
    KEEL_BITS_AND,
    KEEL_BITS_OR,
    KEEL_BITS_XOR,
    KEEL_SHIFT_LEFT,
    KEEL_SHIFT_RIGHT,
    KEEL_GREATEST_DIVISOR,
    KEEL_LEAST_MULTIPLE
} keel_whole;

typedef struct keel_whole_args {
    keel_binary_args operands;
    keel_whole how;
} keel_whole_args;

#endif
