/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta. In training, mean and variance of a
 * channel are those of the global batch, or of its places that a mask leaves; otherwise the moving
 * ones. `synchronized` changes nothing: they are those of all rows of the step in any case. */
#include "layers/_turned.h"
#include "layers/normalization/_gamma_beta.h"
#include "layers/normalization/_renorm.h"
#include "layers/normalization/_unrounded.h"
#include "ops/args.h"

typedef struct args_t {
    int64_t axis;
    double momentum, epsilon;
    KEEL_GAMMA_BETA;
    keel_object moving_mean_initializer, moving_variance_initializer;
    bool synchronized;
    keel_renorm renorm;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "-1", -7, 7, "which dim holds the channels: only the last"),
    KEEL_FLOAT(args_t, momentum, "0.99", 0, 1, "of the moving statistics"),
    KEEL_FLOAT(args_t, epsilon, "0.001", 0, 1e30, "added to the variance"),
    KEEL_GAMMA_BETA_FIELDS(args_t),
    KEEL_OBJECT(args_t, moving_mean_initializer, "\"zeros\"", keel_initializer_find,
                "first values of the moving mean"),
    KEEL_OBJECT(args_t, moving_variance_initializer, "\"ones\"", keel_initializer_find,
                "first values of the moving variance"),
    KEEL_BOOL(args_t, synchronized, "false", "statistics are of the global batch in any case"),
    KEEL_RENORM_FIELDS(args_t, renorm),
    { 0 },
};

static bool by_mask(const keel_emit *e)
{
    return e->mask[0] >= 0 && e->trainable && e->training;
}

/* The input, and its mask if places are left out. Rows of channels alone, of which each is left out
 * or not, as steps are that TimeDistributed calls one by one, are rows of one place. */
static keel_status emit_inputs(keel_emit *e, const keel_shape *in, keel_value both[2])
{
    both[0] = e->in[0];
    if (!by_mask(e)) return KEEL_OK;
    KEEL_TRY(keel_graph_cast(e->graph, e->mask[0], e->graph->held, &both[1]));
    if (in->rank > 1) return KEEL_OK;
    const keel_shape place = KEEL_SHAPE(1), row = keel_shape_with_one(*in, 0);
    KEEL_TRY(keel_emit_view(e, &row, both[0], &both[0]));
    return keel_emit_view(e, &place, both[1], &both[1]);
}

static keel_status emit_last(keel_emit *e)
{
    const args_t *a = e->args;
    keel_value both[2];
    const keel_op *kind = by_mask(e) ? &keel_op_masked_batch_norm : &keel_op_batch_norm;
    const keel_shape in = keel_emit_in(e, 0)->shape, channels = KEEL_SHAPE(in.dim[in.rank - 1]);
    keel_weights w = { 0 };
    const keel_weight_decl moving[] = {
        { "moving_mean", channels, &a->moving_mean_initializer, NULL, true, 0, NULL },
        { "moving_variance", channels, &a->moving_variance_initializer, NULL, true, 0, NULL },
    };
    KEEL_TRY(emit_inputs(e, &in, both));
    if (a->scale) KEEL_TRY(keel_emit_weight(e, &KEEL_GAMMA(a, channels), &w));
    if (a->center) KEEL_TRY(keel_emit_weight(e, &KEEL_BETA(a, channels), &w));
    for (int i = 0; i < 2; i++) KEEL_TRY(keel_emit_weight(e, &moving[i], &w));
    if (a->renorm.renorm)
        KEEL_TRY(keel_renorm_declare(e, &channels, &a->moving_mean_initializer,
                                     &a->moving_variance_initializer, &w));
    keel_batch_norm_args op = { .epsilon = a->epsilon,
                                .momentum = a->momentum,
                                .center = a->center,
                                .scale = a->scale,
                                .frozen = !e->trainable };
    KEEL_TRY(keel_renorm_read(&a->renorm, &op.renorm));
    KEEL_TRY(keel_emit_weighted_on(e, kind, &op, both, 1 + by_mask(e), &w, e->out));
    return keel_emit_view(e, &in, e->out[0], e->out);
}

static keel_status emit_along(keel_emit *e)
{
    int64_t axis;
    KEEL_TRY(keel_row_axis(e, ((const args_t *)e->args)->axis, &axis));
    if (by_mask(e) && axis + 1 < keel_emit_in(e, 0)->shape.rank)
        return keel_fail(KEEL_EUNSUP, "with a mask it is trained along the last axis only");
    return keel_emit_turned(e, axis, emit_last);
}

static keel_status emit(keel_emit *e) /* whole numbers are not rounded to the policy's type */
{
    const keel_graph *g = e->graph;
    return emit_held_in(e, keel_emit_is_whole(e, 0) ? g->real : g->held, emit_along);
}

const keel_layer keel_layer_batch_normalization = {
    .type = { KEEL_LAYER_HEAD("BatchNormalization",
                              "Normalizes each channel over the global batch."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .mask_argument = true,
    .uncast = true,
    .emit = emit,
};
