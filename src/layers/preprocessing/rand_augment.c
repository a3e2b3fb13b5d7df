/* RandAugment (Cubuk et al. 2019, arXiv 1909.13719): in training each image [H, W, C] goes through
 * some changes of one strength, drawn for it. A change that is drawn twice is the same both times,
 * as in Keras. */
#include "layers/preprocessing/_policy.h"

typedef struct args_t {
    keel_policy_args policy;
    int64_t num_ops;
} args_t;

static const keel_field fields[] = {
    KEEL_POLICY_FIELDS("0.5"),
    KEEL_INT(args_t, num_ops, "2", 0, 1000, "changes of an image, one after the other"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_value x = e->in[0];
    KEEL_TRY(keel_policy_check(e, true));
    for (int64_t i = 0; e->training && i < a->num_ops; i++) {
        const keel_policy_draws draws = { KEEL_POLICY_DRAWS + (uint32_t)i, 0 };
        KEEL_TRY(keel_emit_policy(e, &a->policy, draws, true, false, x, &x));
    }
    e->out[0] = x;
    return KEEL_OK;
}

const keel_layer keel_layer_rand_augment = {
    .type = { KEEL_LAYER_HEAD("RandAugment",
                              "Changes images in several ways by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = keel_policy_ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
