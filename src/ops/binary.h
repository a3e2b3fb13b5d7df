/* Ops of two values, element by element: y = value(a, b). Each dim of the two rows is equal or 1,
 * and a dim of 1 is repeated (NumPy's broadcasting). One of the two may be a constant of the args.
 *
 * A file gives three functions in double: value(a, b) and its slopes with respect to a and b.
 * BINARY makes forward_f32 and so on from them, and BINARY_OP makes the op. backward reads the
 * inputs. */
#ifndef KEEL_OPS_BINARY_H
#define KEEL_OPS_BINARY_H
#include "base/clones.h"
#include "ops/goes.h"
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

/* Whether the rows of an operand have as many elements as those of the output. */
static inline bool keel_binary_whole(const keel_node *n, int which)
{
    const int k = keel_binary_input(n, which);
    return keel_row_count(&n->in[k]) == keel_row_count(&n->out[0]);
}

/* A row of the output as runs of neighbours. Along a run each operand either advances or repeats
 * one value. */
typedef struct keel_binary_runs {
    int64_t length;
    bool goes[2];
} keel_binary_runs;

static inline bool keel_binary_goes(const keel_node *n, int which, int d)
{
    return !keel_binary_constant(n, which) && n->in[keel_binary_input(n, which)].shape.dim[d] != 1;
}

static inline keel_binary_runs keel_binary_runs_of(const keel_node *n)
{
    const keel_shape *out = &n->out[0].shape;
    keel_binary_runs r = { .length = 1 };
    for (int d = out->rank - 1; d >= 0; d--) {
        const bool goes[2] = { keel_binary_goes(n, 0, d), keel_binary_goes(n, 1, d) };
        if (out->dim[d] == 1) continue;
        if (r.length > 1 && (goes[0] != r.goes[0] || goes[1] != r.goes[1])) break;
        r.goes[0] = goes[0];
        r.goes[1] = goes[1];
        r.length *= out->dim[d];
    }
    return r;
}

