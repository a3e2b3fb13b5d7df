/* The arguments of the op hsv: colours as hue, saturation and value. */
#ifndef KEEL_OPS_HSV_H
#define KEEL_OPS_HSV_H
#include <stdbool.h>

typedef struct keel_hsv_args {
    bool to_rgb; /* from hue, saturation and value; else to them */
} keel_hsv_args;

#endif
