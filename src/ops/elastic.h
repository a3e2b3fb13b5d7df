/* The arguments of the op elastic: images are bent by a smooth random field. */
#ifndef KEEL_OPS_ELASTIC_H
#define KEEL_OPS_ELASTIC_H
#include "ops/draws.h"

typedef enum keel_elastic_fill {                        /* what is seen outside of the image */
                                 KEEL_ELASTIC_REFLECT,  /* c b | a b c d | d c b */
                                 KEEL_ELASTIC_CONSTANT, /* fill_value */
                                 KEEL_ELASTIC_WRAP,     /* c d | a b c d | a b c */
                                 KEEL_ELASTIC_NEAREST   /* a a | a b c d | d d d */
} keel_elastic_fill;

typedef struct keel_elastic_args {
    keel_range range[3]; /* of draws 0 and 1, of a row: bent where 1 is below 0; of 2: how much */
    bool nearest;        /* the nearest pixel; else bilinear */
    keel_elastic_fill fill;
    double fill_value;
    keel_range values; /* what comes out is clipped to */
} keel_elastic_args;

#endif
