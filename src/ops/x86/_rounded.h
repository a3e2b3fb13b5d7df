/* Products of float32 matrices whose numbers are rounded to bfloat16 first: for kernels of layers
 * in bfloat16 that go on in float32 between their products.
 *
 * There are two ways to make them: by products of pairs, and by tiles where the processor has AMX.
 * Sums are float32; a row's result does not depend on the rows beside it. */
#ifndef KEEL_OPS_X86_ROUNDED_H
#define KEEL_OPS_X86_ROUNDED_H
#include "device/cpu/cpu.h"
#include "ops/op.h"

enum { ROUNDED_PANEL = 64 }; /* columns whose copy lies together, in any way */

/* out [n, columns], rows out_row apart. */
typedef struct keel_rounded_product {
    const float *a;
    int64_t a_row; /* from one row of a to the next */
    int64_t n, lines, columns;
    int64_t first, all; /* if not 0: the packed matrix has `all` lines, and `first` of them, a
                           multiple of the way's `together`, are left out before `lines` */
    float *out;
    int64_t out_row;
    bool adds;
    void *room;
} keel_rounded_product;

typedef struct keel_rounded {
    int needs;    /* a keel_cpu_isa */
    int together; /* lines of a matrix that lie together in its copy */
    /* The 32-bit words of a packed matrix [lines, columns]. */
    int64_t (*words)(int64_t lines, int64_t columns);
    /* Packs w [lines, columns], lines `row` apart; pack_transpose: of w [columns, lines], its
     * transpose. */
    void (*pack)(uint32_t *to, const float *w, int64_t row, int64_t lines, int64_t columns);
    void (*pack_transpose)(uint32_t *to, const float *w, int64_t row, int64_t lines,
                           int64_t columns);
    /* out (+)= a [n, lines] times a packed matrix, + start [columns], NULL: 0. It needs room for
     * words(lines, n) words. */
    void (*multiply)(const keel_rounded_product *p, const uint32_t *packed, const float *start);
    /* out (+)= a^T w of a [lines, n] and w [lines, columns], lines w_row apart. It needs room for
     * words(lines, n) + words(lines, columns) words. */
    void (*multiply_lines)(const keel_rounded_product *p, const float *w, int64_t w_row);
} keel_rounded;

extern const keel_rounded keel_rounded_pairs, keel_rounded_tiles;

/* The way of this processor; NULL: none. Pairs take half the time of float32 on AMD, and as long on
 * Intel, whose processors with AMX have tiles. Thread-safe; cheap. */
static inline const keel_rounded *keel_rounded_way(void)
{
    const int level = (int)keel_cpu_level();
    return level >= keel_rounded_tiles.needs   ? &keel_rounded_tiles
           : level >= keel_rounded_pairs.needs ? &keel_rounded_pairs
                                               : NULL;
}

/* How a kernel for AVX-512 should multiply, NULL: in float32. */
static inline const keel_rounded *keel_rounded_of(const keel_node *n)
{
#ifdef __AVX512F__
    return n->held == KEEL_BFLOAT16 ? keel_rounded_way() : NULL;
#else
    (void)n;
    return NULL;
#endif
}

#endif
