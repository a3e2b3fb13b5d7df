/* See _pairs_avx512_bf16.h. */
#include "ops/x86/_fetch.h"
#include "ops/x86/_pairs_avx512_bf16.h"

enum { ROWS_MOST = 12, LINE = 64, SUMS_MOST = 16 };

/* rows and vectors are constants at each call; the last vector has the lanes of `last`. */
INLINE void block(const keel_pairs *p, int64_t i, const char *prefetch, int64_t pace,
                  const int rows, const int vectors, __mmask16 last)
{
    __m512 sum[ROWS_MOST][VECTORS];
    __m512i w[VECTORS];
    const char *a[ROWS_MOST];
    int64_t out[ROWS_MOST];
#define MASK(v) ((v) < vectors - 1 ? (__mmask16)0xffff : last)
    EACH(r, rows) {
        a[r] = p->a + (p->place ? p->place[i + r].a : (i + r) * p->a_row);
        out[r] = p->place ? p->place[i + r].out : (i + r) * p->out_row;
    }
    if (p->wide)
        EACH(r, rows)
            EACH(v, vectors) fetch_to_write((float *)p->out + out[r] + v * LANES);
    else
        EACH(r, rows)
            EACH(v, (vectors + 1) / 2) fetch_to_write((keel_bf16 *)p->out + out[r] + 2 * v * LANES);
    EACH(r, rows)
        EACH(v, vectors) {
            const bool resumes = p->wide && p->adds && !p->after;
            const float *from = resumes ? (float *)p->out + out[r] : p->start;
            sum[r][v] =
                from ? _mm512_maskz_loadu_ps(MASK(v), from + v * LANES) : _mm512_setzero_ps();
        }
    for (int t = 0; t < p->n_tap; t++) {
        int64_t x = p->tap ? p->tap[t].a : 0;
        const uint32_t *at = p->w + (p->tap ? p->tap[t].w : 0) * vectors * LANES;
        const uint32_t *const end = at + (p->pairs - p->half) * vectors * LANES;
        for (; at < end; x += p->a_step, at += vectors * LANES, prefetch += pace) {
            __builtin_prefetch(prefetch, 0, 2);
            EACH(v, vectors) w[v] = _mm512_loadu_si512(at + v * LANES);
            EACH(r, rows) {
                int32_t both;
                memcpy(&both, a[r] + x, sizeof both);
                const __m512bh pair = (__m512bh)_mm512_set1_epi32(both);
                EACH(v, vectors) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], pair, (__m512bh)w[v]);
            }
        }
        if (!p->half) continue;
        EACH(v, vectors) w[v] = _mm512_loadu_si512(at + v * LANES);
        EACH(r, rows) {
            keel_bf16 one;
            memcpy(&one, a[r] + x, sizeof one);
            const __m512bh pair = (__m512bh)_mm512_set1_epi32(one);
            EACH(v, vectors) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], pair, (__m512bh)w[v]);
        }
    }
    if (p->wide) {
        EACH(r, rows)
            EACH(v, vectors) {
                float *to = (float *)p->out + out[r] + v * LANES;
                if (p->adds && p->after)
                    sum[r][v] = _mm512_add_ps(_mm512_maskz_loadu_ps(MASK(v), to), sum[r][v]);
                _mm512_mask_storeu_ps(to, MASK(v), sum[r][v]);
            }
        return;
    }
    EACH(r, rows)
        EACH(v, vectors) {
            keel_bf16 *to = (keel_bf16 *)p->out + out[r] + v * LANES;
            __m512 y = sum[r][v];
            if (p->adds) y = _mm512_add_ps(widened(_mm256_maskz_loadu_epi16(MASK(v), to)), y);
            _mm256_mask_storeu_epi16(to, MASK(v), (__m256i)_mm512_cvtneps_pbh(y));
        }
#undef MASK
}

