/* The arguments of the cross-entropies, shared with the metrics of the same names. */
#ifndef KEEL_LOSSES_CROSSENTROPY_H
#define KEEL_LOSSES_CROSSENTROPY_H
#include "losses/loss.h"

typedef struct keel_crossentropy { /* binary and categorical */
    int reduction;
    bool from_logits;
    double label_smoothing;
    int64_t axis;
} keel_crossentropy;

typedef struct keel_sparse_crossentropy {
    int reduction;
    bool from_logits;
    int64_t ignore_class; /* KEEL_INT_NULL: none */
    int64_t axis;
} keel_sparse_crossentropy;

extern const keel_loss keel_loss_binary_crossentropy;
extern const keel_loss keel_loss_categorical_crossentropy;
extern const keel_loss keel_loss_sparse_categorical_crossentropy;

#endif
