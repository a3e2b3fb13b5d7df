/* How similar two images are, in [-1, 1]: means, variances and the covariance of what a Gaussian
 * window sees of both, at each place where it lies inside. One number for each row.
 * Source: Wang, Bovik, Sheikh, Simoncelli 2004, Image quality assessment. */
#include "layers/operations/_image.h"
#include "layers/operations/_values.h"
#include "ops/smooth.h"
#include <math.h>

typedef struct args_t {
    double max_val, filter_sigma, k1, k2;
    int64_t filter_size;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, max_val, "1.0", 0, 0, "the largest value of a pixel"),
    KEEL_INT(args_t, filter_size, "11", 1, 255, "height and width of the window"),
    KEEL_FLOAT(args_t, filter_sigma, "1.5", 0, 0, "deviation of the window, in pixels"),
    KEEL_FLOAT(args_t, k1, "0.01", 0, 0, "keeps the quotient of means from 0 / 0"),
    KEEL_FLOAT(args_t, k2, "0.03", 0, 0, "keeps the quotient of variances from 0 / 0"),
    KEEL_IMAGE_FORMAT(args_t),
    { 0 },
};

/* What the window sees of a * b, or of a alone (b -1), where it lies inside the image. */
static keel_status seen(keel_emit *e, keel_value a, keel_value b, keel_value *out)
{
    const args_t *args = e->args;
    const int64_t n = args->filter_size;
    const keel_smooth_args op = { .always = true,
                                  .size = { n, n },
                                  .deviation = { args->filter_sigma, args->filter_sigma },
                                  .values = { -INFINITY, INFINITY } };
    const keel_shape s = keel_emit_in(e, 0)->shape;
    if (b >= 0) KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, a, b, &a));
    KEEL_TRY(keel_emit_on(e, &keel_op_smooth, &op, &a, 1, &a));
    for (int d = 0; d < 2; d++)
        KEEL_TRY(keel_emit_part(e, a, d, (n - 1) / 2, s.dim[d] - n + 1, &a));
    *out = a;
    return KEEL_OK;
}

/* (2 product + c) / (a + b + c) */
static keel_status quotient(keel_emit *e, keel_value product, const keel_value of[2], double c,
                            keel_value *out)
{
    keel_value above, below;
    KEEL_TRY(keel_emit_scaled(e, product, 2, c, &above));
    KEEL_TRY(keel_emit_pair(e, &keel_op_plus, of[0], of[1], &below));
    KEEL_TRY(keel_emit_scaled(e, below, 1, c, &below));
    return keel_emit_pair(e, &keel_op_divide, above, below, out);
}

static keel_status similarity(keel_emit *e, const keel_value image[2], keel_value *out)
{
    const args_t *a = e->args;
    const double c1 = pow(a->k1 * a->max_val, 2), c2 = pow(a->k2 * a->max_val, 2);
    keel_value mean[2], square[2], variance[2], both, products, light, structure;
    for (int i = 0; i < 2; i++) {
        KEEL_TRY(seen(e, image[i], -1, &mean[i]));
        KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, mean[i], mean[i], &square[i]));
        KEEL_TRY(seen(e, image[i], image[i], &variance[i]));
        KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, variance[i], square[i], &variance[i]));
    }
    KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, mean[0], mean[1], &products));
    KEEL_TRY(seen(e, image[0], image[1], &both));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, both, products, &both));
    KEEL_TRY(quotient(e, products, square, c1, &light));
    KEEL_TRY(quotient(e, both, variance, c2, &structure));
    return keel_emit_pair(e, &keel_op_multiply, light, structure, out);
}

static keel_status emit(keel_emit *e)
{
    static const keel_reduce_args mean = { .to = KEEL_REDUCE_MEAN, .over = { true, true, true } };
    static const char *const names[2] = { "image1", "image2" };
    const args_t *a = e->args;
    keel_operand x[2];
    keel_shape in;
    keel_value y;
    KEEL_TRY(keel_image_in(e, a->data_format, &in));
    if (in.dim[0] < a->filter_size || in.dim[1] < a->filter_size)
        return keel_fail(KEEL_ESHAPE, "a window of %lld does not fit into images of %lld x %lld",
                         (long long)a->filter_size, (long long)in.dim[0], (long long)in.dim[1]);
    if (!(a->filter_sigma > 0)) return keel_fail(KEEL_EARG, "filter_sigma: a number above 0");
    for (int i = 0; i < 2; i++) {
        KEEL_TRY(keel_operand_at(e, (size_t)i, names[i], &x[i]));
        if (!x[i].given || x[i].value < 0)
            return keel_fail(KEEL_EUNSUP, "argument %s: only a value of the model is supported",
                             names[i]);
        if (!keel_shape_equal(keel_value_shape(e, x[i].value), &in))
            return keel_fail(KEEL_ESHAPE, "image1 and image2 differ in shape");
    }
    KEEL_TRY(similarity(e, (keel_value[]){ x[0].value, x[1].value }, &y));
    return keel_emit_on(e, &keel_op_reduce, &mean, &y, 1, e->out);
}

KEEL_ARGS_OPERATION(ops_image_ssim, "SSIM", "image", 2, "How similar two images are.")