/* A block for each number of rows and vectors whose sums fit into registers; with fewer than 12
 * sums the processor would wait for them. */
#define BLOCK(v, r)                                                                                \
    static void block_##v##_##r(const keel_pairs *p, int64_t i, const char *prefetch,              \
                                int64_t pace, __mmask16 last)                                      \
    {                                                                                              \
        block(p, i, prefetch, pace, r, v, last);                                                   \
    }
#define BLOCKS_6(v)  BLOCK(v, 1) BLOCK(v, 2) BLOCK(v, 3) BLOCK(v, 4) BLOCK(v, 5) BLOCK(v, 6)
#define BLOCKS_8(v)  BLOCKS_6(v) BLOCK(v, 7) BLOCK(v, 8)
#define BLOCKS_12(v) BLOCKS_8(v) BLOCK(v, 9) BLOCK(v, 10) BLOCK(v, 11) BLOCK(v, 12)
BLOCKS_12(1)
BLOCKS_8(2)
BLOCKS_8(3)
BLOCKS_6(4)

#define NAMES_6(v)                                                                                 \
    block_##v##_1, block_##v##_2, block_##v##_3, block_##v##_4, block_##v##_5, block_##v##_6
#define NAMES_8(v)  NAMES_6(v), block_##v##_7, block_##v##_8
#define NAMES_12(v) NAMES_8(v), block_##v##_9, block_##v##_10, block_##v##_11, block_##v##_12
typedef void (*run_block)(const keel_pairs *, int64_t, const char *, int64_t, __mmask16);
static const run_block blocks[VECTORS][ROWS_MOST] = {
    { NAMES_12(1) }, { NAMES_8(2) }, { NAMES_8(3) }, { NAMES_6(4) }
};
static const int rows_most[VECTORS] = { 12, 8, 8, 6 };

/* What a block with so many steps prefetches. */
static void ask(keel_pairs_ahead *s, int64_t steps, const char **prefetch, int64_t *pace)
{
    const int i = s->at[0] >= s->end[0];
    if (s->at[i] >= s->end[i]) return;
    *prefetch = s->at[i];
    *pace = LINE;
    s->at[i] += steps * LINE;
}

/* The sizes of blocks differ by at most one row. */
void keel_pairs_multiply(const keel_pairs *p, int64_t n, int64_t columns)
{
    const int vectors = (int)((columns + LANES - 1) / LANES);
    const int64_t n_block = (n + rows_most[vectors - 1] - 1) / rows_most[vectors - 1];
    const __mmask16 last = first16(columns - (vectors - 1) * LANES);
    for (int64_t b = 0, i = 0, end; b < n_block; b++, i = end) {
        const char *prefetch = (const char *)p->w;
        int64_t pace = 0;
        end = n * (b + 1) / n_block;
        if (p->prefetch) ask(p->prefetch, p->n_tap * p->pairs, &prefetch, &pace);
        if (p->ahead) {
            prefetch = p->a + (p->place ? p->place[i].a : i * p->a_row) + p->ahead;
            pace = (end - i) * (int64_t)sizeof(uint32_t);
        }
        blocks[vectors - 1][end - i - 1](p, i, prefetch, pace, last);
    }
}

/* Packing ------------------------------------------------------------------------------------ */

void keel_pairs_pack_weights(uint32_t *to, const float *w, int64_t n_c, int64_t n_k, int64_t k,
                             int64_t columns)
{
    const int64_t width = up(columns, LANES);
    for (int64_t c = 0; c < n_c; c += 2)
        for (int64_t j = 0; j < width; j += LANES, to += LANES) {
            const __mmask16 m = first16(columns - j);
            const float *at = w + c * n_k + k + j;
            const __m512 low = _mm512_maskz_loadu_ps(m, at);
            const __m512 high = _mm512_maskz_loadu_ps(c + 1 < n_c ? m : 0, at + n_k);
            _mm512_storeu_si512(to, keel_pairs_of(low, high));
        }
}

