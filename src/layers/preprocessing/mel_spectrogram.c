/* The loudness of a signal [T] in bands of frequencies, as an image [bands, frames]. top_db counts
 * from the loudest number of each row, where Keras takes that of the batch. */
#include "layers/_fft_window.h"
#include "layers/layer.h"
#include "ops/mel_spectrogram.h"
#include <math.h>

KEEL_USES_OP(mel_spectrogram);

typedef struct args_t {
    int64_t fft_length, sequence_stride, sequence_length, num_mel_bins;
    keel_fft_window_args window;
    double sampling_rate, min_freq, max_freq, top_db, mag_exp, min_power, ref_power;
    bool power_to_db;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, fft_length, "2048", 2, 65536, "numbers of a Fourier transform"),
    KEEL_INT(args_t, sequence_stride, "512", 1, 1e9, "steps of the window"),
    KEEL_INT(args_t, sequence_length, "null", 1, 65536, "of the window; null: fft_length"),
    KEEL_FFT_WINDOW_FIELD(args_t, window),
    KEEL_FLOAT(args_t, sampling_rate, "16000", 1, 1e9, "samples per second"),
    KEEL_INT(args_t, num_mel_bins, "128", 1, 4096, "bands of frequencies"),
    KEEL_FLOAT(args_t, min_freq, "20.0", 0, 1e9, "lower edge of the bands, in hertz"),
    KEEL_FLOAT(args_t, max_freq, "null", 0, 1e9, "upper edge; null: half the sampling rate"),
    KEEL_BOOL(args_t, power_to_db, "true", "give decibels"),
    KEEL_FLOAT(args_t, top_db, "80.0", 0, 0, "decibels below the loudest that are cut off"),
    KEEL_FLOAT(args_t, mag_exp, "2.0", 0, 100, "power of the magnitudes"),
    KEEL_FLOAT(args_t, min_power, "1e-10", 0, 1e30, "the least power that counts"),
    KEEL_FLOAT(args_t, ref_power, "1.0", 0, 0, "the power that is 0 decibels"),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    if (a->sequence_length == KEEL_INT_NULL) a->sequence_length = a->fft_length;
    if (isnan(a->max_freq) || a->max_freq == 0) a->max_freq = floor(a->sampling_rate / 2);
    if (a->sequence_length > a->fft_length)
        return keel_fail(KEEL_EARG, "sequence_length must not be more than fft_length");
    if (!(a->max_freq > a->min_freq))
        return keel_fail(KEEL_EARG, "max_freq must be more than min_freq");
    return keel_fft_window_ready(&a->window, a->sequence_length);
}

static void release(void *args)
{
    keel_fft_window_free(&((args_t *)args)->window);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_mel_spectrogram_args op = {
        .size = a->fft_length,
        .stride = a->sequence_stride,
        .window = keel_fft_window_of(&a->window, a->sequence_length, a->fft_length),
        .bands = a->num_mel_bins,
        .rate = a->sampling_rate,
        .low = a->min_freq,
        .high = a->max_freq,
        .exponent = a->mag_exp,
        .decibels = a->power_to_db,
        .least = a->min_power,
        .reference = a->ref_power,
        .top = a->top_db,
    };
    return keel_emit_one(e, &keel_op_mel_spectrogram, &op);
}

const keel_layer keel_layer_mel_spectrogram = {
    .type = { KEEL_LAYER_HEAD("MelSpectrogram",
                              "The loudness of a signal in bands of frequencies."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready, .release = release },
    .min_inputs = 1,
    .max_inputs = 1,
    .emit = emit,
};