/* The element of operand `which` that belongs to element i of a row of the output. */
static inline int64_t keel_binary_index(const keel_node *n, int which, int64_t i)
{
    const keel_shape *in = &n->in[keel_binary_input(n, which)].shape;
    return keel_binary_whole(n, which) ? i : keel_spread_index(&n->out[0].shape, in, i);
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

/* The operand of a run: its elements `at` if it advances; else its one value. A constant has the
 * type of the other operand, as in Keras: a float32 of 0.1 equals 0.1. */
#define BINARY_OPERAND(type, suffix)                                                               \
    typedef struct operand_##suffix {                                                              \
        const type *at;                                                                            \
        double one;                                                                                \
    } operand_##suffix;                                                                            \
    static operand_##suffix find_##suffix(const keel_call *c, const keel_binary_runs *r,           \
                                          int which, int64_t row, int64_t i)                       \
    {                                                                                              \
        const keel_node *n = c->node;                                                              \
        if (keel_binary_constant(n, which))                                                        \
            return (operand_##suffix){ NULL,                                                       \
                                       (type)((const keel_binary_args *)n->args)->constant };      \
        const int k = keel_binary_input(n, which);                                                 \
        const type *x = (const type *)c->in[k] + row * keel_row_count(&n->in[k]);                  \
        x += keel_binary_index(n, which, i);                                                       \
        return (operand_##suffix){ r->goes[which] ? x : NULL, *x };                                \
    }

/* The forward of an op without a gradient whose elements are of(args, a, b), with args a pointer to
 * the op's. */
#define BINARY_FORWARD(of) BINARY_FORWARD_RUN(float, f32, of) BINARY_FORWARD_RUN(double, f64, of)

#define BINARY_FORWARD_RUN(type, suffix, of)                                                       \
    BINARY_OPERAND(type, suffix)                                                                   \
    static void forward_##suffix(const keel_call *c)                                               \
    {                                                                                              \
        const int64_t count = keel_row_count(&c->node->out[0]);                                    \
        const keel_binary_runs r = keel_binary_runs_of(c->node);                                   \
        type *y = c->out[0];                                                                       \
        for (int64_t row = 0; row < c->rows; row++)                                                \
            for (int64_t i = 0; i < count; i += r.length, y += r.length) {                         \
                const operand_##suffix a = find_##suffix(c, &r, 0, row, i);                        \
                const operand_##suffix b = find_##suffix(c, &r, 1, row, i);                        \
                for (int64_t k = 0; k < r.length; k++)                                             \
                    y[k] =                                                                         \
                        (type)of(c->node->args, a.at ? a.at[k] : a.one, b.at ? b.at[k] : b.one);   \
            }                                                                                      \
    }

/* to[k] = of(a, b) for each element of a run. */
#define BINARY_EACH(to, of, a, b, n)                                                               \
    do {                                                                                           \
        if ((a).at && (b).at)                                                                      \
            for (int64_t k = 0; k < (n); k++) to = of((a).at[k], (b).at[k]);                       \
        else if ((a).at)                                                                           \
            for (int64_t k = 0; k < (n); k++) to = of((a).at[k], (b).one);                         \
        else if ((b).at)                                                                           \
            for (int64_t k = 0; k < (n); k++) to = of((a).one, (b).at[k]);                         \
        else                                                                                       \
            for (int64_t k = 0; k < (n); k++) to = of((a).one, (b).one);                           \
    } while (0)

enum { KEEL_BINARY_BLOCK = 256 };

#define BINARY_RUN(type, suffix, value, slope_a, slope_b)                                          \
    BINARY_OPERAND(type, suffix)                                                                   \
    KEEL_CLONES static void values_##suffix(type *restrict y, operand_##suffix a,                  \
                                            operand_##suffix b, int64_t n)                         \
    {                                                                                              \
        BINARY_EACH(y[k], (type)value, a, b, n);                                                   \
    }                                                                                              \
    KEEL_CLONES static void slopes_##suffix(double *restrict g, operand_##suffix a,                \
                                            operand_##suffix b, int which, int64_t n)              \
    {                                                                                              \
        if (which)                                                                                 \
            BINARY_EACH(g[k], slope_b, a, b, n);                                                   \
        else                                                                                       \
            BINARY_EACH(g[k], slope_a, a, b, n);                                                   \
    }                                                                                              \
    static void forward_##suffix(const keel_call *c)                                               \
    {                                                                                              \
        const int64_t count = keel_row_count(&c->node->out[0]);                                    \
        const keel_binary_runs r = keel_binary_runs_of(c->node);                                   \
        type *y = c->out[0];                                                                       \
        for (int64_t row = 0; row < c->rows; row++)                                                \
            for (int64_t i = 0; i < count; i += r.length, y += r.length)                           \
                values_##suffix(y, find_##suffix(c, &r, 0, row, i),                                \
                                find_##suffix(c, &r, 1, row, i), r.length);                        \
    }                                                                                              \
    /* Goes from element i of a row on; writes dx, or sums of it if elements share one. */         \
    static void share_##suffix(const keel_call *c, const keel_binary_runs *r, int which,           \
                               int64_t row, int64_t i, int64_t n, type *dx, double *sum)           \
    {                                                                                              \
        const int k_in = keel_binary_input(c->node, which);                                        \
        const type *dy =                                                                           \
            (const type *)c->out_grad[0] + row * keel_row_count(&c->node->out[0]) + i;             \
        const int64_t at = keel_binary_index(c->node, which, i);                                   \
        double g[KEEL_BINARY_BLOCK];                                                               \
        slopes_##suffix(g, find_##suffix(c, r, 0, row, i), find_##suffix(c, r, 1, row, i), which,  \
                        n);                                                                        \
        for (int64_t k = 0; k < n; k++) g[k] *= dy[k];                                             \
        if (!sum)                                                                                  \
            for (int64_t k = 0; k < n; k++)                                                        \
                dx[at + k] = (type)(c->in_adds[k_in] ? dx[at + k] + g[k] : g[k]);                  \
        else                                                                                       \
            for (int64_t k = 0; k < n; k++) sum[r->goes[which] ? at + k : at] += g[k];             \
    }                                                                                              \
    static void backward_##suffix(const keel_call *c)                                              \
    {                                                                                              \
        const keel_node *n = c->node;                                                              \
        const int64_t count = keel_row_count(&n->out[0]);                                          \
        const keel_binary_runs r = keel_binary_runs_of(n);                                         \
        for (int which = 0; which < 2; which++) {                                                  \
            const int k = keel_binary_input(n, which);                                             \
            type *dx = keel_binary_constant(n, which) ? NULL : c->in_grad[k];                      \
            const int64_t own = keel_row_count(&n->in[k]);                                         \
            double *sum = keel_binary_whole(n, which) ? NULL : c->scratch;                         \
            for (int64_t row = 0; dx && row < c->rows; row++, dx += own) {                         \
                for (int64_t i = 0; sum && i < own; i++) sum[i] = 0;                               \
                for (int64_t i = 0, left = r.length, m; i < count; i += m) {                       \
                    m = left < KEEL_BINARY_BLOCK ? left : KEEL_BINARY_BLOCK;                       \
                    share_##suffix(c, &r, which, row, i, m, dx, sum);                              \
                    left = left > m ? left - m : r.length;                                         \
                }                                                                                  \
                for (int64_t i = 0; sum && i < own; i++)                                           \
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

/* The op made of BINARY's functions, `...` being its cases; its members, for an op that has more.
 */
#define BINARY_OP(stem, ...)                                                                       \
    {                                                                                              \
        BINARY_MEMBERS(stem, __VA_ARGS__)                                                          \
    }
#define BINARY_MEMBERS(stem, ...)                                                                  \
    .name = stem, .args_size = sizeof(keel_binary_args), .infer = keel_binary_infer,               \
    .forward = REALS(forward), .backward = REALS(backward), .backward_reads = KEEL_READS_IN,       \
    .goes = keel_goes_spread, .cases = __VA_ARGS__, .args_for_case = keel_binary_for_case

#endif
