/* Patches of images, and of volumes: [H, W, C] gives the pixels of each window as the channels of
 * one place. */
#include "layers/operations/_image.h"
#include "ops/pad.h"

typedef struct args_t {
    keel_ints size, strides, dilation_rate;
    int padding, data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, size, -1, NULL, 1, 1 << 15, "size of a patch: of an image 2, of a volume 3"),
    KEEL_INTS(args_t, strides, -1, "null", 1, 1 << 15, "places between patches; null: size"),
    KEEL_INTS(args_t, dilation_rate, -1, "1", 1, 1 << 15, "places between pixels of a patch"),
    KEEL_CHOICE(args_t, padding, "\"valid\"", "valid|same", "zeros around images"),
    KEEL_IMAGE_FORMAT(args_t),
    { 0 },
};

enum { PIXELS_MAX = 1024 };

/* Patches that lie side by side: their pixels are moved by one permutation. */
static keel_status tiles(keel_emit *e, keel_value x, const keel_ints *size, int64_t h, int64_t w)
{
    static const keel_permute_args turned = { .from = { 0, 2, 1, 3, 4 } };
    const int64_t p = size->at[0], q = size->at[1], c = keel_emit_in(e, 0)->shape.dim[2];
    const keel_slice_args part = { .step = { 1, 1, 1 }, .count = { h * p, w * q, c } };
    const keel_shape apart = KEEL_SHAPE(h, p, w, q, c), out = KEEL_SHAPE(h, w, p * q * c);
    KEEL_TRY(keel_emit_on(e, &keel_op_slice, &part, &x, 1, &x));
    KEEL_TRY(keel_emit_view(e, &apart, x, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_permute, &turned, &x, 1, &x));
    return keel_emit_view(e, &out, x, e->out);
}

/* The same pixel of all patches at a time. */
static keel_status pixels(keel_emit *e, keel_value x, const args_t *a, const keel_shape *out)
{
    const int rank = a->size.count;
    const keel_axis_args channels = { .axis = rank };
    keel_value part[PIXELS_MAX];
    int64_t n = 1;
    for (int d = 0; d < rank && n <= PIXELS_MAX; d++) n *= a->size.at[d];
    if (n > PIXELS_MAX)
        return keel_fail(KEEL_EUNSUP, "patches of more than %d pixels that overlap", PIXELS_MAX);
    for (int64_t k = 0; k < n; k++) {
        keel_slice_args op = { 0 };
        int64_t rest = k;
        for (int d = rank; d >= 0; d--) {
            op.step[d] = d < rank ? a->strides.at[d] : 1;
            op.count[d] = out->dim[d];
            if (d == rank) continue;
            op.begin[d] = rest % a->size.at[d] * a->dilation_rate.at[d];
            rest /= a->size.at[d];
        }
        KEEL_TRY(keel_emit_on(e, &keel_op_slice, &op, &x, 1, &part[k]));
    }
    return keel_emit_on(e, &keel_op_concatenate, &channels, part, (int)n, e->out);
}

/* A number for each dim of a patch. */
static keel_status spread(keel_ints *v, const keel_ints *size, const char *what)
{
    if (v->count == 1)
        while (v->count < size->count) v->at[v->count++] = v->at[0];
    return v->count == size->count
               ? KEEL_OK
               : keel_fail(KEEL_EARG, "%s: one number, or %d as of size", what, size->count);
}

/* The arguments with all their numbers. Rows have one dim more than a patch, the channels. */
static keel_status read_args(const keel_emit *e, args_t *a)
{
    const keel_spec *in = keel_emit_in(e, 0);
    *a = *(const args_t *)e->args;
    KEEL_TRY(keel_channels_last(a->data_format < 0 ? 0 : a->data_format));
    if (a->size.count == 1) a->size.at[a->size.count++] = a->size.at[0];
    if (a->size.count < 2 || a->size.count > 3) return keel_fail(KEEL_EARG, "size: 2 or 3 numbers");
    if (a->strides.count < 0) a->strides = a->size;
    KEEL_TRY(spread(&a->strides, &a->size, "strides"));
    KEEL_TRY(spread(&a->dilation_rate, &a->size, "dilation_rate"));
    if (a->size.count == 3 && in->shape.rank != 4)
        return keel_fail(KEEL_ESHAPE, "size: 3 numbers are for rows of (depth, height, width, "
                                      "channels)");
    return a->size.count == 3 ? KEEL_OK : keel_emit_image(e, &in);
}

static keel_status emit(keel_emit *e)
{
    const keel_shape in = keel_emit_in(e, 0)->shape;
    args_t a;
    keel_shape out = in;
    keel_value x = e->in[0];
    keel_pad_args pad = { 0 };
    int64_t border[6];
    bool beside = true, padded = false;
    KEEL_TRY(read_args(e, &a));
    keel_same_padding(&in, a.padding == 1, &a.size, &a.strides, &a.dilation_rate, border);
    for (int d = 0; d < a.size.count; d++) {
        const int64_t reach = (a.size.at[d] - 1) * a.dilation_rate.at[d] + 1;
        pad.before[d] = border[2 * d];
        pad.behind[d] = border[2 * d + 1];
        const int64_t left = in.dim[d] + pad.before[d] + pad.behind[d] - reach;
        if (left < 0)
            return keel_fail(KEEL_ESHAPE, "a patch of %lld places does not fit into %lld",
                             (long long)reach, (long long)in.dim[d]);
        out.dim[d] = left / a.strides.at[d] + 1;
        beside = beside && a.dilation_rate.at[d] == 1 && a.strides.at[d] == a.size.at[d];
        padded = padded || pad.before[d] + pad.behind[d] > 0;
    }
    if (padded) KEEL_TRY(keel_emit_on(e, &keel_op_pad, &pad, &x, 1, &x));
    return beside && a.size.count == 2 ? tiles(e, x, &a.size, out.dim[0], out.dim[1])
                                       : pixels(e, x, &a, &out);
}

KEEL_IMAGE_OPERATION(ops_image_extract_patches, "ExtractPatches", args_t,
                     "Patches of images and of volumes.", .whole = KEEL_WHOLE_KEPT)
