/* A window that moves over an image or a volume, as in convolution and pooling. */
#ifndef KEEL_OPS_WINDOW_H
#define KEEL_OPS_WINDOW_H
#include "ops/infer.h"

enum { KEEL_PLACES = 3 }; /* most dims of places: all dims of a row except the channels */

typedef struct keel_window { /* dims are {height, width} or {depth, height, width} */
    int dims;
    int64_t in[KEEL_PLACES], out[KEEL_PLACES];
    int64_t size[KEEL_PLACES], stride[KEEL_PLACES], dilation[KEEL_PLACES];
    int64_t pad[KEEL_PLACES]; /* before the first place */
} keel_window;

/* Checks everything and computes w->out. `kernel` is the word for the window in messages: "kernel",
 * "pool". Input 0 has as many dims of places as the window, then channels; pad is {before, behind}
 * for each dim. */
keel_status keel_window_init(keel_window *w, const keel_node *n, const char *kernel,
                             const int64_t *size, const int64_t *strides, const int64_t *dilation,
                             const int64_t *pad);
/* The same for places that are not the node's input. */
keel_status keel_window_over(keel_window *w, const keel_node *n, const keel_shape *in,
                             const char *kernel, const int64_t *size, const int64_t *strides,
                             const int64_t *dilation, const int64_t *pad);

/* The same for a node whose infer has succeeded. */
static inline keel_window keel_window_between(const keel_shape *in, const keel_shape *out,
                                              const int64_t *size, const int64_t *strides,
                                              const int64_t *dilation, const int64_t *pad)
{
    keel_window w = { .dims = in->rank - 1 };
    for (int d = 0; d < w.dims; d++) {
        w.in[d] = in->dim[d];
        w.out[d] = out->dim[d];
        w.size[d] = size[d];
        w.stride[d] = strides[d];
        w.dilation[d] = dilation ? dilation[d] : 1;
        w.pad[d] = pad[2 * d];
    }
    return w;
}

static inline keel_window keel_window_of(const keel_node *n, const int64_t *size,
                                         const int64_t *strides, const int64_t *dilation,
                                         const int64_t *pad)
{
    return keel_window_between(&n->in[0].shape, &n->out[0].shape, size, strides, dilation, pad);
}

/* The place in dim d that tap k of the window at output o reads; negative: outside. */
static inline int64_t keel_window_in(const keel_window *w, int d, int64_t o, int64_t k)
{
    const int64_t i = o * w->stride[d] + k * w->dilation[d] - w->pad[d];
    return i < w->in[d] ? i : -1;
}

/* The output whose window reads input i with tap k, in dim d; negative: none. */
static inline int64_t keel_window_out(const keel_window *w, int d, int64_t i, int64_t k)
{
    const int64_t at = i + w->pad[d] - k * w->dilation[d];
    if (at < 0 || at % w->stride[d]) return -1;
    const int64_t o = at / w->stride[d];
    return o < w->out[d] ? o : -1;
}

/* The same window over three dims: dims of 1 are put before its own. */
static inline keel_window keel_window_volume(const keel_window *w)
{
    const int more = KEEL_PLACES - w->dims;
    keel_window v = { .dims = KEEL_PLACES };
    for (int d = 0; d < KEEL_PLACES; d++) {
        const int from = d - more;
        v.in[d] = from < 0 ? 1 : w->in[from];
        v.out[d] = from < 0 ? 1 : w->out[from];
        v.size[d] = from < 0 ? 1 : w->size[from];
        v.stride[d] = from < 0 ? 1 : w->stride[from];
        v.dilation[d] = from < 0 ? 1 : w->dilation[from];
        v.pad[d] = from < 0 ? 0 : w->pad[from];
    }
    return v;
}

static inline int64_t keel_window_product(const keel_window *w, const int64_t n[KEEL_PLACES])
{
    int64_t product = 1;
    for (int d = 0; d < w->dims; d++) product *= n[d];
    return product;
}

#endif
