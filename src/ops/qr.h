/* The args of ops/qr.c. */
#ifndef KEEL_OPS_QR_H
#define KEEL_OPS_QR_H
#include "ops/cases.h"
#include <stdbool.h>

typedef struct keel_qr_args {
    bool complete; /* Q is square */
} keel_qr_args;

#endif
