/* A bench to run an op's reference on, in float32 or float64, with the rows cut into any pieces:
 * what the conformance test and the comparison with Keras share. (Every fast kernel
 * is compared with its reference on that of kernel_bench.h.) */
#ifndef TESTS_OPS_HARNESS_H
#define TESTS_OPS_HARNESS_H
#include "base/memory.h"
#include "ops/cases.h"
#include "ops/all.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum {
    LAB_IN_MAX = 5,
    LAB_OUT_MAX = 4,
    LAB_SAVED_MAX = 4,
    LAB_WEIGHTS_MAX = 8,
    LAB_PIECES_MAX = 8
};

typedef struct lab {
    keel_node node;
    keel_spec in_spec[LAB_IN_MAX], weight_spec[LAB_WEIGHTS_MAX];
    _Alignas(16) char args[4096];
    keel_step_facts step;
    int64_t rows, row; /* row: of the step, of the lab's first */
    bool f64, in_adds, weight_adds, frozen[LAB_WEIGHTS_MAX];
    void *in[LAB_IN_MAX], *weight[LAB_WEIGHTS_MAX], *out, *saved[LAB_SAVED_MAX];
    void *more_out[LAB_OUT_MAX], *more_grad[LAB_OUT_MAX]; /* of an op's second output and so on */
    void *out_grad, *in_grad[LAB_IN_MAX], *weight_grad[LAB_WEIGHTS_MAX];
    double *merged, *merged_backward;
    keel_columns columns; /* of its calls */
} lab;

