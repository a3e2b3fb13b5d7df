/* Metrics that count predictions above thresholds (metrics/_confusion.h): first each number gets
 * its place in the histogram, then each place adds up the weights of its numbers, in one order. And
 * the F scores (metrics/_fbeta.h), which count each number of a row for itself. */
#ifndef KEEL_TRAIN_CUDA_CONFUSION_H
#define KEEL_TRAIN_CUDA_CONFUSION_H
#include "ops/cuda/_given.h"
#include "train/cuda/_scores.h"
extern "C" {
#include "metrics/_confusion.h"
#include "metrics/_fbeta.h"
}

struct confusion {
    int64_t n, given; /* thresholds; those of the arguments */
    int64_t class_id; /* -1: all */
    bool even, outside, from_logits, multi_label;

    __device__ __forceinline__ int places() const /* of one histogram */
    {
        return (int)(2 * (n + 1));
    }
    /* As below() of metrics/_confusion.c. */
    __device__ __forceinline__ int64_t below(float p, const float *thresholds) const
    {
        int64_t k = 0;
        if (even) {
            const float cut = p > 1 ? 1 : p > 0 ? p : 0;
            k = (int64_t)ceilf(cut * (float)(n - 1));
            return k == 0 && outside ? 1 : k;
        }
        if (!outside && given == 0) return p > 0.5f;
        for (int64_t i = 0; i < given; i++) k += p > thresholds[i];
        return outside ? k + (p > -1e-7f) + (p > 1 + 1e-7f) : k;
    }
};

/* at: the place of each number; -1: none */
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    confusion_places_kernel(int32_t *at, const score_frame f, const confusion m,
                            const float *thresholds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = f.rows * f.elements * f.last;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        const int64_t j = take(&row, f.last), element = take(&row, f.elements);
        const bool counts = m.class_id < 0 || j == m.class_id;
        float p = f.p[t];
        if (m.from_logits) p = 1 / (1 + expf(-p));
        const int64_t first = f.t[t] != 0 ? 0 : m.n + 1;
        const int64_t place = (m.multi_label ? j * m.places() : 0) + first;
        at[t] = counts && f.weight_of(row, element) != 0 ? (int32_t)(place + m.below(p, thresholds))
                                                         : -1;
    }
}

/* A place of a row's histograms has a thread, a warp or a block. */
template <int WIDTH>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    confusion_sums_kernel(double *to, const int32_t *at, const score_frame f, const confusion m,
                          int64_t sums)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t s = threads::first_line(); s < f.rows * sums; s += threads::step()) {
        int64_t row = s;
        const int64_t place = take(&row, sums);
        int64_t label = place;
        take(&label, m.places());
        const int32_t *own = at + row * f.elements * f.last + (m.multi_label ? label : 0);
        const int64_t by = m.multi_label ? f.last : 1;
        const int64_t count = m.multi_label ? f.elements : f.elements * f.last;
        double sum = 0;
        for (int64_t i = threads::number(); i < count; i += WIDTH) {
            if (own[i * by] != (int32_t)place) continue;
            int64_t element = i;
            if (!m.multi_label) take(&element, f.last);
            sum += f.weight_of(row, element);
        }
        sum = threads::fold(sum, room, gpu_plus());
        if (threads::number() == 0) to[s] = sum;
    }
}

/* What lies in scratch: the places, then the thresholds of the arguments. */
static inline int64_t confusion_scratch(const keel_confusion *a, int64_t numbers)
{
    return numbers * (int64_t)sizeof(int32_t) + a->thresholds.count * (int64_t)sizeof(float);
}

/* The k largest, and weights of labels, are left to the reference. */
static inline bool confusion_has_kernel(const keel_confusion *a)
{
    return a->top_k == KEEL_INT_NULL && a->label_weights.count == 0;
}

static inline void confusion_run(const keel_call *c, const score_frame &f, const keel_confusion *a)
{
    const int64_t numbers = f.rows * f.elements * f.last, sums = c->node->sums;
    const int64_t each = a->multi_label ? f.elements : f.elements * f.last;
    int32_t *at = static_cast<int32_t *>(c->scratch);
    float *thresholds = reinterpret_cast<float *>(at + numbers);
    const confusion m = { keel_confusion_thresholds(a),
                          a->thresholds.count,
                          a->class_id == KEEL_INT_NULL ? -1 : a->class_id,
                          keel_confusion_is_even(a),
                          a->outside,
                          a->from_logits,
                          a->multi_label };
    if (!m.even) give(c, thresholds, m.given, 1, [=](int64_t i) { return a->thresholds.at[i]; });
    cuda_launch(c, confusion_places_kernel, cuda_blocks(numbers), CUDA_THREADS, 0, at, f, m,
                thresholds);
    score_lines(each, f.rows * sums, [&](auto width, auto blocks) {
        cuda_launch(c, confusion_sums_kernel<decltype(width)::value>, blocks, CUDA_THREADS, 0,
                    c->partial, at, f, m, sums);
    });
}

/* As keel_fbeta_add. A thread has a number of a row, of which it looks for the largest. */
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    fbeta_kernel(double *to, const score_frame f, double threshold)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < f.rows * f.last;
         i += step) {
        int64_t row = i;
        take(&row, f.last);
        const float *own = f.p + row * f.last, p = f.p[i];
        const double t = f.t[i], w = f.weight_of(row, 0);
        bool positive = p > (float)threshold;
        if (threshold != threshold) {
            float largest = own[0];
            for (int64_t j = 1; j < f.last; j++) largest = fmaxf(largest, own[j]);
            positive = p >= largest && fabs((double)p) > 1e-9;
        }
        double *count = to + 4 * i; /* true and false positives, false negatives, targets */
        const double of = w != 0 ? w * t : 0;
        count[0] = positive ? of : 0;
        count[1] = positive && w != 0 ? w * (1 - t) : 0;
        count[2] = positive ? 0 : of;
        count[3] = of;
    }
}

static inline void fbeta_run(const keel_call *c, const score_frame &f, const keel_fbeta *a)
{
    cuda_launch(c, fbeta_kernel, cuda_blocks(f.rows * f.last), CUDA_THREADS, 0, c->partial, f,
                a->threshold);
}

#endif
