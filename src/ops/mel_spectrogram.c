/* A signal [T] becomes [bands, frames]: the Fourier transform of each window, whose magnitudes are
 * summed in triangles on the mel scale, in decibels. The signal is mirrored at both ends, so that
 * frame i is around sample i stride. Keras: MelSpectrogram. Transforms and sums are in double; the
 * triangles are float32 as in Keras. In decibels a row is cut off below its own loudest number. */
#ifndef REAL
#include "ops/mel_spectrogram.h"
#include "ops/infer.h"
#include "ops/transform.h"
#include <math.h>
#include <string.h>

enum { BANDS_MAX = 1 << 12 };

static int64_t bins_of(const keel_mel_spectrogram_args *a)
{
    return a->size / 2 + 1;
}

/* What lies in scratch, in doubles. */
typedef struct scratch {
    double *turn;       /* [size, 2]: cos and -sin of 2 pi k / size */
    double *frame, *to; /* [size, 2]: complex */
    double *weight;     /* [bins, bands] */
    double *power, *d;  /* [bins]; [bands] gradients */
} scratch;

static int64_t doubles_of(const keel_mel_spectrogram_args *a)
{
    return 6 * a->size + bins_of(a) * a->bands + bins_of(a) + a->bands;
}

static keel_status infer(keel_node *n)
{
    const keel_mel_spectrogram_args *a = n->args;
    const keel_shape *in = &n->in[0].shape;
    if (in->rank != 1)
        return keel_fail(KEEL_ESHAPE, "mel_spectrogram: expected rows of (samples,)");
    if (a->size < 2 || a->size > KEEL_FFT_MAX || a->bands > BANDS_MAX)
        return keel_fail(KEEL_EUNSUP,
                         "mel_spectrogram: a transform of %lld numbers to %lld bands; at most %d "
                         "and %d are supported",
                         (long long)a->size, (long long)a->bands, KEEL_FFT_MAX, BANDS_MAX);
    if (in->dim[0] <= a->size / 2)
        return keel_fail(KEEL_ESHAPE,
                         "mel_spectrogram: %lld samples; a transform of %lld needs more than half "
                         "as many",
                         (long long)in->dim[0], (long long)a->size);
    n->scratch = doubles_of(a) * (int64_t)sizeof(double);
    const int64_t frames = 1 + (in->dim[0] + a->size / 2 * 2 - a->size) / a->stride;
    const keel_shape out = KEEL_SHAPE(a->bands, frames);
    return keel_infer_out(n, &out);
}

static float mel(float hertz)
{
    return 1127.0f * logf(1.0f + hertz / 700.0f);
}

/* The triangles, in float32 and in Keras's order of operations. Frequency 0 is in none. */
static void fill_weights(const keel_mel_spectrogram_args *a, double *w)
{
    const int64_t bins = bins_of(a);
    const float low = mel((float)a->low), high = mel((float)a->high);
    const float step = (high - low) / (float)(a->bands + 1);
    const float bin = (float)a->rate / 2 / (float)(bins - 1);
    memset(w, 0, (size_t)a->bands * sizeof *w);
    for (int64_t b = 1; b < bins; b++)
        for (int64_t m = 0; m < a->bands; m++) {
            const float at = mel((float)b * bin);
            const float left = low + (float)m * step, middle = low + (float)(m + 1) * step;
            const float right = m + 2 == a->bands + 1 ? high : low + (float)(m + 2) * step;
            const float up = (at - left) / (middle - left), down = (right - at) / (right - middle);
            const float least = up < down ? up : down;
            w[b * a->bands + m] = least > 0 ? (double)least : 0;
        }
}

static scratch lay_out(const keel_call *c)
{
    const keel_mel_spectrogram_args *a = c->node->args;
    scratch s = { .turn = c->scratch };
    s.frame = s.turn + 2 * a->size;
    s.to = s.frame + 2 * a->size;
    s.weight = s.to + 2 * a->size;
    s.power = s.weight + bins_of(a) * a->bands;
    s.d = s.power + bins_of(a);
    keel_turns(s.turn, a->size);
    fill_weights(a, s.weight);
    return s;
}

/* The sample that element i of a frame is. */
static int64_t sample_of(const keel_mel_spectrogram_args *a, int64_t frame, int64_t i, int64_t n)
{
    int64_t at = frame * a->stride + i - a->size / 2;
    if (at < 0) at = -at;
    return at < n ? at : 2 * (n - 1) - at;
}

#define REAL_FILE "ops/mel_spectrogram.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_mel_spectrogram_args *a = args;
    *a = (keel_mel_spectrogram_args){ .size = 8,
                                      .stride = 3,
                                      .bands = 3,
                                      .rate = 100,
                                      .low = 2,
                                      .high = 50,
                                      .exponent = 2,
                                      .least = 1e-10,
                                      .reference = 1,
                                      .top = 80 };
    keel_case_ints(text, "size", &a->size, 1);
    a->window = keel_window_for_case(text, a->size);
    a->decibels = keel_case_has(text, "decibels");
    keel_case_number(text, "exponent", &a->exponent);
    keel_case_number(text, "top", &a->top);
}

