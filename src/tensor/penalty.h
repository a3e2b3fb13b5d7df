/* What a regularizer adds to the loss for a weight. */
#ifndef KEEL_TENSOR_PENALTY_H
#define KEEL_TENSOR_PENALTY_H
#include <stdbool.h>

/* l1 sum |w| + l2 sum w^2 + orthogonal * (the mean of |cosine| over all pairs of vectors). The
 * vectors are the rows of a matrix, or its columns. */
typedef struct keel_penalty {
    double l1, l2, orthogonal;
    bool columns;
} keel_penalty;

static inline bool keel_penalizes(const keel_penalty *p)
{
    return p->l1 != 0 || p->l2 != 0 || p->orthogonal != 0;
}

#endif
