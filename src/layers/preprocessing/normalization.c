/* y = (x - mean) / sqrt(variance). The statistics are arguments, or weights that Keras's adapt()
 * has set. */
#include "base/memory.h"
#include "layers/_numbers.h"
#include "ops/normalization.h"
#include "tensor/shape.h"

KEEL_USES_OP(normalization);

typedef struct args_t {
    keel_ints axis;
    json_t *mean, *variance; /* as in the config; NULL: among the weights */
    bool invert;
    double *number;   /* those of the mean, then those of the variance */
    keel_shape given; /* of each of them; rank 0: one number */
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

static keel_status ready(void *args)
{
    args_t *a = args;
    keel_shape variance;
    if (!a->mean != !a->variance)
        return keel_fail(KEEL_EARG, "Normalization: mean and variance must be given together");
    if (!a->mean) return KEEL_OK;
    if (!keel_numbers_shape(a->mean, &a->given) || !keel_numbers_shape(a->variance, &variance))
        return keel_fail(KEEL_EARG, "Normalization: mean and variance must be numbers, or lists of "
                                    "numbers");
    if (!keel_shape_equal(&a->given, &variance))
        return keel_fail(KEEL_EARG, "Normalization: mean and variance must have the same shape");
    KEEL_TRY(keel_shape_check(&a->given, sizeof(double)));
    const int64_t n = keel_shape_count(&a->given);
    if (!(a->number = keel_calloc(2 * (size_t)n, sizeof *a->number))) return KEEL_ENOMEM;
    return keel_numbers_copy(a->mean, &a->given, a->number) &&
                   keel_numbers_copy(a->variance, &a->given, a->number + n)
               ? KEEL_OK
               : keel_fail(KEEL_EARG, "Normalization: mean and variance must be numbers, or lists "
                                      "of as many numbers");
}

static void release(void *args)
{
    args_t *a = args;
    keel_free(a->number);
    a->number = NULL;
}

/* The dims that are kept: alone, and as a row with 1 for the others. Those that are given belong to
 * the last of the kept dims, as in broadcasting. */
static keel_status read_axes(const keel_emit *e, keel_shape *over, keel_shape *kept)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    bool keeps[KEEL_RANK_MAX] = { false }, fits = true;
    int g = a->given.rank - 1;
    char given[96], want[96];
    for (int i = 0; i < a->axis.count; i++) {
        int64_t d;
        KEEL_TRY(keel_row_axis(e, a->axis.at[i], &d));
        keeps[d] = true;
    }
    *over = *in;
    *kept = (keel_shape){ 0 };
    for (int d = 0; d < in->rank; d++)
        if (keeps[d]) kept->dim[kept->rank++] = in->dim[d];
    for (int d = in->rank - 1; d >= 0; d--) {
        if (!keeps[d]) over->dim[d] = 1;
        if (!keeps[d] || !a->mean) continue;
        over->dim[d] = g >= 0 ? a->given.dim[g--] : 1;
        fits = fits && (over->dim[d] == 1 || over->dim[d] == in->dim[d]);
    }
    if (!a->mean || (fits && g < 0)) return KEEL_OK;
    keel_shape_text(given, &a->given);
    keel_shape_text(want, kept);
    return keel_fail(KEEL_ESHAPE, "mean has shape %s, which does not fit %s", given, want);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_object zeros = { .type = keel_initializer_find("zeros") };
    const keel_object ones = { .type = keel_initializer_find("ones") };
    keel_normalization_args op = { .invert = a->invert };
    keel_weights w = { 0 };
    keel_shape kept;
    KEEL_TRY(read_axes(e, &op.over, &kept));
    const keel_weight_decl mean = { "mean", kept, &zeros, NULL, true, 0, NULL };
    const keel_weight_decl variance = { "variance", kept, &ones, NULL, true, 0, NULL };
    op.mean = a->number;
    op.variance = a->number ? a->number + keel_shape_count(&a->given) : NULL;
    if (a->mean) return keel_emit_one(e, &keel_op_normalization, &op);
    KEEL_TRY(keel_emit_weight(e, &mean, &w));
    KEEL_TRY(keel_emit_weight(e, &variance, &w));
    return keel_emit_weighted(e, &keel_op_normalization, &op, e->in[0], &w, e->out);
}

const keel_layer keel_layer_normalization = {
    .type = { KEEL_LAYER_HEAD("Normalization",
                              "Shifts and scales to a mean of 0 and a variance of 1."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready, .release = release },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .counts = true,
    .emit = emit,
};
