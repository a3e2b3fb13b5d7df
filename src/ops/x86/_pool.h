/* What the two poolings over windows share. */
#ifndef KEEL_OPS_X86_POOL_H
#define KEEL_OPS_X86_POOL_H
#include "ops/x86/_vector.h"
#include "ops/args.h"
#include "ops/window.h"

static inline keel_window window_of(const keel_node *n)
{
    const keel_pool2d_args *a = n->args;
    return keel_window_of(n, a->pool, a->strides, NULL, a->pad);
}

/* Taps [first, end) of a window are inside the image in one dim; tap 0 is at pixel `at`. */
typedef struct span {
    int64_t first, end, at;
} span;

static inline span span_of(const keel_window *v, int d, int64_t o)
{
    const int64_t at = o * v->stride[d] - v->pad[d], rest = v->in[d] - at;
    return (
        span){ .first = at < 0 ? -at : 0, .end = rest < v->size[d] ? rest : v->size[d], .at = at };
}

/* No pixel is in two windows, and backward does not add: every dx is written once. */
static inline bool apart(const keel_node *n, bool adds)
{
    const keel_window v = window_of(n);
    for (int d = 0; d < 2; d++)
        if (v.pad[d] || v.stride[d] != v.size[d] || v.out[d] * v.size[d] > v.in[d]) return false;
    return !adds;
}

/* Zeros for the pixels of an image beyond the last windows; size: bytes of a pixel. */
static inline void zero_rest(void *dx, const keel_window *v, int64_t size)
{
    const int64_t height = v->out[0] * v->size[0], width = v->out[1] * v->size[1];
    if (height == v->in[0] && width == v->in[1]) return;
    for (int64_t i = 0; i < v->in[0]; i++) {
        const int64_t first = i < height ? width : 0;
        memset((char *)dx + (i * v->in[1] + first) * size, 0, (size_t)((v->in[1] - first) * size));
    }
}

/* Where the gradients of one image are summed: in dx if that is float32, else in scratch, from
 * which SUMS_CLOSE() rounds them once. dx points to float or keel_bf16. */
#define SUMS_OPEN(dx, n, adds, scratch)                                                            \
    _Generic(*(dx), float                                                                          \
             : sums_in_place, keel_bf16                                                            \
             : sums_in_scratch)((dx), (n), (adds), (scratch))
#define SUMS_CLOSE(dx, n, sums)                                                                    \
    do {                                                                                           \
        if ((const void *)(sums) == (const void *)(dx)) break;                                     \
        VECTOR_EACH(e, n, m, { vx_store_some(m, (dx) + e, vf_load_some(m, (sums) + e)); });        \
    } while (0)

static inline float *sums_in_place(float *dx, int64_t n, bool adds, void *scratch)
{
    (void)scratch;
    if (!adds) memset(dx, 0, (size_t)n * sizeof *dx);
    return dx;
}

static inline float *sums_in_scratch(const keel_bf16 *dx, int64_t n, bool adds, void *scratch)
{
    float *sums = scratch;
    if (adds)
        VECTOR_EACH(e, n, m, vf_store_some(m, sums + e, vn_load_some(m, dx + e)));
    else
        memset(sums, 0, (size_t)n * sizeof *sums);
    return sums;
}

/* Scratch for such sums. */
static inline int64_t sums_bytes(const keel_prepare *p)
{
    const bool narrow = p->node->held == KEEL_BFLOAT16 && p->pass == KEEL_BACKWARD;
    return narrow && !apart(p->node, p->in_adds)
               ? keel_row_count(&p->node->in[0]) * (int64_t)sizeof(float)
               : 0;
}

#endif
