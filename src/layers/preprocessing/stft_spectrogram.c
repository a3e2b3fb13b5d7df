/* The spectrum of each window of a signal [T, C], each channel for itself (with channels_first the
 * frame turns the signal, and the output unless it is an image). As in Keras it is a
 * convolution, whose kernels [frame_length, 1, bins] are weights and train unless they are frozen.
 * A signal is an image [T, C, 1], and windows have the size frame_length x 1. */
#include "layers/operations/_values.h"
#include "ops/pad.h"

enum { LOG, MAGNITUDE, PSD, REAL_PART, IMAG_PART, ANGLE, STFT };
enum { LENGTH_MAX = 1 << 16 };
#define LEAST 1e-7 /* Keras's backend.epsilon(): what is below counts as this */

typedef struct args_t {
    keel_stft_args stft;
    int mode, padding, data_format;
    int64_t frame_length, frame_step, fft_length;
    bool expand_dims;
} args_t;

static const keel_field fields[] = {
    KEEL_CHOICE(args_t, mode, "\"log\"", "log|magnitude|psd|real|imag|angle|stft",
                "what is said about each frequency"),
    KEEL_INT(args_t, frame_length, "256", 1, LENGTH_MAX, "numbers in a window"),
    KEEL_INT(args_t, frame_step, "null", 1, LENGTH_MAX,
             "steps of the window; null: half its length"),
    KEEL_INT(args_t, fft_length, "null", 2, LENGTH_MAX,
             "twice the number of frequencies; null: the power of two from frame_length on"),
    KEEL_STFT_WINDOW_FIELDS,
    KEEL_CHOICE(args_t, padding, "\"valid\"", "valid|same", "zeros around the signal, or none"),
    KEEL_DATA_FORMAT(args_t),
    KEEL_BOOL(args_t, expand_dims, "false", "the output is an image (time, frequencies, channels)"),
    { 0 },
};

static keel_status ready(void *args)
{
    const args_t *a = args;
    const bool given = a->frame_step != KEEL_INT_NULL;
    if (given ? a->frame_step > a->frame_length : a->frame_length < 2)
        return keel_fail(KEEL_EARG, "frame_step must be from 1 to frame_length");
    if (a->fft_length != KEEL_INT_NULL && a->fft_length < a->frame_length)
        return keel_fail(KEEL_EARG, "fft_length must not be less than frame_length");
    return keel_stft_check(&a->stft);
}

static int64_t bins_of(const args_t *a)
{
    int64_t n = a->fft_length;
    if (n == KEEL_INT_NULL)
        for (n = 1; n < a->frame_length;) n *= 2;
    return n / 2 + 1;
}

/* [T, C, 1] to [T', C, bins]. */
static keel_status transform(keel_emit *e, int side, keel_value image, keel_value *out)
{
    const args_t *a = e->args;
    const int64_t bins = bins_of(a);
    const int64_t step = a->frame_step == KEEL_INT_NULL ? a->frame_length / 2 : a->frame_step;
    const keel_ints size = { 2, { a->frame_length, 1 } }, strides = { 2, { step, 1 } },
                    ones = { 2, { 1, 1 } };
    keel_stft_args window = a->stft;
    const keel_object initializer = { keel_initializer_find("STFT"), &window };
    const keel_weight_decl kernel = { .name = side ? "imag_kernel" : "real_kernel",
                                      .shape = KEEL_SHAPE(a->frame_length, 1, bins),
                                      .initializer = &initializer };
    keel_conv2d_args conv = { .strides = { step, 1 }, .dilation = { 1, 1 }, .groups = 1 };
    keel_weights w = { 0 };
    window.side = side;
    KEEL_TRY(keel_emit_weight(e, &kernel, &w));
    w.spec[0].shape = KEEL_SHAPE(a->frame_length, 1, 1, bins);
    keel_same_padding(&keel_graph_spec(e->graph, image)->shape, a->padding == 1, &size, &strides,
                      &ones, conv.pad);
    return keel_emit_weighted(e, &keel_op_conv2d, &conv, image, &w, out);
}

/* All frequencies but the first and the last count twice. */
static keel_status both_sides(keel_emit *e, keel_value *power)
{
    const int64_t n = keel_value_shape(e, *power)->dim[2];
    const keel_pad_args around = { .before = { 0, 0, 1 }, .behind = { 0, 0, 1 } };
    keel_value twice[2] = { *power };
    if (n < 3) return KEEL_OK;
    KEEL_TRY(keel_emit_part(e, *power, 2, 1, n - 2, &twice[1]));
    KEEL_TRY(keel_emit_on(e, &keel_op_pad, &around, &twice[1], 1, &twice[1]));
    return keel_emit_on(e, &keel_op_add, NULL, twice, 2, power);
}

static keel_status spectrum(keel_emit *e, int mode, const keel_value part[2], keel_value *out)
{
    keel_value square[2];
    for (int k = 0; k < 2; k++) KEEL_TRY(keel_emit_each(e, &keel_op_square, part[k], &square[k]));
    KEEL_TRY(keel_emit_on(e, &keel_op_add, NULL, square, 2, out));
    if (mode == PSD) return both_sides(e, out);
    KEEL_TRY(keel_emit_with(e, &keel_op_maximum, *out, LEAST, out));
    KEEL_TRY(keel_emit_each(e, &keel_op_sqrt, *out, out));
    if (mode == MAGNITUDE) return KEEL_OK;
    KEEL_TRY(keel_emit_with(e, &keel_op_maximum, *out, LEAST, out));
    return keel_emit_each(e, &keel_op_log, *out, out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    static const keel_axis_args last = { .axis = -1 };
    static const int64_t turned[2][3] = { { 0, 2, 1 }, { 1, 0, 2 } };
    keel_shape shape;
    keel_value image, part[2], y;
    if (in->rank != 2)
        return keel_fail(KEEL_ESHAPE, "expected rows of (time, channels), or with channels_first "
                                      "of (channels, time)");
    if (e->graph->held == KEEL_BFLOAT16)
        return keel_fail(KEEL_EUNSUP, "in mixed_bfloat16: Keras refuses it, too");
    shape = KEEL_SHAPE(in->dim[0], in->dim[1], 1);
    KEEL_TRY(keel_emit_view(e, &shape, e->in[0], &image));
    if (a->mode != IMAG_PART) KEEL_TRY(transform(e, 0, image, &part[0]));
    if (a->mode != REAL_PART) KEEL_TRY(transform(e, 1, image, &part[1]));
    if (a->mode == REAL_PART || a->mode == IMAG_PART)
        y = part[a->mode == IMAG_PART];
    else if (a->mode == ANGLE)
        KEEL_TRY(
            keel_emit_on(e, &keel_op_arctan2, NULL, (keel_value[]){ part[1], part[0] }, 2, &y));
    else if (a->mode == STFT)
        KEEL_TRY(keel_emit_on(e, &keel_op_concatenate, &last, part, 2, &y));
    else
        KEEL_TRY(spectrum(e, a->mode, part, &y));
    if (a->expand_dims) return keel_emit_permuted(e, turned[a->data_format == 1], y, e->out);
    const keel_shape *s = keel_value_shape(e, y);
    shape = KEEL_SHAPE(s->dim[0], s->dim[1] * s->dim[2]);
    return keel_emit_view(e, &shape, y, e->out);
}

const keel_layer keel_layer_stft_spectrogram = {
    .type = { KEEL_LAYER_HEAD("STFTSpectrogram", "The spectrum of each window of a signal."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
