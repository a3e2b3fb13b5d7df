/* The ops of losses and metrics (train/score.h): a row has elements, of `last` numbers each. An
 * element has one thread, a warp or a block, which its length decides; its gradient is written
 * there, and its loss, weight and count go to three doubles, which are then added up for each row
 * in one order. Labels of any type become int32 first.
 *
 * A term is the mathematics of one loss or metric:
 *
 *     template <class L> static __device__ double run(const score_line &l)
 *
 * where L has the threads of the element; all of them return the loss, and write the gradient. */
#ifndef KEEL_TRAIN_CUDA_SCORES_H
#define KEEL_TRAIN_CUDA_SCORES_H
#include "ops/cuda/_lines.h"
#include "ops/cuda/_numbers.h"
extern "C" {
#include "train/score.h"
}

static const int SCORE_SUMS = 3;
static const int64_t SCORE_FEW = 16; /* numbers that one thread has */
enum { LABEL_LEFT_OUT = -1, LABEL_OF_NO_CLASS = -2 };

/* What a gradient is multiplied by, beside the weight: a number of the step, if it has any, and
 * where rows meet, it is divided by a number of theirs. */
struct score_seed {
    const keel_step_facts *step; /* on the device */
    int index;                   /* of its loss_seed */
    double given;                /* without seeds; and where rows meet, a factor of the first */
    const double *merged;        /* {rows, elements, weights}; NULL: nothing is divided by */
    int divisor;                 /* which of merged; -1: 1 */

    __device__ __forceinline__ double value() const
    {
        const double *seeds = step->loss_seed;
        if (!merged) return seeds ? seeds[index] : given;
        const double by = merged[2] == 0 ? 0 : divisor < 0 ? 1 : merged[divisor];
        return by != 0 ? seeds[0] * given / by : 0;
    }
};

struct score_options {
    float keep, share; /* smoothed targets: t keep + share */
    float limit;       /* a threshold, the delta of Huber, an exponent */
    float alpha, gamma;
    bool balanced;
    int64_t k; /* the largest */
};

struct score_frame {
    const float *p, *t;         /* t NULL: labels */
    const float *weight, *mask; /* NULL: all 1 */
    int64_t weights, masks;     /* of a row, which its elements share evenly */
    int64_t rows, elements, last;
    int32_t *label; /* [rows elements] */
    float *grad;    /* NULL: not wanted */
    double *each;   /* [rows elements][SCORE_SUMS] */
    score_seed seed;
    score_options options;

    /* Number i of a row's `n`, which are shared by the elements. */
    __device__ __forceinline__ float beside(const float *x, int64_t n, int64_t row,
                                            int64_t element) const
    {
        if (!x) return 1;
        if (n < 2) return x[row];
        return x[row * n + element / (elements / n)];
    }
    __device__ __forceinline__ bool counts(int64_t row, int64_t element) const
    {
        return beside(mask, masks, row, element) != 0;
    }
    __device__ __forceinline__ double weight_of(int64_t row, int64_t element) const
    {
        return counts(row, element) ? (double)beside(weight, weights, row, element) : 0;
    }
};

struct score_line {
    const float *p, *t;
    float *grad; /* NULL: not wanted */
    int64_t n;
    int32_t label;
    float scale;
    double *room;
    score_options options;
};

template <class L, class F>
static __device__ __forceinline__ double score_fold(const score_line &l, double x, F f)
{
    return L::fold(x, l.room, f);
}

template <int WIDTH, class TERM>
static __global__ void __launch_bounds__(CUDA_THREADS, 1) score_kernel(const score_frame f)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(double, room, 33);
    const double seed = f.grad ? f.seed.value() : 0;
    for (int64_t e = threads::first_line(); e < f.rows * f.elements; e += threads::step()) {
        int64_t row = e;
        const int64_t element = take(&row, f.elements);
        const double w = f.weight_of(row, element);
        const int32_t label = f.label ? f.label[e] : 0;
        const score_line l = { f.p + e * f.last,
                               f.t ? f.t + e * f.last : nullptr,
                               f.grad ? f.grad + e * f.last : nullptr,
                               f.last,
                               label,
                               (float)(seed * w),
                               room,
                               f.options };
        double loss = 0;
        if (w != 0 && label >= 0)
            loss = w * TERM::template run<threads>(l);
        else
            for (int64_t j = threads::number(); l.grad && j < l.n; j += WIDTH) l.grad[j] = 0;
        if (threads::number() != 0) continue;
        const bool counts = f.counts(row, element) && label != LABEL_LEFT_OUT;
        f.each[SCORE_SUMS * e] = loss;
        f.each[SCORE_SUMS * e + 1] = counts ? 1 : 0;
        f.each[SCORE_SUMS * e + 2] = counts ? w : 0;
    }
}

