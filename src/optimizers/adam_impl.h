/* What Adam and AdamW share: see adam_impl.c. */
#ifndef KEEL_OPTIMIZERS_ADAM_IMPL_H
#define KEEL_OPTIMIZERS_ADAM_IMPL_H
#include "optimizers/moments.h"

typedef struct keel_adam {
    keel_optimizer_common common;
    double beta_1, beta_2, epsilon;
    bool amsgrad;
} keel_adam;

#define KEEL_ADAM_FIELDS                                                                           \
    KEEL_MOMENTS_FIELDS(keel_adam, "how much of the mean square is kept",                          \
                        "added to the root of the mean square"),                                   \
        KEEL_BOOL(keel_adam, amsgrad, "false", "divide by the largest mean square so far")

keel_status keel_adam_slots(const void *args, const keel_weight_info *w, keel_slots *out);
void keel_adam_apply_f32(const keel_update *u);
void keel_adam_apply_f64(const keel_update *u);
void keel_adam_move_f32(const keel_update *u, keel_device_move *out);
void keel_adam_move_f64(const keel_update *u, keel_device_move *out);

#endif
