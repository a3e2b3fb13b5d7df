/* The arguments of the op resize: as many places along one axis as are asked for. */
#ifndef KEEL_OPS_RESIZE_H
#define KEEL_OPS_RESIZE_H
#include "ops/op.h"
#include <math.h>

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

/* A kernel that reaches `radius` places; 0: the method has its own rule. */
static inline double keel_resize_radius(const keel_resize_args *a)
{
    switch (a->method) {
    case KEEL_RESIZE_BILINEAR:
        return a->antialias || a->moves;
    case KEEL_RESIZE_BICUBIC:
        return a->antialias || a->moves ? 2 : 0;
    case KEEL_RESIZE_LANCZOS3:
        return 3;
    case KEEL_RESIZE_LANCZOS5:
        return 5;
    default:
        return 0;
    }
}

/* Places of the input for each one of the output. */
static inline float keel_resize_inverse(const keel_resize_args *a)
{
    if (a->moves) return 1 / (float)a->scale;
    return (float)(1.0 / (double)((float)a->size / (float)a->length));
}

/* How much wider the kernel is where places are taken together. */
static inline float keel_resize_widen(const keel_resize_args *a)
{
    const float scale = keel_resize_inverse(a);
    return a->antialias && scale > 1 ? scale : 1;
}

/* At most so many places make one. */
static inline int64_t keel_resize_taps(const keel_resize_args *a)
{
    const double radius = keel_resize_radius(a);
    double taps = 1;
    if (radius > 0)
        taps = 2 * ceil(radius * (double)keel_resize_widen(a)) + 1;
    else if (a->method == KEEL_RESIZE_BILINEAR)
        taps = 2;
    else if (a->method == KEEL_RESIZE_BICUBIC)
        taps = 4;
    else if (a->method == KEEL_RESIZE_AREA)
        taps = ceil((double)a->length / (double)a->size) + 2;
    return taps < (double)a->length ? (int64_t)taps : a->length;
}

#endif
