/* Products of float32 matrices whose numbers are rounded to bfloat16 first, by products of pairs:
 * for kernels that work in float32 between their products. See _pairs_avx512_bf16.h. */
#ifndef KEEL_OPS_X86_PAIRS_REALS_AVX512_BF16_H
#define KEEL_OPS_X86_PAIRS_REALS_AVX512_BF16_H
#include "device/cpu/cpu.h"
#include "ops/op.h"

enum { PAIRS_PANEL = 64 }; /* columns that are packed together */

/* Whether a kernel for AVX-512 should multiply so: it takes half the time on AMD. Not beside AMX,
 * since pairs take as long as float32 on Intel. */
static inline bool keel_pairs_pay(const keel_node *n)
{
#ifdef __AVX512F__
    return n->held == KEEL_BFLOAT16 && keel_cpu_level() == KEEL_CPU_AVX512_BF16;
#else
    (void)n;
    return false;
#endif
}

/* The 32-bit words of a packed matrix [lines, columns]. */
int64_t keel_pairs_words(int64_t lines, int64_t columns);
/* Packs w [lines, columns], lines `row` apart; turned: of w [columns, lines], its transpose. */
void keel_pairs_pack(uint32_t *to, const float *w, int64_t row, int64_t lines, int64_t columns);
void keel_pairs_pack_transpose(uint32_t *to, const float *w, int64_t row, int64_t lines,
                               int64_t columns);

/* out [n, columns], rows out_row apart. */
typedef struct keel_pairs_reals {
    const float *a;
    int64_t a_row; /* from one row of a to the next */
    int64_t n, lines, columns;
    int64_t first, all; /* if not 0: the packed matrix has `all` lines, and `first` of them, an even
                           number, are left out before `lines` */
    float *out;
    int64_t out_row;
    bool adds;
    void *room;
} keel_pairs_reals;

/* out (+)= a [n, lines] times a packed matrix; sums begin with start [columns], NULL: 0. It needs
 * room for keel_pairs_words(lines, n) words. */
void keel_pairs_multiply_reals(const keel_pairs_reals *p, const uint32_t *packed,
                               const float *start);
/* out (+)= a^T w of a [lines, n] and w [lines, columns], lines w_row apart. It needs room for
 * keel_pairs_words(lines, n) + keel_pairs_words(lines, columns) words. */
void keel_pairs_multiply_lines(const keel_pairs_reals *p, const float *w, int64_t w_row);

#endif