/* What is done with labels that are not the number of a class. */
enum score_labels_are {
    SCORE_LABELS,       /* numbers between classes are cut, as in Keras, any other is a fault */
    SCORE_WHOLE_LABELS, /* they are of no class */
    SCORE_CUT_LABELS    /* numbers between classes are cut, any other is of no class */
};

/* label = the number of the class. What has no weight is no fault. */
template <class N>
static __global__ void __launch_bounds__(CUDA_THREADS)
    label_kernel(const score_frame f, const N *labels, double left_out, score_labels_are are,
                 const cuda_report report)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = f.rows * f.elements;
    for (int64_t e = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; e < all; e += step) {
        double label;
        unsigned number;
        if constexpr (std::is_integral<N>::value) {
            label = (double)labels[e];
            number = cuda_number((int64_t)labels[e]);
        } else {
            label = to_f(labels[e]);
            number = cuda_number(to_f(labels[e]));
        }
        const bool inside = label > -1 && label < (double)f.last;
        const bool known = inside && (are != SCORE_WHOLE_LABELS || label == floor(label));
        if (label == left_out)
            f.label[e] = LABEL_LEFT_OUT;
        else
            f.label[e] = known ? (int32_t)label : LABEL_OF_NO_CLASS;
        if (are != SCORE_LABELS || inside || label == left_out) continue;
        int64_t row = e;
        const int64_t element = take(&row, f.elements);
        if (f.weight_of(row, element) != 0) cuda_fault(report, row, number);
    }
}

/* What becomes of the sums of a row. */
enum score_ends {
    SCORE_LOSS,  /* {loss, elements, weights} */
    SCORE_TERMS, /* {elements, weights} */
    SCORE_METRIC /* {mean, weight} */
};

template <int WIDTH>
static __global__ void __launch_bounds__(CUDA_THREADS)
    score_rows_kernel(double *to, const score_frame f, score_ends ends)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t row = threads::first_line(); row < f.rows; row += threads::step()) {
        double sum[SCORE_SUMS] = { 0, 0, 0 };
        for (int64_t k = threads::number(); k < f.elements; k += WIDTH) {
            const int64_t e = row * f.elements + k;
            if (ends != SCORE_TERMS) {
                for (int s = 0; s < SCORE_SUMS; s++) sum[s] += f.each[SCORE_SUMS * e + s];
            } else if (f.counts(row, k) && (!f.label || f.label[e] != LABEL_LEFT_OUT)) {
                sum[1] += 1;
                sum[2] += f.weight_of(row, k);
            }
        }
        for (int s = 0; s < SCORE_SUMS; s++) sum[s] = threads::fold(sum[s], room, gpu_plus());
        if (threads::number() != 0) continue;
        const double n = (double)f.elements;
        if (ends == SCORE_LOSS) {
            for (int s = 0; s < SCORE_SUMS; s++) to[row * SCORE_SUMS + s] = sum[s];
        } else if (ends == SCORE_TERMS) {
            to[row * 2] = sum[1];
            to[row * 2 + 1] = sum[2];
        } else {
            to[row * 2] = sum[0] / n;
            to[row * 2 + 1] = f.weight || f.mask ? sum[2] / n : 1;
        }
    }
}

static inline void score_rows(const keel_call *c, const score_frame &f, score_ends ends)
{
    if (f.elements > LINE_LONG)
        cuda_launch(c, score_rows_kernel<CUDA_THREADS>,
                    line_of_threads<CUDA_THREADS>::blocks(f.rows), CUDA_THREADS, 0, c->partial, f,
                    ends);
    else
        cuda_launch(c, score_rows_kernel<GPU_WARP>, line_of_threads<GPU_WARP>::blocks(f.rows),
                    CUDA_THREADS, 0, c->partial, f, ends);
}

typedef void (*score_run)(const keel_call *c, const score_frame &f);

/* A line of `length` numbers has a thread, a warp or a block: launch(width, blocks). */
template <class LAUNCH> static void score_lines(int64_t length, int64_t lines, const LAUNCH &launch)
{
    if (length <= SCORE_FEW)
        launch(std::integral_constant<int, 1>(), line_of_threads<1>::blocks(lines));
    else if (length <= LINE_LONG)
        launch(std::integral_constant<int, GPU_WARP>(), line_of_threads<GPU_WARP>::blocks(lines));
    else
        launch(std::integral_constant<int, CUDA_THREADS>(),
               line_of_threads<CUDA_THREADS>::blocks(lines));
}

