/* Metrics of intersection over union (metrics/_iou.h): first each element gets the class of its
 * target and the predicted one, then each class of a row adds up the weights of its elements, in
 * one order. */
#ifndef KEEL_TRAIN_CUDA_IOU_H
#define KEEL_TRAIN_CUDA_IOU_H
#include "train/cuda/_scores.h"
extern "C" {
#include "metrics/_iou.h"
}

struct iou {
    keel_target_kind kind;
    int64_t classes, items; /* items: of a row; where predictions are class numbers, its numbers */
    double ignored;         /* a class */
    double threshold;       /* NaN: predictions are class numbers */
    bool cuts;              /* the fractions of weights */
};

struct iou_pair { /* -1: does not count */
    int32_t target, predicted;
};

static __device__ __forceinline__ int64_t iou_largest(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        if (x[j] > x[best]) best = j;
    return best;
}

/* As add_one of metrics/_iou.c. */
static __device__ __forceinline__ iou_pair iou_pair_of(const iou &m, double target,
                                                       double predicted)
{
    const double n = (double)m.classes, t = trunc(target), p = trunc(predicted);
    const bool counts = t >= 0 && t < n && p >= 0 && p < n && t != m.ignored;
    return { counts ? (int32_t)t : -1, counts ? (int32_t)p : -1 };
}

template <class N>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    iou_pairs_kernel(iou_pair *to, const score_frame f, const N *labels, const iou m)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = f.rows * m.items;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < all; i += step) {
        if (m.kind == KEEL_TARGET_DENSE) {
            const float p = f.p[i];
            const bool above = p >= (float)m.threshold;
            to[i] = iou_pair_of(m, f.t[i], m.threshold != m.threshold ? (double)p : (double)above);
            continue;
        }
        double target;
        if (m.kind != KEEL_TARGET_LABEL)
            target = (double)iou_largest(f.t + i * f.last, f.last);
        else if constexpr (std::is_integral<N>::value)
            target = (double)labels[i];
        else
            target = to_f(labels[i]);
        to[i] = iou_pair_of(m, target, (double)iou_largest(f.p + i * f.last, f.last));
    }
}

/* A class of a row has a thread, a warp or a block. */
template <int WIDTH>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    iou_sums_kernel(double *to, const iou_pair *pairs, const score_frame f, const iou m)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(double, room, 33);
    const int64_t all = f.rows * m.classes, each = m.items / f.elements;
    for (int64_t s = threads::first_line(); s < all; s += threads::step()) {
        int64_t row = s;
        const int64_t k = take(&row, m.classes);
        double both = 0, target = 0, predicted = 0;
        for (int64_t i = threads::number(); i < m.items; i += WIDTH) {
            const iou_pair pair = pairs[row * m.items + i];
            if (pair.target != k && pair.predicted != k) continue;
            int64_t element = i;
            take(&element, each);
            double w = f.weight_of(row, element);
            if (m.cuts) w = trunc(w);
            both += pair.target == pair.predicted ? w : 0;
            target += pair.target == k ? w : 0;
            predicted += pair.predicted == k ? w : 0;
        }
        both = threads::fold(both, room, gpu_plus());
        target = threads::fold(target, room, gpu_plus());
        predicted = threads::fold(predicted, room, gpu_plus());
        if (threads::number() != 0) continue;
        to[3 * s] = both;
        to[3 * s + 1] = target;
        to[3 * s + 2] = predicted;
    }
}

static inline iou iou_of(const keel_iou *a, int64_t elements, int64_t last)
{
    const keel_target_kind kind = keel_iou_kind(a);
    return { kind,
             a->num_classes,
             kind == KEEL_TARGET_DENSE ? elements * last : elements,
             (double)a->ignore_class,
             a->threshold,
             keel_iou_cuts_weights(a) };
}

static inline void iou_run(const keel_call *c, score_frame f, const keel_iou *a)
{
    const iou m = iou_of(a, f.elements, f.last);
    const int64_t all = f.rows * m.items;
    iou_pair *pairs = static_cast<iou_pair *>(c->scratch);
    f.mask = nullptr; /* as Keras */
    with_type(c->node->in[KEEL_SCORE_TARGET].dtype, c->in[KEEL_SCORE_TARGET],
              [&](const auto *labels) {
                  typedef std::remove_cv_t<std::remove_pointer_t<decltype(labels)>> N;
                  cuda_launch(c, iou_pairs_kernel<N>, cuda_blocks(all), CUDA_THREADS, 0, pairs, f,
                              labels, m);
              });
    score_lines(m.items, f.rows * m.classes, [&](auto width, auto blocks) {
        cuda_launch(c, iou_sums_kernel<decltype(width)::value>, blocks, CUDA_THREADS, 0, c->partial,
                    pairs, f, m);
    });
}

static inline keel_status iou_prepare(keel_prepare *p, const keel_iou *a)
{
    const keel_spec *in = p->node->in;
    keel_dense d = {};
    KEEL_TRY(keel_target_check(keel_iou_kind(a), "", &in[KEEL_SCORE_PREDICTION],
                               &in[KEEL_SCORE_TARGET], &d));
    if (a->num_classes > INT32_MAX || !knows_type(in[KEEL_SCORE_TARGET].dtype)) return KEEL_EUNSUP;
    const iou m = iou_of(a, d.elements, d.last);
    return cuda_prepare(p, p->rows * m.items * (int64_t)sizeof(iou_pair));
}

#endif
