/* The arguments of the initializer Constant, for layers that make one. */
#ifndef KEEL_INITIALIZERS_CONSTANT_H
#define KEEL_INITIALIZERS_CONSTANT_H
#include <jansson.h>

typedef struct keel_constant_args {
    json_t *value; /* a number, or nested lists of numbers; NULL: `number` */
    double number;
} keel_constant_args;

#endif
