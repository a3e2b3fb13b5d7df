/* A window that slides over an image: what convolution and pooling share. */
#ifndef KEEL_OPS_WINDOW_H
#define KEEL_OPS_WINDOW_H
#include "ops/infer.h"

typedef struct keel_window { /* dims are {height, width} */
    int64_t in[2], out[2];
    int64_t size[2], stride[2], dilation[2], pad[2]; /* pad: at the top and at the left */
} keel_window;

/* Check everything and work out w->out; `kernel` is the word for the window: "kernel", "pool". */
keel_status keel_window_init(keel_window *w, const keel_node *n, const char *kernel,
                             const int64_t size[2], const int64_t strides[2],
                             const int64_t dilation[2], const int64_t pad[4]);

/* The same for a node whose infer has passed. */
static inline keel_window keel_window_of(const keel_node *n, const int64_t size[2],
                                         const int64_t strides[2], const int64_t dilation[2],
                                         const int64_t pad[4])
{
    keel_window w;
    for (int d = 0; d < 2; d++) {
        w.in[d] = n->in[0].shape.dim[d];
        w.out[d] = n->out[0].shape.dim[d];
        w.size[d] = size[d];
        w.stride[d] = strides[d];
        w.dilation[d] = dilation ? dilation[d] : 1;
        w.pad[d] = pad[2 * d];
    }
    return w;
}

/* Where the window at output o looks with its tap k, in dim d; negative: outside. */
static inline int64_t keel_window_in(const keel_window *w, int d, int64_t o, int64_t k)
{
    const int64_t i = o * w->stride[d] + k * w->dilation[d] - w->pad[d];
    return i < w->in[d] ? i : -1;
}

/* Which output looks at input i with its tap k, in dim d; negative: none. */
static inline int64_t keel_window_out(const keel_window *w, int d, int64_t i, int64_t k)
{
    const int64_t at = i + w->pad[d] - k * w->dilation[d];
    if (at < 0 || at % w->stride[d]) return -1;
    const int64_t o = at / w->stride[d];
    return o < w->out[d] ? o : -1;
}

#endif
