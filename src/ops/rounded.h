/* The args of ops/rounded.c. */
#ifndef KEEL_OPS_ROUNDED_H
#define KEEL_OPS_ROUNDED_H

typedef enum keel_rounding {
    KEEL_FLOOR,
    KEEL_CEIL,
    KEEL_NEAREST,  /* halves to the even number */
    KEEL_TRUNC,    /* towards 0 */
    KEEL_SIGN,     /* -1, 0 or 1 */
    KEEL_SIGN_BIT, /* 1 if it is set, also of -0; else 0 */
    KEEL_TO_INT32, /* towards 0, which is +0, and what is beyond int32 to its ends */
    KEEL_TO_INT64
} keel_rounding;

typedef struct keel_rounded_args {
    keel_rounding to;
} keel_rounded_args;

#endif
