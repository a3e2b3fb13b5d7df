/* A kernel [taps, C, K] of a convolution, or of a dense layer with one tap, packed in panels of
 * PANEL columns, a line for each term of a sum, and the product with it. Forward multiplies by its
 * taps C lines of K columns, backward by the taps in reverse order, each turned: taps K lines of C
 * columns. */
#ifndef KEEL_OPS_X86_PANELS_H
#define KEEL_OPS_X86_PANELS_H
#include "base/memory.h"
#include "ops/x86/_blocks.h"

enum { INNER = 512 /* lines of a panel that are multiplied at a time: they stay in the cache */ };

typedef struct panels {
    int64_t taps, c, k;
    bool turned;
} panels;

static int64_t panel_lines(const panels *s)
{
    return s->taps * (s->turned ? s->k : s->c);
}

static int64_t panel_columns(const panels *s)
{
    return s->turned ? s->c : s->k;
}

/* Interleaves the lanes of the lower and of the upper halves of a and b. */
#ifdef __AVX512F__
#define LOWER(a, b)                                                                                \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define UPPER(a, b)                                                                                \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#else
#define LOWER(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#endif

/* Transposes: log2(LANES) times, rows i and i + LANES / 2 are interleaved into 2 i, 2 i + 1. */
INLINE void turn(vf a[LANES])
{
    EACH(round, LANES == 16 ? 4 : 3) {
        vf b[LANES];
        EACH(i, LANES / 2) {
            b[2 * i] = (vf)LOWER(a[i], a[i + LANES / 2]);
            b[2 * i + 1] = (vf)UPPER(a[i], a[i + LANES / 2]);
        }
        EACH(i, LANES) a[i] = b[i];
    }
}

/* Rows [c, c + columns) of w [.., k] as columns. */
static void pack_turned(float *to, const float *w, int64_t k, int64_t c, int64_t columns)
{
    const int64_t width = up(columns, LANES);
    for (int64_t j = 0; j < width; j += LANES)
        for (int64_t i = 0; i < k; i += LANES) {
            const vm m = vm_first(k - i);
            vf a[LANES];
            EACH(r, LANES)
                a[r] = j + r < columns ? vf_load_some(m, w + (c + j + r) * k + i) : vf_zero();
            turn(a);
            EACH(r, LANES)
                if (i + r < k) vf_store(to + (i + r) * width + j, a[r]);
        }
}

static void pack(float *to, const float *w, int64_t inner, int64_t row, int64_t columns)
{
    const int64_t width = up(columns, LANES);
    for (int64_t i = 0; i < inner; i++, w += row, to += width)
        for (int64_t j = 0; j < width; j += LANES)
            vf_store(to + j, vf_load_some(vm_first(columns - j), w + j));
}

static void panels_refresh(const keel_derived *d, const void *weight)
{
    const panels *s = d->plan;
    const float *w = weight;
    float *to = d->data;
    const int64_t n = panel_columns(s), lines = panel_lines(s);
    for (int64_t j = 0; j < n; j += PANEL) {
        const int64_t columns = at_most(n - j, PANEL), width = up(columns, LANES);
        if (s->turned)
            for (int64_t t = 0; t < s->taps; t++)
                pack_turned(to + t * s->k * width, w + (s->taps - 1 - t) * s->c * s->k, s->k, j,
                            columns);
        else
            pack(to, w + j, lines, s->k, columns);
        to += lines * width;
    }
}

/* Asks for a copy of weight 0 that `refresh` packs in panels of this shape. */
static inline keel_status panels_derive_by(keel_prepare *p, const panels *of,
                                           void (*refresh)(const keel_derived *, const void *),
                                           const keel_derived **got)
{
    panels *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    *s = *of;
    const int64_t count = panel_lines(s) * up(panel_columns(s), LANES);
    keel_derived want = { .bytes = (size_t)count * sizeof(float),
                          .weight = 0,
                          .key = 0x31783170616e6500u + (refresh == panels_refresh ? 0 : 128) +
                                 2 * LANES + s->turned,
                          .refresh = refresh,
                          .release = keel_free,
                          .plan = s };
    return p->derive(p->context, &want, got);
}

static inline keel_status panels_derive(keel_prepare *p, const panels *of, const keel_derived **got)
{
    return panels_derive_by(p, of, panels_refresh, got);
}

/* out [n, columns] = a [n, inner] times `inner` lines of the panels, from line `first` on. */
static inline void multiply_panels(const keel_derived *packed, const product *whole, int64_t n,
                                   int64_t first, int64_t inner)
{
    const panels *s = packed->plan;
    const int64_t columns = panel_columns(s), lines = panel_lines(s);
    for (int64_t j = 0; j < inner; j += INNER) {
        const float *w = packed->data;
        for (int64_t k = 0; k < columns; k += PANEL) {
            const int64_t width = at_most(columns - k, PANEL);
            product p = *whole;
            p.a += j;
            p.a_step = 1;
            p.w_row = up(width, LANES);
            p.w = w + (first + j) * p.w_row;
            p.inner = at_most(inner - j, INNER);
            p.out += k;
            if (p.start) p.start += k;
            p.resumes = whole->resumes || j > 0;
            p.adds = whole->adds && j == 0;
            if (k > 0 || inner > INNER) p.ahead = 0;
            multiply(&p, n, width);
            w += lines * p.w_row;
        }
    }
}

#endif
