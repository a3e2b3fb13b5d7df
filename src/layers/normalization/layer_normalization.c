/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with mean and variance over some dims of
 * each place; rows are independent. */
#include "layers/normalization/_layer_norm.h"

typedef struct args_t {
    keel_ints axis;
    double epsilon;
    bool center, scale;
    keel_object beta_initializer, gamma_initializer;
    keel_object beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, 0, "-1", -7, 7, "the dims that are normalized together"),
    KEEL_FLOAT(args_t, epsilon, "0.001", 0, 1e30, "added to the variance"),
    KEEL_BOOL(args_t, center, "true", "add beta"),
    KEEL_BOOL(args_t, scale, "true", "multiply by gamma"),
    KEEL_REFUSE("rms_scaling", "false", "Keras's old form of RMSNormalization"),
    KEEL_OBJECT(args_t, beta_initializer, "\"zeros\"", keel_initializer_find,
                "first values of beta"),
    KEEL_OBJECT(args_t, gamma_initializer, "\"ones\"", keel_initializer_find,
                "first values of gamma"),
    KEEL_OBJECT(args_t, beta_regularizer, "null", keel_regularizer_find, "of beta"),
    KEEL_OBJECT(args_t, gamma_regularizer, "null", keel_regularizer_find, "of gamma"),
    KEEL_OBJECT(args_t, beta_constraint, "null", keel_constraint_find, "of beta"),
    KEEL_OBJECT(args_t, gamma_constraint, "null", keel_constraint_find, "of gamma"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_layer_norm_args op = { .epsilon = a->epsilon,
                                      .center = a->center,
                                      .scale = a->scale };
    const keel_weight_decl gamma = { .name = "gamma",
                                     .initializer = &a->gamma_initializer,
                                     .regularizer = &a->gamma_regularizer,
                                     .constraint = &a->gamma_constraint };
    const keel_weight_decl beta = { .name = "beta",
                                    .initializer = &a->beta_initializer,
                                    .regularizer = &a->beta_regularizer,
                                    .constraint = &a->beta_constraint };
    const keel_dtype held = e->graph->held;
    keel_value x = e->in[0], y;
    /* Keras does not round the input to the policy's type, only the result. */
    if (keel_emit_in(e, 0)->dtype == e->graph->real)
        e->graph->held = e->graph->real;
    else
        KEEL_TRY(keel_graph_cast(e->graph, x, held, &x));
    KEEL_TRY(keel_emit_layer_norm(e, x, &a->axis, &op, &gamma, &beta, &y));
    e->graph->held = held;
    return keel_graph_cast(e->graph, y, held, e->out);
}

const keel_layer keel_layer_layer_normalization = {
    .type = { .name = "LayerNormalization",
              .module = "keras.layers",
              .help = "Normalizes each place of a row over its features.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .uncast = true,
    .emit = emit,
};
