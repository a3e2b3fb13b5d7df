/* Dims of rows scaled and moved: place x of a dim goes to x * scale + translation, and places of
 * the output that see nothing are 0. */
#include "layers/operations/_image.h"
#include "ops/resize.h"
#include <math.h>

typedef struct args_t {
    keel_ints spatial_dims;
    int method;
    bool antialias;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, spatial_dims, 0, NULL, -7, 7, "which dims, the batch is 0"),
    KEEL_CHOICE(args_t, method, NULL,
                "linear|bilinear|trilinear|triangle|cubic|bicubic|tricubic|lanczos3|lanczos5",
                "between places"),
    KEEL_BOOL(args_t, antialias, "true", "see all of a dim that becomes smaller"),
    { 0 },
};

static keel_resize_method method_of(int choice)
{
    return choice < 4    ? KEEL_RESIZE_BILINEAR
           : choice < 7  ? KEEL_RESIZE_BICUBIC
           : choice == 7 ? KEEL_RESIZE_LANCZOS3
                         : KEEL_RESIZE_LANCZOS5;
}

/* As many numbers as there are dims to change. */
static keel_status read_numbers(const keel_emit *e, size_t place, const char *name, int n,
                                keel_numbers_args *out)
{
    const json_t *v = keel_argument(e, place, name);
    if (!json_is_array(v))
        return keel_fail(KEEL_EUNSUP, "argument %s: only a list of numbers is supported", name);
    KEEL_TRY(keel_list_read(v, name, out));
    if (out->shape.rank != 1 || out->shape.dim[0] != n)
        return keel_fail(KEEL_EARG, "argument %s: a number for each of the %d dims of spatial_dims",
                         name, n);
    return KEEL_OK;
}

/* Sizes of a row of the output. Only those of spatial_dims may differ from the input. */
static keel_status read_shape(const keel_emit *e, keel_shape *out)
{
    const json_t *v = keel_argument(e, 1, "output_shape");
    *out = keel_emit_in(e, 0)->shape;
    if (!json_is_array(v) || json_array_size(v) != (size_t)out->rank + 1)
        return keel_fail(KEEL_EARG, "argument output_shape: a list of %d sizes, the batch first",
                         out->rank + 1);
    for (int d = 0; d < out->rank; d++) {
        const json_t *size = json_array_get(v, (size_t)d + 1);
        if (!json_is_integer(size) || json_integer_value(size) < 1)
            return keel_fail(KEEL_EARG, "argument output_shape: dim %d is no size", d + 1);
        out->dim[d] = json_integer_value(size);
    }
    return KEEL_OK;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int n = a->spatial_dims.count;
    const keel_shape in = keel_emit_in(e, 0)->shape;
    bool changes[KEEL_RANK_MAX] = { false };
    keel_numbers_args scale, translation;
    keel_shape out;
    keel_value x = e->in[0];
    KEEL_TRY(read_shape(e, &out));
    KEEL_TRY(read_numbers(e, 2, "scale", n, &scale));
    KEEL_TRY(read_numbers(e, 3, "translation", n, &translation));
    for (int i = 0; i < n; i++) {
        keel_resize_args op = { .moves = true,
                                .method = method_of(a->method),
                                .antialias = a->antialias,
                                .scale = scale.at[i],
                                .translation = translation.at[i] };
        KEEL_TRY(keel_row_axis(e, a->spatial_dims.at[i], &op.axis));
        if (changes[op.axis])
            return keel_fail(KEEL_EARG, "spatial_dims: dim %lld is there twice",
                             (long long)op.axis + 1);
        changes[op.axis] = true;
        op.size = out.dim[op.axis];
        op.length = in.dim[op.axis];
        KEEL_TRY(keel_emit_on(e, &keel_op_resize, &op, &x, 1, &x));
    }
    for (int d = 0; d < in.rank; d++)
        if (!changes[d] && in.dim[d] != out.dim[d])
            return keel_fail(KEEL_EARG,
                             "argument output_shape: dim %d is not in spatial_dims and "
                             "has %lld places, not %lld",
                             d + 1, (long long)in.dim[d], (long long)out.dim[d]);
    e->out[0] = x;
    return KEEL_OK;
}

KEEL_IMAGE_OPERATION(ops_image_scale_and_translate, "ScaleAndTranslate", args_t,
                     "Dims of rows scaled and moved.", .places = true)
