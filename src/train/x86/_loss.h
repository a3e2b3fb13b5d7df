/* Losses 8 or 16 numbers at a time. A term, which is the mathematics of one loss, is written once
 * and compiled for two ways through memory:
 *
 *     along   the numbers of one element lie in the lanes; sums over them end across the lanes
 *     across  each lane has an element of its own, of at most FEW numbers, which a small copy turns
 *             number by number: a class of 3 would leave most lanes empty
 *
 * What an element gives depends on its numbers alone, so no cut of the rows changes a bit. */
#ifndef KEEL_TRAIN_X86_LOSS_H
#define KEEL_TRAIN_X86_LOSS_H
#include "ops/x86/_double.h"
#include "ops/x86/_pointwise.h"

enum { SOME = 64, FEW = 12 };

/* Neighbouring elements, and what a term makes of them. */
typedef struct some {
    const void *args;   /* of the loss */
    int64_t n;          /* numbers of an element */
    int64_t count;      /* elements, at most SOME */
    const float *p, *t; /* [count][n] predictions and targets; t NULL: the targets are labels */
    float *grad;        /* [count][n] overwritten; NULL: not wanted */
    int32_t label[SOME];
    float scale[SOME]; /* of the gradient; 0: it is 0, whatever the numbers are */
    double loss[SOME]; /* out */
} some;

/* What a term goes over: `steps` vectors, `step` numbers apart. Its sums are in double, in two
 * halves of a vector. */
typedef struct line {
    const void *args;
    int64_t n, steps, step;
    const float *p, *t;
    float *grad;
    vf scale;
    vm live;               /* scale is not 0 */
    vi label, first, next; /* numbers of the classes: of the label, in the first vector, on */
    double *loss;
} line;

typedef struct halves {
    vd low, high;
} halves;

#define TERM static inline __attribute__((always_inline))

TERM vm line_mask(const line *l, bool along, int64_t k) /* the lanes that exist at step k */
{
    return vm_first(along ? l->n - k * LANES : LANES);
}

TERM halves halves_of(vf x)
{
    return (halves){ vd_low(x), vd_high(x) };
}

TERM vf vf_of(halves x)
{
    return vf_of_doubles(x.low, x.high);
}

TERM void add_to(halves *sum, vf x)
{
    sum->low += vd_low(x);
    sum->high += vd_high(x);
}

/* The sum over an element, in each lane that belongs to it. */
TERM halves total(halves x, bool along)
{
    if (!along) return x;
    const vd sum = vd_set(vd_sum(x.low) + vd_sum(x.high));
    return (halves){ sum, sum };
}

TERM void put_loss(const line *l, bool along, halves x)
{
    memcpy(l->loss, &x, along ? sizeof(double) : sizeof x);
}

TERM void put_gradient(const line *l, vm m, int64_t k, vf g)
{
    vf_store_some(m, l->grad + k * l->step, vf_choose(l->live, g, vf_zero()));
}

/* to[j][e] = from[e][j] */
TERM void turn_of(float *to, const float *from, int64_t count, int64_t n)
{
    for (int64_t e = 0; e < count; e++)
        for (int64_t j = 0; j < n; j++) to[j * SOME + e] = from[e * n + j];
}

TERM void turn_back_of(float *to, const float *from, int64_t count, int64_t n)
{
    for (int64_t e = 0; e < count; e++)
        for (int64_t j = 0; j < n; j++) to[e * n + j] = from[j * SOME + e];
}

/* With a known number of numbers the compiler turns vectors. */
#define TURN(of, to, from, count, n)                                                               \
    do {                                                                                           \
        if ((n) == 1)                                                                              \
            memcpy((to), (from), (size_t)(count) * sizeof *(to));                                  \
        else if ((n) == 2)                                                                         \
            of((to), (from), (count), 2);                                                          \
        else if ((n) == 3)                                                                         \
            of((to), (from), (count), 3);                                                          \
        else                                                                                       \
            of((to), (from), (count), (n));                                                        \
    } while (0)

static inline void turn(float *to, const float *from, int64_t count, int64_t n)
{
    if (count < SOME) memset(to, 0, (size_t)(n * SOME) * sizeof *to); /* all lanes are read */
    TURN(turn_of, to, from, count, n);
}

static inline void turn_back(float *to, const float *from, int64_t count, int64_t n)
{
    TURN(turn_back_of, to, from, count, n);
}

TERM void go_along(some *s, void (*term)(const line *, bool))
{
    int32_t first[LANES];
    for (int i = 0; i < LANES; i++) first[i] = i;
    for (int64_t e = 0; e < s->count; e++) {
        const vf scale = vf_set(s->scale[e]);
        const line l = { .args = s->args,
                         .n = s->n,
                         .steps = (s->n + LANES - 1) / LANES,
                         .step = LANES,
                         .p = s->p + e * s->n,
                         .t = s->t ? s->t + e * s->n : NULL,
                         .grad = s->grad ? s->grad + e * s->n : NULL,
                         .scale = scale,
                         .live = vf_beats(size_of(scale), vf_zero()),
                         .label = vi_set(s->label[e]),
                         .first = vi_load(first),
                         .next = vi_set(LANES),
                         .loss = s->loss + e };
        term(&l, true);
    }
}

TERM void go_across(some *s, void (*term)(const line *, bool))
{
    float p[FEW * SOME], t[FEW * SOME], grad[FEW * SOME];
    turn(p, s->p, s->count, s->n);
    if (s->t) turn(t, s->t, s->count, s->n);
    for (int64_t e = 0; e < s->count; e += LANES) {
        const vf scale = vf_load(s->scale + e);
        const line l = { .args = s->args,
                         .n = s->n,
                         .steps = s->n,
                         .step = SOME,
                         .p = p + e,
                         .t = s->t ? t + e : NULL,
                         .grad = s->grad ? grad + e : NULL,
                         .scale = scale,
                         .live = vf_beats(size_of(scale), vf_zero()),
                         .label = vi_load(s->label + e),
                         .first = vi_set(0),
                         .next = vi_set(1),
                         .loss = s->loss + e };
        term(&l, false);
    }
    if (s->grad) turn_back(s->grad, grad, s->count, s->n);
}

/* The function `name` of some elements from the term `term`. */
#define TERM_OF(name, term)                                                                        \
    static void name(some *s)                                                                      \
    {                                                                                              \
        if (s->n > FEW)                                                                            \
            go_along(s, term);                                                                     \
        else                                                                                       \
            go_across(s, term);                                                                    \
    }

#endif
