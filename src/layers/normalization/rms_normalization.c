/* y = scale x / sqrt(mean of x^2 + epsilon), the mean over some dims of each place. */
#include "layers/normalization/_layer_norm.h"

typedef struct args_t {
    keel_ints axis;
    double epsilon;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, 0, "-1", -7, 7, "the dims that are normalized together"),
    KEEL_FLOAT(args_t, epsilon, "1e-06", 0, 1e30, "added to the mean square"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_layer_norm_args op = { .epsilon = a->epsilon, .scale = true, .rms = true };
    const keel_object ones = { .type = keel_initializer_find("ones") };
    const int rank = keel_emit_in(e, 0)->shape.rank;
    KEEL_TRY(keel_emit_not_whole(e, "Keras makes whole numbers of the result"));
    for (int i = 0; i < a->axis.count; i++) {
        int64_t d;
        KEEL_TRY(keel_row_axis(e, a->axis.at[i], &d));
        if (d < rank - a->axis.count) /* Keras scales along the last dims whatever the axes are */
            return keel_fail(KEEL_EUNSUP,
                             "axis %lld: Keras 3.15 fails to scale along other than the last dims",
                             (long long)a->axis.at[i]);
    }
    const keel_weight_decl scale = { .name = "scale", .initializer = &ones };
    return keel_emit_layer_norm(e, e->in[0], &a->axis, &op, &scale, NULL, e->out);
}

const keel_layer keel_layer_rms_normalization = {
    .type = { KEEL_LAYER_HEAD("RMSNormalization",
                              "Divides each place of a row by the root of its mean square."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
