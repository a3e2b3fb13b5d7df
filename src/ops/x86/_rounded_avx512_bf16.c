/* Rounded products by products of pairs. See _rounded.h and _pairs_avx512_bf16.h. */
#include "ops/x86/_pairs_avx512_bf16.h"
#include "ops/x86/_rounded.h"

_Static_assert((int)ROUNDED_PANEL == (int)PANEL, "a panel is what keel_pairs_multiply takes");

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t words_of(int64_t lines, int64_t columns)
{
    return up(lines, 2) / 2 * up(columns, LANES);
}

static void pack(uint32_t *to, const float *w, int64_t row, int64_t lines, int64_t columns)
{
    for (int64_t k = 0; k < columns; k += ROUNDED_PANEL) {
        const int64_t some = least(columns - k, ROUNDED_PANEL);
        keel_pairs_pack_weights(to, w, lines, row, k, some);
        to += words_of(lines, some);
    }
}

static void pack_transpose(uint32_t *to, const float *w, int64_t row, int64_t lines,
                           int64_t columns)
{
    for (int64_t k = 0; k < columns; k += ROUNDED_PANEL) {
        const int64_t some = least(columns - k, ROUNDED_PANEL);
        keel_pairs_pack_turned(to, w, row, lines, k, some);
        to += words_of(lines, some);
    }
}

/* Rows [n, lines] rounded, each filled with zeros up to a whole pair. */
static void round_rows(keel_bf16 *to, const float *a, int64_t a_row, int64_t n, int64_t lines)
{
    const int64_t width = up(lines, 2);
    for (int64_t i = 0; i < n; i++, to += width, a += a_row)
        for (int64_t k = 0; k < width; k += LANES) {
            const __m512 x = _mm512_maskz_loadu_ps(first16(lines - k), a + k);
            _mm256_mask_storeu_epi16(to + k, first16(width - k), (__m256i)_mm512_cvtneps_pbh(x));
        }
}

static void multiply_panels(keel_pairs *d, const keel_rounded_product *p, const uint32_t *w,
                            const float *start)
{
    d->pairs = up(p->lines, 2) / 2;
    d->n_tap = 1;
    d->out_row = p->out_row;
    d->wide = true;
    d->adds = p->adds;
    for (int64_t k = 0; k < p->columns; k += ROUNDED_PANEL) {
        const int64_t some = least(p->columns - k, ROUNDED_PANEL);
        d->w = w + words_of(p->first, some);
        d->start = start ? start + k : NULL;
        d->out = p->out + k;
        keel_pairs_multiply(d, p->n, some);
        w += words_of(p->all ? p->all : p->lines, some);
    }
}

static void multiply(const keel_rounded_product *p, const uint32_t *packed, const float *start)
{
    keel_pairs d = { .a = p->room,
                     .a_row = up(p->lines, 2) * (int64_t)sizeof(keel_bf16),
                     .a_step = sizeof(uint32_t) };
    round_rows(p->room, p->a, p->a_row, p->n, p->lines);
    multiply_panels(&d, p, packed, start);
}

static void multiply_lines(const keel_rounded_product *p, const float *w, int64_t w_row)
{
    uint32_t *const words = p->room, *const packed = words + words_of(p->lines, p->n);
    keel_pairs d = { .a = p->room,
                     .a_row = sizeof(uint32_t),
                     .a_step = up(p->n, LANES) * (int64_t)sizeof(uint32_t) };
    keel_pairs_pack_weights(words, p->a, p->lines, p->a_row, 0, p->n);
    pack(packed, w, w_row, p->lines, p->columns);
    multiply_panels(&d, p, packed, NULL);
}

const keel_rounded keel_rounded_pairs = { .needs = KEEL_CPU_AVX512_BF16,
                                          .together = 2,
                                          .words = words_of,
                                          .pack = pack,
                                          .pack_transpose = pack_transpose,
                                          .multiply = multiply,
                                          .multiply_lines = multiply_lines };
