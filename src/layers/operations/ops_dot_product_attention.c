/* Softmax of the products of queries and keys, times values: [T, heads, D] and [S, shared, D] of a
 * row. Without bias or mask the scores are never in memory. */
#include "layers/operations/_values.h"
#include "ops/band.h"
#include "ops/dot_product_attention.h"
#include <float.h>
#include <math.h>

typedef struct args_t {
    bool is_causal;
} args_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, is_causal, "false", "a query sees no later keys"),
    KEEL_IGNORE("flash_attention", "how Keras computes it"),
    KEEL_REFUSE("attn_logits_soft_cap", "null", "Keras has it on TPUs only"),
    { 0 },
};

/* [T, heads, D] as a matrix for each head of `heads`: [heads, T, D], or [heads, D, T]. */
static keel_status matrices(keel_emit *e, keel_value x, int64_t heads, bool turned, keel_value *out)
{
    const keel_upsample_args more = { .axis = 1, .factor = heads / keel_value_shape(e, x)->dim[1] };
    if (more.factor > 1) KEEL_TRY(keel_emit_on(e, &keel_op_upsample, &more, &x, 1, &x));
    return keel_emit_permuted(
        e, turned ? (const int64_t[]){ 1, 2, 0 } : (const int64_t[]){ 1, 0, 2 }, x, out);
}

/* A large negative number in place of the scores that are not seen. */
static keel_status hide(keel_emit *e, keel_value seen, keel_value *scores)
{
    const keel_operand hidden = KEEL_OF_NUMBER(-0.7 * (double)FLT_MAX);
    return keel_emit_choice(e, seen, KEEL_OF_VALUE(*scores), hidden, scores);
}

static keel_status by_scores(keel_emit *e, const keel_value x[3], double scale, bool bias,
                             bool mask)
{
    static const keel_band_args past = { .low = INT64_MIN };
    const int64_t heads = keel_value_shape(e, x[0])->dim[1];
    keel_value q, k, v, scores, more;
    KEEL_TRY(matrices(e, x[0], heads, false, &q));
    KEEL_TRY(matrices(e, x[1], heads, true, &k));
    KEEL_TRY(matrices(e, x[2], heads, false, &v));
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ q, k }, 2, &scores));
    KEEL_TRY(keel_emit_scaled(e, scores, scale, 0, &scores));
    if (bias) {
        KEEL_TRY(keel_value_at(e, 3, "bias", 3, &more));
        KEEL_TRY(keel_emit_pair(e, &keel_op_plus, scores, more, &scores));
    }
    if (mask) {
        KEEL_TRY(keel_value_at(e, 4, "mask", 3, &more));
        KEEL_TRY(hide(e, more, &scores));
    }
    if (((const args_t *)e->args)->is_causal) {
        KEEL_TRY(keel_emit_filled(e, scores, 1, &more));
        KEEL_TRY(keel_emit_on(e, &keel_op_band, &past, &more, 1, &more));
        KEEL_TRY(hide(e, more, &scores));
    }
    KEEL_TRY(keel_emit_along(e, &keel_op_softmax, scores, 2, &scores));
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, (keel_value[]){ scores, v }, 2, &q));
    return keel_emit_permuted(e, (const int64_t[]){ 1, 0, 2 }, q, e->out);
}

static bool given(const keel_emit *e, size_t place, const char *name)
{
    const json_t *v = keel_argument(e, place, name);
    return v && !json_is_null(v);
}

static keel_status emit(keel_emit *e)
{
    static const char *const names[] = { "query", "key", "value" };
    keel_operand x, scale;
    keel_value in[3];
    for (size_t i = 0; i < 3; i++) {
        KEEL_TRY(keel_operand_at(e, i, names[i], &x));
        in[i] = x.value;
        if (x.value < 0 || keel_value_shape(e, x.value)->rank != 3)
            return keel_fail(KEEL_EUNSUP,
                             "%s: a value of the model, with rows of (steps, heads, "
                             "features), is needed",
                             names[i]);
    }
    const keel_shape q = *keel_value_shape(e, in[0]), k = *keel_value_shape(e, in[1]);
    KEEL_TRY(keel_operand_at(e, 5, "scale", &scale));
    if (scale.given && scale.value >= 0) return keel_fail(KEEL_EUNSUP, "scale must be a number");
    if (k.dim[1] < 1 || q.dim[1] % k.dim[1])
        return keel_fail(KEEL_ESHAPE, "%lld heads of queries, %lld of keys", (long long)q.dim[1],
                         (long long)k.dim[1]);
    const bool bias = given(e, 3, "bias"), mask = given(e, 4, "mask");
    const keel_dot_product_attention_args op = {
        .scale = scale.given ? scale.constant : 1 / sqrt((double)k.dim[2]),
        .seen.causal = ((const args_t *)e->args)->is_causal
    };
    if (bias || mask) return by_scores(e, in, op.scale, bias, mask);
    return keel_emit_on(e, &keel_op_dot_product_attention, &op, in, 3, e->out);
}

KEEL_ARGS_OPERATION(ops_dot_product_attention, "DotProductAttention", "nn", 5,
                    "Softmax of the products of queries and keys, times values.")