static inline double lab_get(const lab *l, const void *p, int64_t i)
{
    return l->f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static inline void lab_set(const lab *l, void *p, int64_t i, double x)
{
    if (l->f64)
        ((double *)p)[i] = x;
    else
        ((float *)p)[i] = (float)x;
}

static inline void lab_fill(const lab *l, void *p, int64_t count, double x)
{
    for (int64_t i = 0; p && i < count; i++) lab_set(l, p, i, x);
}

static inline size_t lab_size(const lab *l) /* bytes of a real */
{
    return l->f64 ? sizeof(double) : sizeof(float);
}

/* Numbers in [-2, 2], the same in float and double, other ones for each salt. */
static inline void lab_random(const lab *l, void *p, int64_t count, uint32_t salt)
{
    uint32_t s = salt * 2654435761u + 12345u;
    for (int64_t i = 0; i < count; i++) {
        s = s * 1664525u + 1013904223u;
        lab_set(l, p, i, (double)(s >> 9) / (double)(1 << 21) - 2);
    }
}

static inline int64_t lab_in_count(const lab *l, int i)
{
    return l->rows * keel_row_count(&l->in_spec[i]);
}

static inline int64_t lab_out_count(const lab *l)
{
    return l->rows * keel_row_count(&l->node.out[0]);
}

static inline int64_t lab_more_count(const lab *l, int i)
{
    return l->rows * keel_row_count(&l->node.out[i]);
}

/* The matrices [.., n, n] of input 0 times their transpose, and n more on the diagonal. */
static inline void lab_definite(const lab *l)
{
    const keel_shape *s = &l->in_spec[0].shape;
    const int64_t n = s->dim[s->rank - 1];
    double x[16];
    assert_true(n <= 4);
    for (int64_t m = 0; m < lab_in_count(l, 0); m += n * n) {
        for (int64_t i = 0; i < n * n; i++) x[i] = lab_get(l, l->in[0], m + i);
        for (int64_t i = 0; i < n * n; i++) {
            double sum = i / n == i % n ? (double)n : 0;
            for (int64_t k = 0; k < n; k++) sum += x[i / n * n + k] * x[i % n * n + k];
            lab_set(l, l->in[0], m + i, sum);
        }
    }
}

/* Build the node and memory for it; the status is that of infer. Weights' last one is made positive
 * where the op keeps a moving variance there. Close it in any case. */
static inline keel_status lab_open(lab *l, const keel_op *op, const keel_case *c, bool f64,
                                   bool training, int64_t rows)
{
    const keel_dtype real = f64 ? KEEL_FLOAT64 : KEEL_FLOAT32;
    *l = (lab){ .rows = rows, .row = 10, .f64 = f64 };
    l->step = (keel_step_facts){ .seed = 7, .epoch = 3, .first_row = 1000, .rows = rows };
    l->node = (keel_node){ .op = op,
                           .args = l->args,
                           .layer = "a layer",
                           .training = training,
                           .backward = training,
                           .real = real,
                           .held = real,
                           .stream = 5,
                           .in = l->in_spec,
                           .weight = l->weight_spec };
    assert_true(op->args_size <= sizeof l->args);
    if (op->args_for_case) op->args_for_case(l->args, c->args);
    l->node.n_in = keel_case_shapes(c->in, real, l->in_spec, LAB_IN_MAX);
    l->node.n_weight = keel_case_shapes(c->weights, real, l->weight_spec, LAB_WEIGHTS_MAX);
    KEEL_TRY(keel_node_infer(&l->node));
    assert_true(l->node.n_out <= LAB_OUT_MAX && l->node.n_saved <= LAB_SAVED_MAX);
    const keel_node *n = &l->node;
    for (int i = 0; i < n->n_in; i++) {
        l->in[i] = keel_aligned_calloc((size_t)lab_in_count(l, i), lab_size(l));
        l->in_grad[i] = keel_aligned_calloc((size_t)lab_in_count(l, i), lab_size(l));
        lab_random(l, l->in[i], lab_in_count(l, i), 1 + (uint32_t)i);
        for (int64_t k = 0; keel_case_has(c->args, "positive") && k < lab_in_count(l, i); k++)
            lab_set(l, l->in[i], k, fabs(lab_get(l, l->in[i], k)) + 0.5);
        for (int64_t k = 0; keel_case_has(c->args, "inside") && k < lab_in_count(l, i); k++)
            lab_set(l, l->in[i], k, 0.45 * lab_get(l, l->in[i], k)); /* from -1 to 1 */
        if (i == 0 && keel_case_has(c->args, "definite")) lab_definite(l);
        lab_fill(l, l->in_grad[i], lab_in_count(l, i), NAN);
    }
    for (int i = 0; i < n->n_weight; i++) {
        const int64_t count = keel_row_count(&n->weight[i]);
        l->weight[i] = keel_aligned_calloc((size_t)count, lab_size(l));
        l->weight_grad[i] = keel_aligned_calloc((size_t)count, lab_size(l));
        lab_random(l, l->weight[i], count, 11 + (uint32_t)i);
        lab_fill(l, l->weight_grad[i], count, NAN);
        if (!op->commit) continue;
        const bool more = n->n_weight > 4; /* with renorm: a variance, then three others */
        const bool variance = i == n->n_weight - (more ? 4 : 1);
        l->frozen[i] = i >= n->n_weight - (more ? 5 : 2); /* state */
        for (int64_t k = 0; variance && k < count; k++)
            lab_set(l, l->weight[i], k, fabs(lab_get(l, l->weight[i], k)) + 0.5);
    }
    for (int i = 0; i < n->n_saved; i++)
        l->saved[i] = keel_aligned_calloc((size_t)(rows * keel_row_count(&n->saved[i])),
                                          keel_dtype_size(n->saved[i].dtype));
    l->out = keel_aligned_calloc((size_t)lab_out_count(l), lab_size(l));
    l->out_grad = keel_aligned_calloc((size_t)lab_out_count(l), lab_size(l));
    lab_random(l, l->out_grad, lab_out_count(l), 21);
    lab_fill(l, l->out, lab_out_count(l), NAN);
    for (int i = 1; i < n->n_out; i++) {
        l->more_out[i] = keel_aligned_calloc((size_t)lab_more_count(l, i), lab_size(l));
        l->more_grad[i] = keel_aligned_calloc((size_t)lab_more_count(l, i), lab_size(l));
        lab_random(l, l->more_grad[i], lab_more_count(l, i), 31 + (uint32_t)i);
        lab_fill(l, l->more_out[i], lab_more_count(l, i), NAN);
    }
    l->merged = keel_calloc((size_t)n->merged + 1, sizeof(double));
    l->merged_backward = keel_calloc((size_t)n->merged_backward + 1, sizeof(double));
    return KEEL_OK;
}

static inline void lab_close(lab *l)
{
    for (int i = 0; i < LAB_IN_MAX; i++) keel_free(l->in[i]), keel_free(l->in_grad[i]);
    for (int i = 0; i < LAB_WEIGHTS_MAX; i++) keel_free(l->weight[i]), keel_free(l->weight_grad[i]);
    for (int i = 0; i < LAB_SAVED_MAX; i++) keel_free(l->saved[i]);
    for (int i = 1; i < LAB_OUT_MAX; i++) keel_free(l->more_out[i]), keel_free(l->more_grad[i]);
    keel_free(l->out);
    keel_free(l->out_grad);
    keel_free(l->merged);
    keel_free(l->merged_backward);
    keel_node_clear(&l->node);
    *l = (lab){ 0 };
}

/* Call one function for `rows` rows from `first` on; scratch begins as NaN. */
static inline void lab_call(lab *l, keel_run run, int64_t first, int64_t rows, double *partial,
                            const double *merged)
{
    const keel_node *n = &l->node;
    const void *in[LAB_IN_MAX];
    void *in_grad[LAB_IN_MAX], *saved[LAB_SAVED_MAX], *weight_grad[LAB_WEIGHTS_MAX];
    const void *weight[LAB_WEIGHTS_MAX];
    bool in_adds[LAB_IN_MAX];
    const size_t skip_out = (size_t)(first * keel_row_count(&n->out[0])) * lab_size(l);
    void *out[LAB_OUT_MAX] = { (char *)l->out + skip_out };
    const void *out_grad[LAB_OUT_MAX] = { (const char *)l->out_grad + skip_out };
    void *scratch = keel_aligned_calloc((size_t)n->scratch + 1, 1);
    memset(scratch, 0xff, (size_t)n->scratch);
    keel_call c = { .node = n,
                    .step = &l->step,
                    .rows = rows,
                    .row = l->row + first,
                    .in = in,
                    .out = out,
                    .out_grad = out_grad,
                    .saved = saved,
                    .weight = weight,
                    .weight_grad = weight_grad,
                    .in_grad = in_grad,
                    .in_adds = in_adds,
                    .weight_adds = l->weight_adds,
                    .partial = partial,
                    .merged = merged,
                    .merged_forward = l->merged,
                    .scratch = scratch,
                    .columns = l->columns };
    for (int i = 0; i < n->n_in; i++) {
        const size_t skip = (size_t)(first * keel_row_count(&n->in[i])) * lab_size(l);
        in[i] = (const char *)l->in[i] + skip;
        in_grad[i] = l->in_grad[i] ? (char *)l->in_grad[i] + skip : NULL;
        in_adds[i] = l->in_adds;
    }
    for (int i = 1; i < n->n_out; i++) {
        const size_t skip = (size_t)(first * keel_row_count(&n->out[i])) * lab_size(l);
        out[i] = (char *)l->more_out[i] + skip;
        out_grad[i] = (const char *)l->more_grad[i] + skip;
    }
    for (int i = 0; i < n->n_saved; i++)
        saved[i] = (char *)l->saved[i] + (size_t)(first * keel_row_count(&n->saved[i])) *
                                             keel_dtype_size(n->saved[i].dtype);
    for (int i = 0; i < n->n_weight; i++) {
        weight[i] = l->weight[i];
        weight_grad[i] = l->frozen[i] ? NULL : l->weight_grad[i];
    }
    run(&c);
    assert_int_equal(keel_call_status_take(), KEEL_OK);
    keel_free(scratch);
}

/* All rows' records, written piece by piece, and their merging into `merged`. */
static inline void lab_meet(lab *l, keel_run run, bool backward, const int64_t *pieces, int count,
                            double *merged)
{
    const int64_t length = backward ? l->node.partial_backward : l->node.partial;
    int64_t rows = 0, first = 0;
    for (int i = 0; i < count; i++) rows += pieces[i];
    double *records = keel_calloc((size_t)(rows * length) + 1, sizeof(double));
    for (int64_t k = 0; k < rows * length; k++) records[k] = NAN; /* a row overwrites its record */
    for (int i = 0; i < count; first += pieces[i++])
        lab_call(l, run, first, pieces[i], records + first * length, l->merged);
    keel_node_merge(&l->node, backward, records, rows, merged);
    keel_free(records);
}

static inline void lab_forward(lab *l, const int64_t *pieces, int count)
{
    const keel_op *op = l->node.op;
    int64_t first = 0;
    if (l->node.partial > 0) lab_meet(l, op->partial[l->f64], false, pieces, count, l->merged);
    for (int i = 0; i < count; first += pieces[i++])
        lab_call(l, op->forward[l->f64], first, pieces[i], NULL, l->merged);
}

/* Input gradients piece by piece; weight gradients too, each piece adding to the first's. */
static inline void lab_backward(lab *l, const int64_t *pieces, int count)
{
    const keel_op *op = l->node.op;
    const bool adds = l->weight_adds, meets = l->node.partial_backward > 0;
    int64_t first = 0;
    if (meets) lab_meet(l, op->partial_backward[l->f64], true, pieces, count, l->merged_backward);
    for (int i = 0; i < count; first += pieces[i++]) {
        lab_call(l, op->backward[l->f64], first, pieces[i], NULL, l->merged_backward);
        if (!op->weights[l->f64] || (meets && op->weights_from_merged && i > 0)) continue;
        lab_call(l, op->weights[l->f64], first, pieces[i], NULL, l->merged_backward);
        l->weight_adds = true;
    }
    l->weight_adds = adds;
}

/* max |a - b| over max |b|; a NaN counts as far. */
static inline double lab_distance(const lab *l, const void *a, const lab *m, const void *b,
                                  int64_t count)
{
    double most = 1e-30, off = 0;
    for (int64_t i = 0; i < count; i++) {
        const double x = lab_get(l, a, i), y = lab_get(m, b, i);
        most = fmax(most, fabs(y));
        if (!(fabs(x - y) <= off)) off = isnan(x) != isnan(y) || isnan(x) ? INFINITY : fabs(x - y);
    }
    return off / most;
}

#endif
