/* The order of the numbers along an axis, from the smallest to the largest: equal ones keep their
 * order, and NaN comes last. What the ops sorted and argsort share. */
#ifndef KEEL_OPS_ORDER_H
#define KEEL_OPS_ORDER_H
#include "ops/axis.h"
#include <math.h>
#include <string.h>

/* infer of such an op: its calls need two lists of places. */
static inline keel_status keel_order_infer(keel_node *n)
{
    int axis;
    KEEL_TRY(keel_axis_infer(n));
    KEEL_TRY(keel_infer_axis(n, ((const keel_axis_args *)n->args)->axis, &axis));
    n->scratch = 2 * (int64_t)sizeof(int64_t) * n->in[0].shape.dim[axis];
    return KEEL_OK;
}

#define KEEL_ORDER(type, suffix)                                                                   \
    /* Sorts the places of list[0..n) by their numbers; `other` has room for n. */                 \
    static inline void keel_order_##suffix(const type *x, int64_t n, int64_t stride,               \
                                           int64_t *list, int64_t *other)                          \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) list[i] = i;                                               \
        for (int64_t run = 1; run < n; run *= 2) {                                                 \
            for (int64_t at = 0; at < n; at += 2 * run) {                                          \
                const int64_t middle = at + run < n ? at + run : n;                                \
                const int64_t end = at + 2 * run < n ? at + 2 * run : n;                           \
                for (int64_t i = at, j = middle, k = at; k < end; k++) {                           \
                    const type a = i < middle ? x[list[i] * stride] : 0;                           \
                    const type b = j < end ? x[list[j] * stride] : 0;                              \
                    const bool second = i == middle || (j < end && (b < a || (a != a && b == b))); \
                    other[k] = second ? list[j++] : list[i++];                                     \
                }                                                                                  \
            }                                                                                      \
            memcpy(list, other, (size_t)n * sizeof *list);                                         \
        }                                                                                          \
    }
KEEL_ORDER(float, f32)
KEEL_ORDER(double, f64)

#endif
