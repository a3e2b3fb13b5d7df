/* Lines of outputs of very few filters, with channels in the lanes of a vector: other kernels have
 * filters there, which are then mostly idle.
 *
 * An output is a product along the taps that it sees and their channels, and its lanes are added at
 * the end. A block of outputs reads each vector of weights once. Sums are in float32 and in an
 * order that only the shape decides. Include it as the VALUE_FILE of _values.h, too. */
#ifndef VALUE
#ifndef KEEL_OPS_X86_FEW_H
#define KEEL_OPS_X86_FEW_H
#include "ops/args.h"
#include "ops/window.h"
#include "ops/x86/_vector.h"

enum { FEW_NARROW_MOST = 6, FEW_CHANNELS_LEAST = 8, FEW_TAPS_MOST = 1024 };

/* How many outputs are in a block, by the number of filters: their sums stay in registers. */
#ifdef __AVX512F__
enum { OUTS_1 = 16, OUTS_2 = 10, OUTS_3 = 8, OUTS_4 = 6, OUTS_5 = 4, OUTS_6 = 4, OUTS_7 = 3 };
enum { OUTS_8 = 3, FEW_PAYS_MOST = 8 };
#else
enum { OUTS_1 = 8, OUTS_2 = 5, OUTS_3 = 4, OUTS_4 = 3, OUTS_5 = 2, OUTS_6 = 2, OUTS_7 = 1 };
enum { OUTS_8 = 1, FEW_PAYS_MOST = 6 };
#endif
enum { FEW_MOST = 8 }; /* the loops take so many */

/* run(n_f, kind_n) of the number of filters, with constants. */
#define BY_FILTERS(run, kind, n_f)                                                                 \
    switch (n_f) {                                                                                 \
        BY_FILTERS_OF(run, kind, 1)                                                                \
        BY_FILTERS_OF(run, kind, 2)                                                                \
        BY_FILTERS_OF(run, kind, 3)                                                                \
        BY_FILTERS_OF(run, kind, 4)                                                                \
        BY_FILTERS_OF(run, kind, 5)                                                                \
        BY_FILTERS_OF(run, kind, 6)                                                                \
        BY_FILTERS_OF(run, kind, 7)                                                                \
        BY_FILTERS_OF(run, kind, 8)                                                                \
    }
#define BY_FILTERS_OF(run, kind, n)                                                                \
    case n:                                                                                        \
        run(n, kind##_##n);                                                                        \
        break;

typedef struct few_line {
    int64_t outs, y_step;    /* outputs of the line, and how far apart they are stored */
    int64_t in, step;        /* places of a line of x, and those from one output to the next */
    int64_t channels, apart; /* of x; of the weights, from one filter to the next */
    const float *weights;
    const float *bias; /* NULL: none */
    bool adds;         /* to what is in y */
} few_line;

/* Whether few filters and so many channels pay. Products of bfloat16 pairs win from more filters
 * on, and tiles may from one on. */
static inline bool few_pays(const keel_node *n, int64_t filters, int64_t channels, int64_t taps)
{
    const bool narrow = n->held == KEEL_BFLOAT16;
    if (channels < FEW_CHANNELS_LEAST || taps > FEW_TAPS_MOST) return false;
    if (narrow && keel_cpu_level() >= KEEL_CPU_AMX) return false;
    return filters <= (narrow ? FEW_NARROW_MOST : FEW_PAYS_MOST);
}

/* A value as float32; a weight as products take it beside such values. */
static inline float wide_f32(float x)
{
    return x;
}

static inline float wide_bf16(keel_bf16 x)
{
    return keel_bf16_wide(x);
}

static inline float factor_f32(float weight)
{
    return weight;
}

static inline float factor_bf16(float weight)
{
    return keel_bf16_wide(keel_bf16_round(weight));
}

#endif
#else
typedef struct VALUE_(tap) {
    const VALUE *at; /* what output 0 of the line sees, where it may be outside */
    int64_t place;   /* of that in its line */
    int64_t weight;  /* where its weights begin, or sums of their gradients: [filters][apart] */
} VALUE_(tap);

/* `outs` outputs from `first` on, which see all those taps. */
static inline __attribute__((always_inline)) void VALUE_(make_outs)(const few_line *l,
                                                                    const VALUE_(tap) * tap,
                                                                    int n_tap, int64_t first,
                                                                    VALUE *y, int n_f, int outs)
{
    const int64_t x_step = l->step * l->channels;
    vf sum[OUTS_1][FEW_MOST];
    EACH(o, outs)
        EACH(f, n_f) sum[o][f] = vf_zero();
    for (int t = 0; t < n_tap; t++) {
        const VALUE *x = tap[t].at + first * x_step;
        const float *weight = l->weights + tap[t].weight;
        VECTOR_EACH(c, l->channels, m, {
            vf of[FEW_MOST];
            EACH(f, n_f) of[f] = vf_load_some(m, weight + f * l->apart + c);
            EACH(o, outs) {
                const vf some = vx_load_some(m, x + o * x_step + c);
                EACH(f, n_f) sum[o][f] = vf_fma(some, of[f], sum[o][f]);
            }
        });
    }
    EACH(o, outs)
        EACH(f, n_f) {
            VALUE *to = y + (first + o) * l->y_step + f;
            const float before = l->bias ? l->bias[f] : l->adds ? VALUE_(wide)(*to) : 0;
            vx_store_some(vm_first(1), to, vf_set(before + vf_sum(sum[o][f])));
        }
}

/* The outputs of a line that see all taps; *end is not one of them. */
static void VALUE_(see_all)(const few_line *l, const VALUE_(tap) * tap, int n_tap, int64_t *first,
                            int64_t *end)
{
    *first = 0;
    *end = l->outs;
    for (int t = 0; t < n_tap; t++) {
        const int64_t p = tap[t].place, from = p < 0 ? (-p + l->step - 1) / l->step : 0;
        const int64_t to = p >= l->in ? 0 : (l->in - 1 - p) / l->step + 1;
        if (*first < from) *first = from;
        if (*end > to) *end = to;
    }
}

/* A line: blocks of outputs that see all taps, and one by one those that do not. */
static inline __attribute__((always_inline)) void VALUE_(make_line)(const few_line *l,
                                                                    const VALUE_(tap) * tap,
                                                                    int n_tap, VALUE *y, int n_f,
                                                                    int outs)
{
    VALUE_(tap) seen[FEW_TAPS_MOST];
    int64_t first, end;
    VALUE_(see_all)(l, tap, n_tap, &first, &end);
    for (int64_t o = 0; o < l->outs;) {
        if (o >= first && o + outs <= end) {
            VALUE_(make_outs)(l, tap, n_tap, o, y, n_f, outs);
            o += outs;
            continue;
        }
        int n = 0;
        for (int t = 0; t < n_tap; t++) {
            const int64_t place = tap[t].place + o * l->step;
            if (place >= 0 && place < l->in) seen[n++] = tap[t];
        }
        VALUE_(make_outs)(l, seen, n, o, y, n_f, 1);
        o++;
    }
}
#endif
