/* y = (x - mean) / sqrt(variance). The statistics are arguments, or weights that Keras's adapt()
 * has set. */
#include "base/memory.h"
#include "layers/layer.h"
#include "ops/normalization.h"
#include "tensor/shape.h"

KEEL_USES_OP(normalization);

typedef struct args_t {
    keel_ints axis;
    json_t *mean,
        *variance; /* a number, or lists of numbers inside lists; NULL: among the weights */
    bool invert;
    double *number; /* those that are given, once more: `n` of the mean, `n` of the variance */
    int64_t n;
    keel_shape given; /* their shape; rank 0: one number */
} args_t;

static const keel_field fields[] = {
    { .key = "axis",
      .kind = KEEL_FIELD_INTS,
      .offset = offsetof(args_t, axis),
      .dflt = "-1",
      .min = -7,
      .max = 7,
      .nullable = true,
      .help = "dims that have statistics for each index; null: one mean for all" },
    KEEL_EITHER(args_t, mean, "null", "is subtracted; null: it is among the weights"),
    KEEL_EITHER(args_t, variance, "null", "its root divides"),
    KEEL_BOOL(args_t, invert, "false", "the way back: multiply, and add the mean"),
    { 0 },
};

/* ---- numbers of the config --------------------------------------------------------------------
 */

static keel_status measure(const json_t *v, keel_shape *shape)
{
    *shape = (keel_shape){ 0 };
    for (; json_is_array(v); v = json_array_get(v, 0)) {
        if (shape->rank == KEEL_RANK_MAX || json_array_size(v) == 0)
            return keel_fail(KEEL_EARG, "mean and variance must be numbers, or lists of numbers");
        shape->dim[shape->rank++] = (int64_t)json_array_size(v);
    }
    return keel_shape_check(shape, sizeof(double));
}

static keel_status flatten(const json_t *v, const keel_shape *shape, int depth, double **to)
{
    const bool leaf = depth == shape->rank;
    if (leaf ? !json_is_number(v) : json_array_size(v) != (size_t)shape->dim[depth])
        return keel_fail(KEEL_EARG,
                         "mean and variance must be numbers, or lists of as many numbers");
    if (leaf) *(*to)++ = json_number_value(v);
    for (size_t i = 0; !leaf && i < json_array_size(v); i++)
        KEEL_TRY(flatten(json_array_get(v, i), shape, depth + 1, to));
    return KEEL_OK;
}

static keel_status take(args_t *a)
{
    keel_shape variance;
    if (!a->mean != !a->variance)
        return keel_fail(KEEL_EARG, "mean and variance must be given together");
    if (!a->mean) return KEEL_OK;
    KEEL_TRY(measure(a->mean, &a->given));
    KEEL_TRY(measure(a->variance, &variance));
    if (!keel_shape_equal(&a->given, &variance))
        return keel_fail(KEEL_EARG, "mean and variance must have the same shape");
    a->n = keel_shape_count(&a->given);
    if (!(a->number = keel_calloc(2 * (size_t)a->n, sizeof *a->number))) return KEEL_ENOMEM;
    double *to = a->number;
    KEEL_TRY(flatten(a->mean, &a->given, 0, &to));
    return flatten(a->variance, &a->given, 0, &to);
}

static keel_status ready(void *args)
{
    const keel_status s = take(args);
    return s < 0 && s != KEEL_ENOMEM ? keel_fail_within(s, "Normalization") : s;
}

static void release(void *args)
{
    args_t *a = args;
    keel_free(a->number);
    a->number = NULL;
}

/* ---- the layer --------------------------------------------------------------------------------
 */

/* The dims that are kept: as a row with 1 for the others (over), and alone (kept). */
static keel_status read_axes(const keel_emit *e, const keel_ints *axis, keel_shape *over,
                             keel_shape *kept)
{
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    *over = *in;
    *kept = (keel_shape){ 0 };
    for (int d = 0; d < in->rank; d++) over->dim[d] = 1;
    for (int i = 0; i < axis->count; i++) {
        int64_t d;
        KEEL_TRY(keel_row_axis(e, axis->at[i], &d));
        over->dim[d] = in->dim[d];
    }
    for (int d = 0; d < in->rank; d++)
        for (int i = 0; i < axis->count; i++) {
            const int64_t at = axis->at[i] < 0 ? axis->at[i] + in->rank : axis->at[i] - 1;
            if (at != d) continue;
            kept->dim[kept->rank++] = in->dim[d];
            break;
        }
    return KEEL_OK;
}

/* Those that are given belong to the last of the kept dims, as in broadcasting. */
static keel_status fit_given(const args_t *a, const keel_shape *kept, keel_shape *over)
{
    char given[96], want[96];
    bool good = a->given.rank <= kept->rank;
    for (int i = 1; good && i <= a->given.rank; i++)
        good = a->given.dim[a->given.rank - i] == kept->dim[kept->rank - i] ||
               a->given.dim[a->given.rank - i] == 1;
    if (!good) {
        keel_shape_text(given, &a->given);
        keel_shape_text(want, kept);
        return keel_fail(KEEL_ESHAPE, "mean has shape %s, which does not fit %s", given, want);
    }
    for (int d = over->rank - 1, k = kept->rank - 1, g = a->given.rank - 1; d >= 0 && k >= 0; d--) {
        if (over->dim[d] != kept->dim[k]) continue; /* not a kept dim: it is 1 */
        over->dim[d] = g >= 0 ? a->given.dim[g] : 1;
        g--;
        k--;
    }
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_object zeros = { .type = keel_initializer_find("zeros") };
    const keel_object ones = { .type = keel_initializer_find("ones") };
    keel_normalization_args op = { .invert = a->invert };
    keel_weights w = { 0 };
    keel_shape kept;
    KEEL_TRY(read_axes(e, &a->axis, &op.over, &kept));
    if (a->mean) {
        KEEL_TRY(fit_given(a, &kept, &op.over));
        op.mean = a->number;
        op.variance = a->number + a->n;
        return keel_emit_one(e, &keel_op_normalization, &op);
    }
    const keel_weight_decl mean = { "mean", kept, &zeros, NULL, true, 0, NULL };
    const keel_weight_decl variance = { "variance", kept, &ones, NULL, true, 0, NULL };
    KEEL_TRY(keel_emit_weight(e, &mean, &w));
    KEEL_TRY(keel_emit_weight(e, &variance, &w));
    return keel_emit_weighted(e, &keel_op_normalization, &op, e->in[0], &w, e->out);
}

const keel_layer keel_layer_normalization = {
    .type = { .name = "Normalization",
              .module = "keras.layers",
              .help = "Shifts and scales to a mean of 0 and a variance of 1.",
              .args_size = sizeof(args_t),
              .fields = fields,
              .ready = ready,
              .release = release },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .counts = true,
    .emit = emit,
};
