/* The args of ops/fourier.c. A complex number is two along the last dim: real, imaginary. */
#ifndef KEEL_OPS_FOURIER_H
#define KEEL_OPS_FOURIER_H
#include <stdbool.h>
#include <stdint.h>

typedef struct keel_fourier_args {
    int64_t size;    /* of the transform; inputs are cut off or filled with 0 to it */
    bool from_reals; /* [.., T] become the size / 2 + 1 frequencies [.., bins, 2] from 0 on */
    bool to_reals;   /* back from them, divided by the size; neither: [.., size, 2] stay so */
} keel_fourier_args;

#endif
