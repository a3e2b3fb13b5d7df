/* Ops of two values, element by element: y = value(a, b). Each dim of a row is equal or 1, and what
 * is 1 is used again and again (NumPy's broadcasting); or one of the two is a constant of the args.
 *
 * A file gives three functions in double, value(a, b) and its slopes by a and by b, and BINARY
 * makes forward_f32 and so on of them, and BINARY_OP the op. backward reads the inputs. */
#ifndef KEEL_OPS_BINARY_H
#define KEEL_OPS_BINARY_H
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/real.h"
#include <math.h>

static inline bool keel_binary_constant(const keel_node *n, int which)
{
    const keel_binary_args *a = n->args;
    return n->n_in == 1 && which == (a->left ? 0 : 1);
}

/* The index of operand `which` among the node's inputs. */
static inline int keel_binary_input(const keel_node *n, int which)
{
    return n->n_in == 1 ? 0 : which;
}

static inline keel_status keel_binary_infer(keel_node *n)
{
    char first[96], second[96];
    if (n->n_in == 1) return keel_infer_like(n);
    KEEL_TRY(keel_infer_check(n, 2, 0, 0));
    const keel_shape *a = &n->in[0].shape, *b = &n->in[1].shape;
    keel_shape out = *a;
    if (keel_spread_over(&out, b)) {
        KEEL_TRY(keel_infer_out(n, &out));
        if (n->backward) n->scratch = 8 * (keel_row_count(&n->in[0]) + keel_row_count(&n->in[1]));
        return KEEL_OK;
    }
    keel_shape_text(first, a);
    keel_shape_text(second, b);
    return keel_fail(KEEL_ESHAPE, "%s: rows of %s and %s do not go together", n->op->name, first,
                     second);
}

/* Which element of operand `which` belongs to element i of a row of the output. */
static inline int64_t keel_binary_index(const keel_node *n, int which, int64_t i)
{
    return keel_spread_index(&n->out[0].shape, &n->in[keel_binary_input(n, which)].shape, i);
}

/* Are the rows of an operand as long as those of the output? */
static inline bool keel_binary_whole(const keel_node *n, int which)
{
    const int k = keel_binary_input(n, which);
    return keel_row_count(&n->in[k]) == keel_row_count(&n->out[0]);
}

static inline void keel_binary_for_case(void *args, const char *text)
{
    keel_binary_args *a = args;
    a->left = keel_case_number(text, "left", &a->constant);
    if (!a->left) keel_case_number(text, "right", &a->constant);
}

#define BINARY(value, slope_a, slope_b)                                                            \
    BINARY_RUN(float, f32, value, slope_a, slope_b)                                                \
    BINARY_RUN(double, f64, value, slope_a, slope_b)

#define BINARY_OPERAND(type, suffix)                                                               \
    static double operand_##suffix(const keel_call *c, int which, int64_t row, int64_t i)          \
    {                                                                                              \
        const keel_node *n = c->node;                                                              \
        if (keel_binary_constant(n, which)) return ((const keel_binary_args *)n->args)->constant;  \
        const int k = keel_binary_input(n, which);                                                 \
        const type *x = (const type *)c->in[k] + row * keel_row_count(&n->in[k]);                  \
        return x[keel_binary_whole(n, which) ? i : keel_binary_index(n, which, i)];                \
    }

#define BINARY_RUN(type, suffix, value, slope_a, slope_b)                                          \
    BINARY_OPERAND(type, suffix)                                                                   \
    static void forward_##suffix(const keel_call *c)                                               \
    {                                                                                              \
        const int64_t count = keel_row_count(&c->node->out[0]);                                    \
        type *y = c->out[0];                                                                       \
        for (int64_t row = 0; row < c->rows; row++)                                                \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const double a = operand_##suffix(c, 0, row, i);                                   \
                const double b = operand_##suffix(c, 1, row, i);                                   \
                y[row * count + i] = (type)value(a, b);                                            \
            }                                                                                      \
    }                                                                                              \
    static void backward_##suffix(const keel_call *c)                                              \
    {                                                                                              \
        const keel_node *n = c->node;                                                              \
        const int64_t count = keel_row_count(&n->out[0]);                                          \
        const type *dy = c->out_grad[0];                                                           \
        for (int which = 0; which < 2; which++) {                                                  \
            const int k = keel_binary_input(n, which);                                             \
            type *dx = keel_binary_constant(n, which) ? NULL : c->in_grad[k];                      \
            const int64_t own = keel_row_count(&n->in[k]);                                         \
            const bool whole = keel_binary_whole(n, which);                                        \
            double *sum = c->scratch;                                                              \
            for (int64_t row = 0; dx && row < c->rows; row++, dx += own) {                         \
                for (int64_t i = 0; !whole && i < own; i++) sum[i] = 0;                            \
                for (int64_t i = 0; i < count; i++) {                                              \
                    const double a = operand_##suffix(c, 0, row, i);                               \
                    const double b = operand_##suffix(c, 1, row, i);                               \
                    const double g =                                                               \
                        dy[row * count + i] * (which ? slope_b(a, b) : slope_a(a, b));             \
                    if (whole)                                                                     \
                        dx[i] = (type)(c->in_adds[k] ? dx[i] + g : g);                             \
                    else                                                                           \
                        sum[keel_binary_index(n, which, i)] += g;                                  \
                }                                                                                  \
                for (int64_t i = 0; !whole && i < own; i++)                                        \
                    dx[i] = (type)(c->in_adds[k] ? dx[i] + sum[i] : sum[i]);                       \
            }                                                                                      \
        }                                                                                          \
    }

#define BINARY_CASES                                                                               \
    (const keel_case[])                                                                            \
    {                                                                                              \
        { "4,5|4,5", NULL, NULL }, { "3,1,2|3,4,2", NULL, NULL }, { "1,5|4,1", NULL, NULL },       \
            { "6", NULL, "right 1.5" }, { "2,3", NULL, "left 1.5" },                               \
        {                                                                                          \
            NULL, NULL, NULL                                                                       \
        }                                                                                          \
    }

/* The op that BINARY's functions make. */
#define BINARY_OP(stem, list)                                                                      \
    {                                                                                              \
        .name = stem, .args_size = sizeof(keel_binary_args), .infer = keel_binary_infer,           \
        .forward = REALS(forward), .backward = REALS(backward), .backward_reads = KEEL_READS_IN,   \
        .cases = list, .args_for_case = keel_binary_for_case,                                      \
    }

#endif
