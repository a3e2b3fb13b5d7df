/* The args of ops/pseudo_inverse.c. */
#ifndef KEEL_OPS_PSEUDO_INVERSE_H
#define KEEL_OPS_PSEUDO_INVERSE_H

typedef struct keel_pseudo_inverse_args {
    double least; /* singular values below this part of the largest count as 0 */
} keel_pseudo_inverse_args;

#endif
