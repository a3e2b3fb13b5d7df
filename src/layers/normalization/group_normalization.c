/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with the statistics of a group of
 * channels over all places of a row. */
#include "layers/_turned.h"
#include "layers/normalization/_gamma_beta.h"
#include "layers/normalization/_unrounded.h"
#include "ops/group_norm.h"

KEEL_USES_OP(group_norm);

typedef struct args_t {
    int64_t groups, axis;
    double epsilon;
    KEEL_GAMMA_BETA;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, groups, "32", -1, 1e9, "groups of channels; -1: each is its own"),
    KEEL_INT(args_t, axis, "-1", 0, 0, "the channels"),
    KEEL_FLOAT(args_t, epsilon, "0.001", 0, 1e30, "added to the variance"),
    KEEL_GAMMA_BETA_FIELDS(args_t),
    { 0 },
};

static keel_status emit_last(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_weights w = { 0 };
    const int64_t channels = in->dim[in->rank - 1], groups = a->groups == -1 ? channels : a->groups;
    if (groups < 1 || channels % groups)
        return keel_fail(KEEL_EARG, "groups: %lld channels are not a multiple of %lld",
                         (long long)channels, (long long)groups);
    const keel_shape shape = KEEL_SHAPE(channels);
    if (a->scale) KEEL_TRY(keel_emit_weight(e, &KEEL_GAMMA(a, shape), &w));
    if (a->center) KEEL_TRY(keel_emit_weight(e, &KEEL_BETA(a, shape), &w));
    const keel_group_norm_args op = {
        .groups = groups, .epsilon = a->epsilon, .center = a->center, .scale = a->scale
    };
    return keel_emit_weighted(e, &keel_op_group_norm, &op, e->in[0], &w, e->out);
}

static keel_status emit_norm(keel_emit *e)
{
    const args_t *a = e->args;
    int64_t axis;
    KEEL_TRY(keel_row_axis(e, a->axis, &axis));
    return keel_emit_turned(e, axis, emit_last);
}

static keel_status emit(keel_emit *e)
{
    return emit_unrounded(e, emit_norm);
}

const keel_layer keel_layer_group_normalization = {
    .type = { KEEL_LAYER_HEAD("GroupNormalization", "Normalizes groups of channels of each row."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .uncast = true,
    .emit = emit,
};
