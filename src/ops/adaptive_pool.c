/* The mean or the largest of windows along one axis, as many as are asked for: of n places, window
 * i of `size` has those from floor(i n / size) up to ceil((i + 1) n / size), so neighbours may
 * overlap. Of places that are equally large the first gets the gradient. */
#ifndef REAL
#include "ops/adaptive_pool.h"
#include "ops/cases.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    const keel_adaptive_pool_args *a = n->args;
    int axis;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_infer_axis(n, a->axis, &axis));
    if (a->size < 1)
        return keel_fail(KEEL_ESHAPE, "adaptive_pool: %lld windows", (long long)a->size);
    keel_shape out = n->in[0].shape;
    out.dim[axis] = a->size;
    return keel_infer_out(n, &out);
}

typedef struct window {
    int64_t begin, end;
} window;

static window window_of(int64_t i, int64_t n, int64_t size)
{
    return (window){ i * n / size, ((i + 1) * n + size - 1) / size };
}

static keel_axis_split split_of(const keel_call *c)
{
    const keel_adaptive_pool_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    keel_axis_split s = keel_split_at(in, (int)(a->axis < 0 ? a->axis + in->rank : a->axis));
    s.outer *= c->rows;
    return s;
}

#define REAL_FILE "ops/adaptive_pool.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_adaptive_pool_args *a = args;
    double axis = 0, size = 1;
    keel_case_number(text, "axis", &axis);
    keel_case_number(text, "size", &size);
    *a = (keel_adaptive_pool_args){ (int64_t)axis, (int64_t)size, keel_case_has(text, "largest") };
}

const keel_op keel_op_adaptive_pool = {
    .name = "adaptive_pool",
    .args_size = sizeof(keel_adaptive_pool_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "7,3", NULL, "axis 0 size 3" },
                                  { "7,3", NULL, "axis 0 size 3 largest" },
                                  { "2,5,2", NULL, "axis 1 size 5" },
                                  { "2,3,2", NULL, "axis 1 size 4 largest" },
                                  { "6", NULL, "axis 0 size 1" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_adaptive_pool_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t i = 0; i < a->size; i++) {
            const window w = window_of(i, s.n, a->size);
            const REAL *x = (const REAL *)c->in[0] + o * s.n * s.inner;
            REAL *y = (REAL *)c->out[0] + (o * a->size + i) * s.inner;
            for (int64_t k = 0; k < s.inner; k++) {
                double sum = 0;
                REAL most = x[w.begin * s.inner + k];
                for (int64_t t = w.begin; t < w.end; t++) {
                    const REAL v = x[t * s.inner + k];
                    sum += v;
                    if (!(v <= most)) most = v;
                }
                y[k] = a->largest ? most : (REAL)(sum / (double)(w.end - w.begin));
            }
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_adaptive_pool_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    REAL *dx = c->in_grad[0];
    if (!dx) return;
    for (int64_t i = 0; !c->in_adds[0] && i < s.outer * s.n * s.inner; i++) dx[i] = 0;
    for (int64_t o = 0; o < s.outer; o++, dx += s.n * s.inner)
        for (int64_t i = 0; i < a->size; i++) {
            const window w = window_of(i, s.n, a->size);
            const REAL *x = (const REAL *)c->in[0] + o * s.n * s.inner;
            const REAL *dy = (const REAL *)c->out_grad[0] + (o * a->size + i) * s.inner;
            for (int64_t k = 0; k < s.inner; k++) {
                int64_t most = w.begin;
                for (int64_t t = w.begin; t < w.end; t++) {
                    if (!a->largest) dx[t * s.inner + k] += dy[k] / (REAL)(w.end - w.begin);
                    if (!(x[t * s.inner + k] <= x[most * s.inner + k])) most = t;
                }
                if (a->largest) dx[most * s.inner + k] += dy[k];
            }
        }
}
#endif
