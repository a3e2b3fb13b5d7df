/* Products of bfloat16 values with a packed panel, by the products of pairs of AVX512_BF16: the
 * inner loop of dense and of convolutions.
 *
 * One instruction adds two products to each of 16 sums: a pair of a row of a, the same in all
 * lanes, times 16 pairs of w. So the right operand is packed in panels of at most 64 columns with a
 * 32-bit pair as element, [pairs][columns]. A block of rows x columns of sums stays in registers
 * while the pairs run. A sum adds its pairs one after another, whatever rows are beside it. */
#ifndef KEEL_OPS_X86_PAIRS_AVX512_BF16_H
#define KEEL_OPS_X86_PAIRS_AVX512_BF16_H
#include "ops/x86/_vector.h"

enum { VECTORS = 4, PANEL = VECTORS * LANES };

/* Where the pairs of a row begin, in bytes, and its results, in elements. */
typedef struct keel_pairs_place {
    int64_t a, out;
} keel_pairs_place;

/* Where the runs of a tap are: in bytes from a row's place, and its part of the panel, in pairs. */
typedef struct keel_pairs_tap {
    int64_t a, w;
} keel_pairs_tap;

/* Memory to prefetch, a line at each step of the products, which leave the memory bus idle; packing
 * would have to wait for it. */
typedef struct keel_pairs_ahead {
    const char *at[2], *end[2]; /* two stretches; the products advance `at` */
} keel_pairs_ahead;

/* The pairs of a row are n_tap runs of `pairs`, each a_step bytes after the last: pair p of tap t
 * of row i is 32 bits at a + (its place) + tap[t].a + p * a_step, and multiplies row p of the tap's
 * part of the panel. */
typedef struct keel_pairs {
    const char *a;
    const keel_pairs_place *place; /* for each row; NULL: rows are a_row bytes and out_row apart */
    int64_t a_row, a_step;
    int64_t pairs;
    int n_tap;
    const keel_pairs_tap *tap; /* [n_tap]; NULL: one that begins at 0 */
    bool half;          /* the last pair of a run has one value, and memory may end after it */
    const uint32_t *w;  /* parts of [pairs][columns, rounded up to LANES] */
    const float *start; /* [columns]: what sums begin with; NULL: 0 */
    void *out;          /* keel_bf16, or float where `wide` */
    int64_t out_row;
    bool wide, adds; /* adds: `wide` sums begin with what is in out; other sums are added to it */
    bool after; /* such sums begin with 0, and what is in out is added last, so nothing waits for it
                 */
    keel_pairs_ahead *prefetch; /* NULL: nothing */
    int64_t ahead;              /* if not 0, blocks prefetch a this many bytes ahead */
} keel_pairs;

/* Rows 0 to n times a panel of at most PANEL columns. */
void keel_pairs_multiply(const keel_pairs *p, int64_t n, int64_t columns);

/* Columns [k, k + columns) of W [n_c, n_k], rounded, as pairs of rows. */
void keel_pairs_pack_weights(uint32_t *to, const float *w, int64_t n_c, int64_t n_k, int64_t k,
                             int64_t columns);
/* Rows [c, c + columns) of W [.., n_k], `row` apart, rounded and transposed, as pairs of columns.
 */
void keel_pairs_pack_turned(uint32_t *to, const float *w, int64_t row, int64_t n_k, int64_t c,
                            int64_t columns);

static inline int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static inline __mmask16 first16(int64_t n)
{
    return n >= 16 ? (__mmask16)0xffff : n <= 0 ? (__mmask16)0 : (__mmask16)((1u << n) - 1);
}

static inline __mmask32 first32(int64_t n)
{
    return n >= 32 ? 0xffffffff : n <= 0 ? 0 : (__mmask32)((1u << n) - 1);
}

