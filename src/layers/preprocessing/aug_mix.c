/* AugMix (Hendrycks et al. 2020, arXiv 1912.02781): in training each image [H, W, C] becomes a
 * blend of itself and of chains of changes of one strength. All is drawn for each image; Keras
 * draws it for a batch, and the names of the changes only once in a compiled step. */
#include "layers/preprocessing/_policy.h"
#include "ops/augmix.h"

enum { MOST = 64, DRAWS = KEEL_POLICY_DRAWS + 4 }; /* of chains and of changes; of a change */

typedef struct args_t {
    keel_policy_args policy;
    int64_t num_chains, chain_depth;
    double alpha;
    bool all_ops;
} args_t;

static const keel_field fields[] = {
    KEEL_POLICY_FIELDS("0.3"),
    KEEL_INT(args_t, num_chains, "3", 1, MOST, "chains that are blended"),
    KEEL_INT(args_t, chain_depth, "3", 0, MOST, "changes in each chain, some of which do nothing"),
    KEEL_FLOAT(args_t, alpha, "1.0", 1e-6, 1e9, "of the distributions of the shares"),
    KEEL_BOOL(args_t, all_ops, "true", "also change brightness, colour, contrast and sharpness"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int64_t chains = a->num_chains, depth = a->chain_depth;
    keel_augmix_args op = { .alpha = a->alpha, .first = (uint32_t)(chains * depth * DRAWS) };
    keel_value in[1 + MOST] = { e->in[0] };
    op.values = (keel_range){ a->policy.value_range.at[0], a->policy.value_range.at[1] };
    KEEL_TRY(keel_policy_check(e, a->all_ops));
    e->out[0] = e->in[0];
    if (!e->training) return KEEL_OK;
    for (int64_t k = 0; k < chains; k++) {
        in[1 + k] = e->in[0];
        for (int64_t i = 0; i < depth; i++) {
            const uint32_t first = (uint32_t)((k * depth + i) * DRAWS);
            const keel_policy_draws draws = { first + KEEL_POLICY_DRAWS, first };
            KEEL_TRY(
                keel_emit_policy(e, &a->policy, draws, a->all_ops, true, in[1 + k], &in[1 + k]));
        }
    }
    return keel_emit_on(e, &keel_op_augmix, &op, in, 1 + (int)chains, e->out);
}

const keel_layer keel_layer_aug_mix = {
    .type = { KEEL_LAYER_HEAD("AugMix",
                              "Blends images with changes of themselves by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = keel_policy_ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
