/* Fourier's transform along the last places, y[k] = sum x[i] e^(-2 pi i k / n), in double. Keras:
 * ops.fft, ops.rfft, ops.irfft.
 *
 * It is linear, so backward is the transposed sum: with T the transform, and g the gradient, the
 * conjugate of T(conj g); of reals, its real part. From the frequencies of real numbers all but the
 * first (and, for an even size, the last) count twice. */
#ifndef REAL
#include "ops/fourier.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/transform.h"

static int64_t bins_of(const keel_fourier_args *a)
{
    return a->size / 2 + 1;
}

static keel_status infer(keel_node *n)
{
    const keel_fourier_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    const int r = out.rank;
    if (a->size < 1 || a->size > KEEL_FFT_MAX)
        return keel_fail(KEEL_EUNSUP, "fourier: a transform of %lld numbers; 1 to %d are supported",
                         (long long)a->size, KEEL_FFT_MAX);
    if (a->from_reals ? r < 1 || r == KEEL_RANK_MAX : r < 2 || out.dim[r - 1] != 2)
        return keel_fail(KEEL_ESHAPE, "fourier: rows must be lists of numbers");
    if (!a->from_reals && !a->to_reals && out.dim[r - 2] != a->size)
        return keel_fail(KEEL_ESHAPE, "fourier: %lld numbers for a transform of %lld",
                         (long long)out.dim[r - 2], (long long)a->size);
    if (a->from_reals) {
        out.dim[r - 1] = bins_of(a);
        out.dim[out.rank++] = 2;
    } else if (a->to_reals) {
        out.dim[r - 2] = a->size;
        out.rank--;
    }
    n->scratch = 6 * a->size * (int64_t)sizeof(double);
    return keel_infer_out(n, &out);
}

/* Places of a line: of the input, and of the output. */
typedef struct lines {
    int64_t count, in, out;
} lines;

static lines lines_of(const keel_call *c)
{
    const keel_fourier_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape, *out = &c->node->out[0].shape;
    lines l = { .in = in->dim[in->rank - (a->from_reals ? 1 : 2)],
                .out = out->dim[out->rank - (a->to_reals ? 1 : 2)] };
    l.count = c->rows * keel_row_count(&c->node->in[0]) / (l.in * (a->from_reals ? 1 : 2));
    return l;
}

/* Whether frequency k stands for two of a real signal. */
static bool twice(const keel_fourier_args *a, int64_t k)
{
    return k > 0 && 2 * k != a->size;
}

typedef struct scratch { /* each [size, 2] */
    double *turn, *from, *to;
} scratch;

static scratch lay_out(const keel_call *c)
{
    const keel_fourier_args *a = c->node->args;
    scratch s = { .turn = c->scratch };
    s.from = s.turn + 2 * a->size;
    s.to = s.from + 2 * a->size;
    keel_turns(s.turn, a->size);
    return s;
}

#define REAL_FILE "ops/fourier.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_fourier_args *a = args;
    keel_case_ints(text, "size", &a->size, 1);
    a->from_reals = keel_case_has(text, "from_reals");
    a->to_reals = keel_case_has(text, "to_reals");
}

const keel_op keel_op_fourier = {
    .name = "fourier",
    .args_size = sizeof(keel_fourier_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = 0,
    .cases = (const keel_case[]){ { "6,2", NULL, "size 6" },
                                  { "2,5,2", NULL, "size 5" },
                                  { "3,8", NULL, "size 8 from_reals" },
                                  { "7", NULL, "size 5 from_reals" },
                                  { "5,2", NULL, "size 8 to_reals" },
                                  { "3,2", NULL, "size 7 to_reals" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* y = T(conj x), with x filled up to the size: complex numbers, or of a signal that is real. */
static void REAL_(back)(const keel_fourier_args *a, const scratch *s, const REAL *x, int64_t n,
                        bool hermitian)
{
    for (int64_t i = 0; i < 2 * a->size; i++) s->from[i] = 0;
    for (int64_t k = 0; k < n && k < (hermitian ? bins_of(a) : a->size); k++) {
        const double re = (double)x[2 * k], im = (double)x[2 * k + 1];
        s->from[2 * k] = re;
        s->from[2 * k + 1] = hermitian && !twice(a, k) ? 0 : -im;
        if (!hermitian || !twice(a, k)) continue;
        s->from[2 * (a->size - k)] = re;
        s->from[2 * (a->size - k) + 1] = im;
    }
    keel_transform(s->from, 1, s->to, a->size, s->turn, a->size);
}

/* y = T(x) of real numbers, filled up to the size. */
static void REAL_(of_reals)(const keel_fourier_args *a, const scratch *s, const REAL *x, int64_t n)
{
    for (int64_t i = 0; i < a->size; i++) {
        s->from[2 * i] = i < n ? (double)x[i] : 0;
        s->from[2 * i + 1] = 0;
    }
    keel_transform(s->from, 1, s->to, a->size, s->turn, a->size);
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_fourier_args *a = c->node->args;
    const scratch s = lay_out(c);
    const lines l = lines_of(c);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t line = 0; line < l.count; line++) {
        if (a->to_reals) {
            REAL_(back)(a, &s, x, l.in, true);
            for (int64_t i = 0; i < a->size; i++) y[i] = (REAL)(s.to[2 * i] / (double)a->size);
        } else if (a->from_reals) {
            REAL_(of_reals)(a, &s, x, l.in);
            for (int64_t i = 0; i < 2 * l.out; i++) y[i] = (REAL)s.to[i];
        } else {
            for (int64_t i = 0; i < 2 * a->size; i++) s.from[i] = (double)x[i];
            keel_transform(s.from, 1, s.to, a->size, s.turn, a->size);
            for (int64_t i = 0; i < 2 * l.out; i++) y[i] = (REAL)s.to[i];
        }
        x += l.in * (a->from_reals ? 1 : 2);
        y += l.out * (a->to_reals ? 1 : 2);
    }
}

static void REAL_(put)(REAL *to, double g, bool adds)
{
    *to = (REAL)(adds ? *to + g : g);
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_fourier_args *a = c->node->args;
    const scratch s = lay_out(c);
    const lines l = lines_of(c);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    const bool adds = c->in_adds[0];
    for (int64_t line = 0; dx && line < l.count; line++) {
        if (a->to_reals) {
            REAL_(of_reals)(a, &s, dy, l.out);
            for (int64_t k = 0; k < l.in; k++) {
                const double share = k < bins_of(a) ? (twice(a, k) ? 2 : 1) / (double)a->size : 0;
                const bool there = share > 0;
                REAL_(put)(&dx[2 * k], there ? share * s.to[2 * k] : 0, adds);
                REAL_(put)
                (&dx[2 * k + 1], there && twice(a, k) ? share * s.to[2 * k + 1] : 0, adds);
            }
        } else {
            REAL_(back)(a, &s, dy, l.out, false);
            for (int64_t i = 0; i < l.in; i++) {
                const double re = i < a->size ? s.to[2 * i] : 0;
                if (a->from_reals) {
                    REAL_(put)(&dx[i], re, adds);
                    continue;
                }
                REAL_(put)(&dx[2 * i], re, adds);
                REAL_(put)(&dx[2 * i + 1], -s.to[2 * i + 1], adds);
            }
        }
        dy += l.out * (a->to_reals ? 1 : 2);
        dx += l.in * (a->from_reals ? 1 : 2);
    }
}
#endif
