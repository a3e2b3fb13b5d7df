/* See tuned.h. */
#include "graph/tuned.h"
#include "device/cpu/cpu.h"
#include "ops/all.h"
#include "ops/args.h"
#include <string.h>

bool keel_tuned_class(const keel_node *n, keel_tuned *out)
{
    if (n->n_weight < 1 || n->real != KEEL_FLOAT32) return false;
    const keel_shape *w = &n->weight[0].shape;
    *out = (keel_tuned){ .op = n->op, .window = 1, .stride = 1 };
    if (n->op == &keel_op_conv2d) {
        const keel_conv2d_args *a = n->args;
        if (w->dim[0] != w->dim[1] || a->strides[0] != a->strides[1] || a->groups != 1 ||
            a->dilation[0] != 1 || a->dilation[1] != 1)
            return false;
        out->window = w->dim[0];
        out->stride = a->strides[0];
    } else if (n->op != &keel_op_dense) {
        return false;
    }
    out->c = w->dim[w->rank - 2];
    out->k = w->dim[w->rank - 1];
    out->places = keel_row_count(&n->out[0]) / out->k;
    return true;
}

/* The ratio of two sizes, at least 1; 0: too far apart. */
static double factor(int64_t a, int64_t b)
{
    const double ratio = a > b ? (double)a / (double)b : (double)b / (double)a;
    return ratio <= 2 ? ratio : 0;
}

const char *keel_tuned_kernel(const keel_node *n, keel_pass pass, int column)
{
    const char *const level = keel_cpu_isa_name(keel_cpu_level());
    const keel_tuned *best = NULL;
    keel_tuned class;
    double least = 0;
    if (!keel_tuned_class(n, &class)) return NULL;
    for (const keel_tuned *t = keel_tuned_rows; t->level; t++) {
        if (strcmp(t->level, level) || t->op != class.op || t->pass != pass ||
            t->window != class.window || t->stride != class.stride)
            continue;
        const double far =
            factor(t->c, class.c) * factor(t->k, class.k) * factor(t->places, class.places);
        if (far == 0 || (best && far >= least)) continue;
        best = t;
        least = far;
    }
    if (!best) return NULL;
    const char *name = best->kernel[column];
    if (!*name && column != KEEL_TUNED_BFLOAT16) name = best->kernel[KEEL_FLOAT32_FMA];
    return *name ? name : NULL;
}
