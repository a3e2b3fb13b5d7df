/* The arguments of the op resize: as many places along one axis as are asked for. */
#ifndef KEEL_OPS_RESIZE_H
#define KEEL_OPS_RESIZE_H
#include "ops/op.h"

typedef enum keel_resize_method { /* in the order of Keras's words in the layers' tables */
                                  KEEL_RESIZE_NEAREST,
                                  KEEL_RESIZE_BILINEAR,
                                  KEEL_RESIZE_BICUBIC,
                                  KEEL_RESIZE_LANCZOS3,
                                  KEEL_RESIZE_LANCZOS5,
                                  KEEL_RESIZE_AREA
} keel_resize_method;
#define KEEL_RESIZE_METHODS "nearest|bilinear|bicubic|lanczos3|lanczos5|area"

typedef struct keel_resize_args {
    int64_t axis, size;    /* of the output */
    int64_t begin, length; /* the places that are seen, some of which may be outside */
    double fill;           /* what is there */
    keel_resize_method method;
    bool antialias; /* where there are fewer places: each is made of all that it stands for */
    bool moves;     /* place x goes to x scale + translation, not to x size / length */
    double scale, translation;
} keel_resize_args;

#endif