/* 16 x 16 pairs at a time. */
void keel_pairs_pack_turned(uint32_t *to, const float *w, int64_t row, int64_t n_k, int64_t c,
                            int64_t columns)
{
    const int64_t width = up(columns, LANES), pairs = (n_k + 1) / 2;
    for (int64_t j = 0; j < width; j += LANES)
        for (int64_t k = 0; k < n_k; k += 2 * LANES) {
            const __mmask16 low = first16(n_k - k), high = first16(n_k - k - LANES);
            __m512i tile[16];
            EACH(r, 16) {
                const bool there = j + r < columns;
                const float *at = w + (c + j + r) * row + k;
                const __m512 a = _mm512_maskz_loadu_ps(there ? low : 0, at);
                const __m512 b = _mm512_maskz_loadu_ps(there ? high : 0, at + LANES);
                tile[r] = (__m512i)_mm512_cvtne2ps_pbh(b, a);
            }
            keel_pairs_turn(tile);
            EACH(r, 16)
                if (k / 2 + r < pairs) _mm512_storeu_si512(to + (k / 2 + r) * width + j, tile[r]);
        }
}

/* For `vectors` neighbours, a constant at each call; the last has the lanes of `last`. */
INLINE void sum_columns(const keel_span *span, int n_span, int64_t n_k, int64_t k, float *db,
                        bool adds, const int vectors, __mmask16 last)
{
    enum { STRETCH = 128 };
    __m512 some[SUMS_MOST], sum[SUMS_MOST];
    int64_t n = 0;
#define MASK(v) ((v) < vectors - 1 ? (__mmask16)0xffff : last)
    EACH(v, vectors) some[v] = sum[v] = _mm512_setzero_ps();
    for (int s = 0; s < n_span; s++) {
        const keel_bf16 *dy = (const keel_bf16 *)span[s].out_grad + k;
        for (int64_t i = 0; i < span[s].rows; i++, dy += n_k) {
            EACH(v, vectors)
                some[v] = _mm512_add_ps(some[v],
                                        widened(_mm256_maskz_loadu_epi16(MASK(v), dy + v * LANES)));
            if (++n % STRETCH) continue;
            EACH(v, vectors) sum[v] = _mm512_add_ps(sum[v], some[v]);
            EACH(v, vectors) some[v] = _mm512_setzero_ps();
        }
    }
    EACH(v, vectors) {
        sum[v] = _mm512_add_ps(sum[v], some[v]);
        if (adds) sum[v] = _mm512_add_ps(_mm512_maskz_loadu_ps(MASK(v), db + v * LANES), sum[v]);
        _mm512_mask_storeu_ps(db + v * LANES, MASK(v), sum[v]);
    }
#undef MASK
}

/* Rows of dy lie far apart, so as many neighbours as possible are summed at a time; else dy would
 * be read again and again. */
void keel_pairs_sum(const keel_span *span, int n_span, int64_t n_k, int64_t k, int64_t count,
                    float *db, bool adds)
{
    int64_t j = 0;
    for (; count - j >= SUMS_MOST * LANES; j += SUMS_MOST * LANES)
        sum_columns(span, n_span, n_k, k + j, db + j, adds, SUMS_MOST, 0xffff);
    for (; count - j >= 4 * LANES; j += 4 * LANES)
        sum_columns(span, n_span, n_k, k + j, db + j, adds, 4, 0xffff);
    for (; j < count; j += LANES)
        sum_columns(span, n_span, n_k, k + j, db + j, adds, 1, first16(count - j));
}

void keel_pairs_add(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const __mmask16 m = first16(n - i);
        const __m512 sum =
            _mm512_add_ps(_mm512_maskz_loadu_ps(m, to + i), _mm512_maskz_loadu_ps(m, from + i));
        _mm512_mask_storeu_ps(to + i, m, sum);
    }
}