const keel_op keel_op_mel_spectrogram = {
    .name = "mel_spectrogram",
    .args_size = sizeof(keel_mel_spectrogram_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN | KEEL_READS_OUT,
    .costly = true,
    .cases = (const keel_case[]){ { "20", NULL, "hann" },
                                  { "17", NULL, "hann decibels length 5" },
                                  { "14", NULL, "hamming size 12 exponent 3" },
                                  { "13", NULL, "size 7 decibels top 4" },
                                  { "12", NULL, "size 6 given length 5" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* The spectrum of a frame in s->to, its powers in s->power. */
static void REAL_(spectrum)(const keel_mel_spectrogram_args *a, const scratch *s, const REAL *x,
                            int64_t n, int64_t frame)
{
    for (int64_t i = 0; i < a->size; i++) {
        s->frame[2 * i] =
            (double)x[sample_of(a, frame, i, n)] * keel_window_at(&a->window, a->size, i);
        s->frame[2 * i + 1] = 0;
    }
    keel_transform(s->frame, 1, s->to, a->size, s->turn, a->size);
    for (int64_t b = 0; b < bins_of(a); b++)
        s->power[b] = pow(hypot(s->to[2 * b], s->to[2 * b + 1]), a->exponent);
}

static double REAL_(band)(const keel_mel_spectrogram_args *a, const scratch *s, int64_t m)
{
    double sum = 0;
    for (int64_t b = 1; b < bins_of(a); b++) sum += s->power[b] * s->weight[b * a->bands + m];
    return sum;
}

static REAL REAL_(loudest)(const REAL *y, int64_t count, int64_t *at)
{
    *at = 0;
    for (int64_t i = 1; i < count; i++)
        if (y[i] > y[*at]) *at = i;
    return y[*at];
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_mel_spectrogram_args *a = c->node->args;
    const int64_t n = c->node->in[0].shape.dim[0], frames = c->node->out[0].shape.dim[1];
    const int64_t count = a->bands * frames;
    const double reference = 10 * log10(fmax(fabs(a->reference), a->least));
    const scratch s = lay_out(c);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++, x += n, y += count) {
        int64_t at;
        for (int64_t f = 0; f < frames; f++) {
            REAL_(spectrum)(a, &s, x, n, f);
            for (int64_t m = 0; m < a->bands; m++) {
                const double sum = REAL_(band)(a, &s, m);
                y[m * frames + f] =
                    (REAL)(a->decibels ? 10 * log10(fmax(sum, a->least)) - reference : sum);
            }
        }
        if (!a->decibels) continue;
        const REAL least = REAL_(loudest)(y, count, &at) - (REAL)a->top;
        for (int64_t i = 0; i < count; i++)
            if (y[i] < least) y[i] = least;
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_mel_spectrogram_args *a = c->node->args;
    const int64_t n = c->node->in[0].shape.dim[0], frames = c->node->out[0].shape.dim[1];
    const int64_t count = a->bands * frames;
    const scratch s = lay_out(c);
    const REAL *x = c->in[0], *y = c->out[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++, x += n, y += count, dy += count, dx += n) {
        int64_t top;
        const REAL cut = REAL_(loudest)(y, count, &top) - (REAL)a->top;
        double lifted = 0; /* the gradient of what was cut off, which moves with the loudest */
        for (int64_t i = 0; a->decibels && i < count; i++)
            if (!(y[i] > cut) && i != top) lifted += (double)dy[i];
        if (!c->in_adds[0]) memset(dx, 0, (size_t)n * sizeof *dx);
        for (int64_t f = 0; f < frames; f++) {
            REAL_(spectrum)(a, &s, x, n, f);
            for (int64_t m = 0; m < a->bands; m++) {
                const int64_t i = m * frames + f;
                const double sum = REAL_(band)(a, &s, m);
                double d = (double)dy[i] + (i == top ? lifted : 0);
                if (a->decibels && i != top && !(y[i] > cut)) d = 0;
                if (a->decibels) d = sum >= a->least ? 10 / log(10) * d / sum : 0;
                s.d[m] = d;
            }
            /* The gradient of the spectrum, conjugated; its transform is that of the frame. */
            memset(s.frame, 0, 2 * (size_t)a->size * sizeof *s.frame);
            for (int64_t b = 1; b < bins_of(a); b++) {
                const double re = s.to[2 * b], im = s.to[2 * b + 1], length = hypot(re, im);
                double d = 0;
                for (int64_t m = 0; m < a->bands; m++) d += s.d[m] * s.weight[b * a->bands + m];
                if (length > 0) d *= a->exponent * pow(length, a->exponent - 2);
                s.frame[2 * b] = d * re;
                s.frame[2 * b + 1] = -d * im;
            }
            keel_transform(s.frame, 1, s.to, a->size, s.turn, a->size);
            for (int64_t i = 0; i < a->size; i++)
                dx[sample_of(a, f, i, n)] +=
                    (REAL)(s.to[2 * i] * keel_window_at(&a->window, a->size, i));
        }
    }
}
#endif
