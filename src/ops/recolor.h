/* The arguments of the op recolor: the colours of each image are changed by numbers of its own. */
#ifndef KEEL_OPS_RECOLOR_H
#define KEEL_OPS_RECOLOR_H
#include "ops/draws.h"

/* In the formulas a is draw 0 and b draw 1, of a row; low and high are the values' range. */
typedef enum keel_recolor_kind {
    KEEL_RECOLOR_BRIGHTNESS, /* x + a (high - low), clipped */
    KEEL_RECOLOR_CONTRAST,   /* a (x - mean) + mean, clipped; mean is that of the channel */
    KEEL_RECOLOR_FADE,       /* x + a (gray - x), clipped */
    KEEL_RECOLOR_GRAY,       /* gray where b < a */
    KEEL_RECOLOR_INVERT,     /* high - x where b < a */
    KEEL_RECOLOR_SATURATE,   /* saturation times a / (1 - a), clipped */
    KEEL_RECOLOR_POSTERIZE,  /* the floor(a) highest bits of 8 */
    KEEL_RECOLOR_SOLARIZE,   /* of 0 to 255: x + a, clipped; its negative from b on */
    KEEL_RECOLOR_HUE,        /* of 0 to 1: hue + a / 2 of a turn, - a / 2 where b > 0.5; clipped */
    KEEL_RECOLOR_STRETCH     /* each channel to all of low to high; no draws */
} keel_recolor_kind;

typedef struct keel_recolor_args {
    keel_recolor_kind kind;
    keel_range range[2]; /* of draws 0 and 1 */
    keel_range values;   /* of the images */
    uint32_t first;      /* number of draw a: a layer of several changes draws others for each */
} keel_recolor_args;

/* Does it take images of so many channels? Colours are red, green and blue; gray is one channel. */
static inline bool keel_recolor_takes(keel_recolor_kind kind, int64_t channels)
{
    if (kind == KEEL_RECOLOR_SATURATE || kind == KEEL_RECOLOR_HUE) return channels == 3;
    if (kind == KEEL_RECOLOR_FADE || kind == KEEL_RECOLOR_GRAY)
        return channels == 1 || channels == 3;
    return true;
}

#endif
