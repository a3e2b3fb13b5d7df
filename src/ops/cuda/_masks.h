/* Masks over scores, which repeat where a dim is 1, and what else says which keys a query sees: for
 * masked_softmax and dot_product_attention. */
#ifndef KEEL_OPS_CUDA_MASKS_H
#define KEEL_OPS_CUDA_MASKS_H
#include "ops/cuda/_kernel.h"

enum { MASKS_MAX = 4 };

template <class T> struct cuda_masks {
    int n, rank;
    int64_t dim[KEEL_RANK_MAX]; /* of the scores of a row */
    struct {
        const T *at;
        int64_t row, step[KEEL_RANK_MAX];
    } mask[MASKS_MAX];
    bool causal;
    int64_t window;

    /* The keys [first, end) of `keys` that query t may see; as keel_seen_range. */
    template <class I> __device__ __forceinline__ void range(I t, I keys, I *first, I *end) const
    {
        const I wide = (I)window, low = wide && t - wide + 1 > 0 ? t - wide + 1 : 0;
        I high = causal && t + 1 < keys ? t + 1 : keys;
        if (wide && !causal && t + wide < high) high = t + wide;
        *first = low < high ? low : high;
        *end = high;
    }
    /* Whether all masks let score `at` of a row be seen. */
    __device__ __forceinline__ bool let(int64_t row, int64_t at) const
    {
        int64_t place[MASKS_MAX] = { 0, 0, 0, 0 };
        if (n == 0) return true;
        for (int d = rank - 1; d >= 0; d--) {
            const int64_t k = take(&at, dim[d]);
            for (int i = 0; i < MASKS_MAX; i++)
                if (i < n) place[i] += k * mask[i].step[d];
        }
        bool seen = true;
        for (int i = 0; i < MASKS_MAX; i++)
            if (i < n) seen = seen && to_f(mask[i].at[row * mask[i].row + place[i]]) > 0.5f;
        return seen;
    }
};

/* The inputs from `first` on are masks over `scores`. */
template <class T>
static cuda_masks<T> cuda_masks_of(const keel_call *c, int first, const keel_shape &scores,
                                   const keel_masked_softmax_args &a)
{
    cuda_masks<T> m = {};
    m.n = c->node->n_in - first;
    m.rank = scores.rank;
    m.causal = a.causal;
    m.window = a.window;
    for (int d = 0; d < scores.rank; d++) m.dim[d] = scores.dim[d];
    for (int i = 0; i < m.n; i++) {
        const keel_shape &in = c->node->in[first + i].shape;
        int64_t step = 1;
        for (int d = in.rank - 1; d >= 0; d--) {
            m.mask[i].step[d] = in.dim[d] == 1 ? 0 : step;
            step *= in.dim[d];
        }
        m.mask[i].row = step;
        m.mask[i].at = cuda_in<T>(c, first + i);
    }
    return m;
}

#endif
