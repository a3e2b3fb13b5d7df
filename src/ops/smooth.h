/* The arguments of the op smooth: images become a blend of themselves and of their neighbours. */
#ifndef KEEL_OPS_SMOOTH_H
#define KEEL_OPS_SMOOTH_H
#include "ops/draws.h"

typedef struct keel_smooth_args {
    bool sharpens;   /* draw 0, of a row, is the sharpness, 0.5 is as before; a 3x3 window */
    int64_t size[2]; /* else: of the Gaussian window, height and width */
    bool always;     /* without draws, by `deviation`, across and down */
    double deviation[2];
    keel_range range[3]; /* else: of draws 0 and 1, blurred where 1 < 0; of 2 and 3, deviations
                            across and down */
    uint32_t first;      /* number of draw 0: a layer of several changes draws others for each */
    keel_range values;   /* what comes out is clipped to */
} keel_smooth_args;

#endif