template <class TERM> static void score_each(const keel_call *c, const score_frame &f)
{
    score_lines(f.last, f.rows * f.elements, [&](auto width, auto blocks) {
        cuda_launch(c, score_kernel<decltype(width)::value, TERM>, blocks, CUDA_THREADS, 0, f);
    });
}

/* The call's values, without gradients; scratch as score_scratch says. */
static inline score_frame score_frame_of(const keel_call *c, keel_target_kind target, bool weighted)
{
    const keel_node *n = c->node;
    score_frame f = {};
    keel_dense d = {};
    (void)keel_target_check(target, "", &n->in[KEEL_SCORE_PREDICTION], &n->in[KEEL_SCORE_TARGET],
                            &d);
    f.p = cuda_in<float>(c, KEEL_SCORE_PREDICTION);
    if (weighted) f.weight = cuda_in<float>(c, KEEL_SCORE_WEIGHT);
    f.weights = keel_row_count(&n->in[KEEL_SCORE_WEIGHT]);
    if (n->n_in > KEEL_SCORE_MASK) {
        f.mask = cuda_in<float>(c, KEEL_SCORE_MASK);
        f.masks = keel_row_count(&n->in[KEEL_SCORE_MASK]);
    }
    f.rows = c->rows;
    f.elements = d.elements;
    f.last = d.last;
    f.options.keep = 1;
    double *room = static_cast<double *>(c->scratch);
    f.each = room;
    if (keel_target_is_labels(target))
        f.label = reinterpret_cast<int32_t *>(room + SCORE_SUMS * f.rows * f.elements);
    else
        f.t = cuda_in<float>(c, KEEL_SCORE_TARGET);
    return f;
}

static inline void score_labels(const keel_call *c, const score_frame &f, double left_out,
                                score_labels_are are)
{
    const int64_t all = f.rows * f.elements;
    if (!f.label) return;
    with_type(
        c->node->in[KEEL_SCORE_TARGET].dtype, c->in[KEEL_SCORE_TARGET], [&](const auto *labels) {
            typedef std::remove_cv_t<std::remove_pointer_t<decltype(labels)>> N;
            cuda_launch(c, label_kernel<N>, cuda_blocks(all), CUDA_THREADS, 0, f, labels, left_out,
                        are, cuda_report_of(keel_cuda_faults(c), c, CUDA_FAULT_LABEL));
        });
}

/* Targets of the hinges, where elements have weight: as keel_hinge_refuse. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    score_sides_kernel(const score_frame f, const cuda_report report)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = f.rows * f.elements * f.last;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < all; i += step) {
        const float t = f.t[i];
        if (t == 0 || t * t == 1) continue;
        int64_t row = i;
        take(&row, f.last);
        const int64_t element = take(&row, f.elements);
        if (f.weight_of(row, element) != 0) cuda_fault(report, row, cuda_number(t));
    }
}

static inline void score_sides(const keel_call *c, const score_frame &f)
{
    cuda_launch(c, score_sides_kernel, cuda_blocks(f.rows * f.elements * f.last), CUDA_THREADS, 0,
                f, cuda_report_of(keel_cuda_faults(c), c, CUDA_FAULT_SIDE));
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    score_add_kernel(float *to, const float *from, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < n; i += step)
        to[i] += from[i];
}

/* Room for a gradient that is added to that of another loss of the prediction: behind the rest of
 * scratch. Terms overwrite. */
static inline float *score_apart(const score_frame &f)
{
    float *labels = reinterpret_cast<float *>(f.each + SCORE_SUMS * f.rows * f.elements);
    return f.label ? labels + f.rows * f.elements : labels;
}

static inline void score_add(const keel_call *c, const score_frame &f, float *to)
{
    const int64_t n = f.rows * f.elements * f.last;
    cuda_launch(c, score_add_kernel, cuda_blocks(n), CUDA_THREADS, 0, to, score_apart(f), n);
}

/* The end of prepare, for targets of that kind. */
static inline keel_status score_prepare(keel_prepare *p, keel_target_kind target)
{
    const keel_spec *in = p->node->in;
    const bool labels = keel_target_is_labels(target);
    keel_dense d = {};
    KEEL_TRY(keel_target_check(target, "", &in[KEEL_SCORE_PREDICTION], &in[KEEL_SCORE_TARGET], &d));
    if (d.last > INT32_MAX || (labels && !knows_type(in[KEEL_SCORE_TARGET].dtype)))
        return KEEL_EUNSUP;
    const int64_t sums = SCORE_SUMS * (int64_t)sizeof(double), label = labels ? 4 : 0;
    const int64_t grad = p->in_adds ? d.last * (int64_t)sizeof(float) : 0;
    return cuda_prepare(p, p->rows * d.elements * (sums + label + grad));
}

#endif
