/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta, mean and variance over some dims of each
 * place: rows do not see each other. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    keel_ints axis;
    double epsilon;
    bool center, scale;
    keel_object beta_initializer, gamma_initializer;
    keel_object beta_regularizer, gamma_regularizer;
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
    KEEL_REFUSE("beta_constraint", "null", "constraint of beta"),
    KEEL_REFUSE("gamma_constraint", "null", "constraint of gamma"),
    { 0 },
};

/* Which dims of a row; Keras sorts the numbers as they are, so all must count from one end. */
static keel_status read_axes(const keel_emit *e, const keel_ints *axis, bool over[KEEL_RANK_MAX])
{
    for (int d = 0; d < KEEL_RANK_MAX; d++) over[d] = false;
    for (int i = 0; i < axis->count; i++) {
        int64_t d;
        KEEL_TRY(keel_row_axis(e, axis->at[i], &d));
        if ((axis->at[i] < 0) != (axis->at[0] < 0))
            return keel_fail(KEEL_EUNSUP, "axis: some from the front, some from the end");
        if (over[d]) return keel_fail(KEEL_EARG, "axis %lld twice", (long long)axis->at[i]);
        over[d] = true;
    }
    return axis->count > 0 ? KEEL_OK : keel_fail(KEEL_EARG, "axis: there must be one");
}

/* The dims that are normalised come last, in their order; true: they do so already. */
static bool order(const bool over[KEEL_RANK_MAX], int rank, keel_permute_args *to,
                  keel_permute_args *back)
{
    bool same = true;
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < rank; d++)
            if (over[d] == (pass == 1)) to->from[n++] = d;
    for (int d = 0; d < rank; d++) {
        back->from[to->from[d]] = d;
        same = same && to->from[d] == d;
    }
    return same;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_permute_args to = { 0 }, back = { 0 };
    keel_variable w[2];
    keel_spec spec[2];
    bool over[KEEL_RANK_MAX];
    keel_value x = e->in[0], y;
    const keel_dtype held = e->graph->held;
    int n = 0;
    KEEL_TRY(read_axes(e, &a->axis, over));
    const keel_shape in = keel_emit_in(e, 0)->shape;
    keel_shape shape = { 0 };
    for (int d = 0; d < in.rank; d++)
        if (over[d]) shape.dim[shape.rank++] = in.dim[d];
    const keel_weight_decl gamma = { "gamma", shape, &a->gamma_initializer, &a->gamma_regularizer };
    const keel_weight_decl beta = { "beta", shape, &a->beta_initializer, &a->beta_regularizer };
    if (a->scale) {
        KEEL_TRY(e->weight(e, &gamma, &w[n], &spec[n]));
        n++;
    }
    if (a->center) {
        KEEL_TRY(e->weight(e, &beta, &w[n], &spec[n]));
        n++;
    }
    const keel_layer_norm_args op = {
        .dims = shape.rank, .epsilon = a->epsilon, .center = a->center, .scale = a->scale
    };
    const bool last = order(over, in.rank, &to, &back);
    /* Keras does not round the input to the policy's type, only the result. */
    if (keel_emit_in(e, 0)->dtype == e->graph->real)
        e->graph->held = e->graph->real;
    else
        KEEL_TRY(keel_graph_cast(e->graph, x, held, &x));
    if (!last) KEEL_TRY(keel_emit_on(e, &keel_op_permute, &to, &x, 1, &x));
    const keel_node_parts parts = { .op = &keel_op_layer_norm,
                                    .args = &op,
                                    .n_in = 1,
                                    .in = &x,
                                    .n_weight = n,
                                    .weight = w,
                                    .weight_spec = spec };
    KEEL_TRY(keel_emit_op(e, &parts, &y));
    if (!last) KEEL_TRY(keel_emit_on(e, &keel_op_permute, &back, &y, 1, &y));
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