static inline __m512 widened(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/* 16 pairs of a number of `low` and one of `high`, rounded. */
INLINE __m512i keel_pairs_of(__m512 low, __m512 high)
{
    const __m512i index = _mm512_set_epi32(
        31 << 16 | 15, 30 << 16 | 14, 29 << 16 | 13, 28 << 16 | 12, 27 << 16 | 11, 26 << 16 | 10,
        25 << 16 | 9, 24 << 16 | 8, 23 << 16 | 7, 22 << 16 | 6, 21 << 16 | 5, 20 << 16 | 4,
        19 << 16 | 3, 18 << 16 | 2, 17 << 16 | 1, 16 << 16 | 0);
    return _mm512_permutexvar_epi16(index, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

/* Transposes a square of pairs. Unrolled, because it would be in memory otherwise. */
INLINE void keel_pairs_turn(__m512i a[16])
{
    __m512i b[16];
    _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++)
    {
        b[2 * i] = _mm512_unpacklo_epi32(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm512_unpackhi_epi32(a[2 * i], a[2 * i + 1]);
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)
        _Pragma("GCC unroll 2") for (int h = 0; h < 2; h++)
    {
        a[4 * i + 2 * h] = _mm512_unpacklo_epi64(b[4 * i + h], b[4 * i + 2 + h]);
        a[4 * i + 2 * h + 1] = _mm512_unpackhi_epi64(b[4 * i + h], b[4 * i + 2 + h]);
    }
    _Pragma("GCC unroll 2") for (int h = 0; h < 2; h++)
        _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)
    {
        b[8 * h + i] = _mm512_shuffle_i32x4(a[8 * h + i], a[8 * h + 4 + i], 0x88);
        b[8 * h + 4 + i] = _mm512_shuffle_i32x4(a[8 * h + i], a[8 * h + 4 + i], 0xdd);
    }
    _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++)
    {
        a[i] = _mm512_shuffle_i32x4(b[i], b[8 + i], 0x88);
        a[8 + i] = _mm512_shuffle_i32x4(b[i], b[8 + i], 0xdd);
    }
}

/* Two rows of n values as pairs; `to` is filled with zeros up to a multiple of LANES. high may be
 * NULL: zeros. */
static inline void keel_pairs_pack_values(uint32_t *to, const keel_bf16 *low, const keel_bf16 *high,
                                          int64_t n)
{
    const __m512i index = _mm512_set_epi32(
        47 << 16 | 15, 46 << 16 | 14, 45 << 16 | 13, 44 << 16 | 12, 43 << 16 | 11, 42 << 16 | 10,
        41 << 16 | 9, 40 << 16 | 8, 39 << 16 | 7, 38 << 16 | 6, 37 << 16 | 5, 36 << 16 | 4,
        35 << 16 | 3, 34 << 16 | 2, 33 << 16 | 1, 32 << 16 | 0);
    const __m512i upper = _mm512_add_epi16(index, _mm512_set1_epi16(16));
    for (int64_t i = 0; i < n; i += 32) {
        const __mmask32 m = first32(n - i);
        const __m512i a = _mm512_maskz_loadu_epi16(low ? m : 0, low + i);
        const __m512i b = _mm512_maskz_loadu_epi16(high ? m : 0, high + i);
        _mm512_storeu_si512(to + i, _mm512_permutex2var_epi16(a, index, b));
        if (n - i > LANES)
            _mm512_storeu_si512(to + i + LANES, _mm512_permutex2var_epi16(a, upper, b));
    }
}

/* [k, k + count) of the gradient of a bias: sums of dy [n, n_k] over places, in stretches, because
 * a long float32 sum loses small terms; spans one after another. */
void keel_pairs_sum(const keel_span *span, int n_span, int64_t n_k, int64_t k, int64_t count,
                    float *db, bool adds);

/* to += from. A weight gradient that adds is summed separately and added once. So the two halves of
 * a step give the same bits whether one worker or two have them. */
void keel_pairs_add(float *to, const float *from, int64_t n);

#endif
