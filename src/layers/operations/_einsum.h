/* Sums of products by Einstein's notation, and what becomes such a sum. */
#ifndef KEEL_LAYERS_OPERATIONS_EINSUM_H
#define KEEL_LAYERS_OPERATIONS_EINSUM_H
#include "layers/operations/_operation.h"

enum { KEEL_LETTERS = 2 * KEEL_RANK_MAX, KEEL_EINSUM_MAX = 16 /* operands */ };

/* An operand or the result, with a letter for each dim of a row. */
typedef struct keel_term {
    keel_value value; /* of an operand; -1: a kernel, which has no '...' */
    bool array;       /* the same for all rows: its letters do not begin with the batch */
    char letter[KEEL_RANK_MAX + 1];
} keel_term;

/* Reads the letters of n operands and of the result, which has the batch; `dots`: the letters that
 * '...' stands for. An operand may have a letter twice. */
keel_status keel_terms_read(const keel_emit *e, const char *subscripts, keel_term *in, int n,
                            keel_term *out, char dots[KEEL_LETTERS]);
bool keel_letters_have(const char *letters, char c);
/* The letters of `of` that are, or are not, in each of two lists. */
void keel_letters_choose(char *to, const char *of, const char *a, bool in_a, const char *b,
                         bool in_b);
/* Puts the dims of a value into another order of the same letters. */
keel_status keel_term_reorder(keel_emit *e, keel_term *t, const char *order);

/* Emits the whole operation for "bqhd,bkhd->bhqk" and 1 to KEEL_EINSUM_MAX operands. The first
 * letter of the result, and of the operands that are no arrays, is the batch. */
keel_status keel_emit_einsum(keel_emit *e, const char *subscripts, const keel_term *x, int n);

/* Emits the whole operation that sums over `over` dims of each of two operands, whose dims are
 * counted without the batch. What is left of both follows one another. */
keel_status keel_emit_summed(keel_emit *e, const keel_term in[2], int over, const int64_t *first,
                             const int64_t *second);
/* Emits the whole operation that sums over `over` axes of the first argument of the call, a value,
 * and of the second, an array; axes as in Keras. What is left of both follows one another. */
keel_status keel_emit_contraction(keel_emit *e, int over, const int64_t *x_axes,
                                  const int64_t *axes);

#endif
