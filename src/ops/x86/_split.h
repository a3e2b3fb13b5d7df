/* Products of float32 by tiles of bfloat16: each value is the sum of two or three bfloat16 pieces,
 * and the products of the larger pieces are added in float32. See _split_amx.c.
 *
 * All are products over shifted places, which serves dense layers (one tap) and convolutions (a tap
 * for each element of the window):
 *
 * to[q][j] = sum over taps t and channels i of from[t.list][q + t.shift][i] W[t][i][j]
 *
 * A place is a pointer to its channels; NULL is a place of zeros, or one that is not wanted. */
#ifndef KEEL_OPS_X86_SPLIT_H
#define KEEL_OPS_X86_SPLIT_H
#include "ops/op.h"
#include "ops/x86/_tiles.h"

enum { SPLIT_TAPS = 64, SPLIT_LISTS = 16, SPLIT_REDUCTION = 512 /* of one run of accumulators */ };

typedef struct keel_split {
    int pieces;   /* 3: six products, as accurate as float32; 2: three products, about 16 bits */
    int64_t c, k; /* channels of a place of `from` and of `to` */
    int n_tap, n_list;
    int64_t reach; /* the largest shift */
    struct keel_tap {
        int list;
        int64_t shift;
    } tap[SPLIT_TAPS];
} keel_split;

/* Whether this processor runs these products under these options: p->float32 allows them and, for
 * KEEL_FLOAT32_EXACT, they were measured to be faster. Sets *pieces. */
bool keel_split_allowed(const keel_prepare *p, int *pieces);

/* W in the order of tiles, as a derived copy of the node's weight 0 [n_tap][c][k]. turned: for the
 * gradient of the left operand: taps in reverse, each transposed, so that s->c is the weight's last
 * dim. */
keel_status keel_split_derive(keel_prepare *p, const keel_split *s, bool turned,
                              const keel_derived **got);

/* Bytes of scratch for at most `places`. */
int64_t keel_split_product_scratch(const keel_split *s, int64_t places);
int64_t keel_split_gradient_scratch(const keel_split *s, int64_t places);

/* Computes `to` [n] from each list of `from` [n + reach]; bias [k] may be NULL. false: the pieces
 * would lose digits of some numbers (see _split_amx.c), and `to` is undefined. */
bool keel_split_product(const keel_split *s, const float *const *const *from, float *const *to,
                        int64_t n, const keel_derived *w, const float *bias, bool adds,
                        void *scratch);

/* dw[t][i][j] (+)= sum over q of from[t.list][q + t.shift][i] to_grad[q][j] for n <=
 * SPLIT_REDUCTION places. false: as above. */
bool keel_split_gradient(const keel_split *s, const float *const *const *from,
                         const float *const *to_grad, int64_t n, float *dw, bool adds,
                         void *scratch);

/* db[j] (+)= sum of to_grad[i][j] over n rows of k. */
void keel_split_bias(float *db, const float *to_grad, int64_t n, int64_t k, bool adds);

/* to += from. The gradient of a call is summed separately before it is added to that of another
 * call. So the halves of a step give the same bits whether one worker has both or two have one
 * each. */
void keel_split_add(float *to, const float *from, int64_t n);

/* The largest magnitude of n numbers, as its bits; that of NaN is largest. */
int32_t keel_split_largest(const float *x, int64_t n);

/* Whether pieces lose nothing of two operands with these largest magnitudes, which grow or shrink
 * by at most `change` before they are split. Asked before results are added to others. */
bool keel_split_keeps(int32_t a, int32_t b, double change);

#endif
