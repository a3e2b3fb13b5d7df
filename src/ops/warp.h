/* The arguments of the op warp: each image is seen through a projection of its own. */
#ifndef KEEL_OPS_WARP_H
#define KEEL_OPS_WARP_H
#include "ops/draws.h"

typedef enum keel_warp_kind {
    KEEL_WARP_FLIP,      /* draw 0, of a row: mirrored where it is at most 0.5 */
    KEEL_WARP_CROP,      /* 0, 1: where the crop begins, as parts of the places it can begin at */
    KEEL_WARP_ROTATE,    /* 0: degrees, counter-clockwise */
    KEEL_WARP_ZOOM,      /* 0, 1: of height and width; above 1 the image becomes smaller */
    KEEL_WARP_TRANSLATE, /* 0, 1: down and to the right, as parts of height and width */
    KEEL_WARP_SHEAR,     /* 0, 1: down for each pixel to the right, and the other way round; of a
                            row, 2: both are negative above 0.5 */
    KEEL_WARP_LEAN,      /* where 1 < 0; 2 to 9: by how much corners move, as parts of where they
                            are: x and y of top left, top right, bottom left, bottom right */
    KEEL_WARP_MATRIX     /* no draw */
} keel_warp_kind;

typedef enum keel_warp_fill {                     /* what is seen outside of the image */
                              KEEL_FILL_REFLECT,  /* d c b a | a b c d | d c b a */
                              KEEL_FILL_CONSTANT, /* fill_value */
                              KEEL_FILL_WRAP,     /* a b c d | a b c d | a b c d */
                              KEEL_FILL_NEAREST   /* a a a a | a b c d | d d d d */
} keel_warp_fill;

typedef struct keel_warp_args {
    keel_warp_kind kind;
    keel_range range[3]; /* of draws 0, 1 and of those from 2 on */
    uint32_t first;      /* number of draw 0: a layer of several changes draws others for each */
    bool alike;          /* draw 1 is draw 0 */
    bool across, down;   /* flip: left to right, top to bottom */
    double matrix[8];    /* matrix: a0 a1 a2 b0 b1 b2 c0 c1 */
    int64_t size[2];     /* crop: height and width of the output */
    bool nearest;        /* the nearest pixel; else bilinear */
    keel_warp_fill fill;
    double fill_value;
} keel_warp_args;

/* The part of an image that is seen, in its own pixels or mirrored. */
typedef struct keel_view {
    int64_t top, left, height, width;
    bool mirrored, upside_down;
} keel_view;

/* A flip or a crop: it shows a part of its input. */
bool keel_warp_is_view(const keel_node *n);
/* What such a node shows of `v`, for the first row of a call, of which only node, step and row are
 * read. */
void keel_warp_show(const keel_call *c, keel_view *v);

#endif
