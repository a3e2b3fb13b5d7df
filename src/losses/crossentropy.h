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

typedef struct keel_binary_focal {
    int reduction;
    bool apply_class_balancing, from_logits;
    double alpha, gamma, label_smoothing;
    int64_t axis;
} keel_binary_focal;

typedef struct keel_categorical_focal {
    int reduction;
    bool from_logits;
    keel_reals alpha; /* one, or one for each class */
    double gamma, label_smoothing;
    int64_t axis;
} keel_categorical_focal;

typedef struct keel_generalized_crossentropy {
    int reduction;
    double q;
} keel_generalized_crossentropy;

extern const keel_loss keel_loss_binary_crossentropy;
extern const keel_loss keel_loss_categorical_crossentropy;
extern const keel_loss keel_loss_sparse_categorical_crossentropy;

#endif
