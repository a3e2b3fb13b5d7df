/* The terms of losses and metrics: see _scores.h. Formulas as in src/losses; sums are in double. */
#ifndef KEEL_TRAIN_CUDA_TERMS_H
#define KEEL_TRAIN_CUDA_TERMS_H
#include "train/cuda/_scores.h"

/* ---- sums over classes ------------------------------------------------------------------------
 */

static __device__ __forceinline__ float score_cut(float x) /* to [epsilon, 1 - epsilon] */
{
    const float low = (float)KEEL_EPSILON, high = (float)(1 - KEEL_EPSILON);
    return x < low ? low : x > high ? high : x;
}

template <class L> static __device__ __forceinline__ float score_top(const score_line &l)
{
    float top = -INFINITY;
    for (int64_t j = L::number(); j < l.n; j += L::WIDTH) top = gpu_greater()(l.p[j], top);
    return (float)score_fold<L>(l, top, gpu_greater());
}

template <class L>
static __device__ __forceinline__ double score_exponentials(const score_line &l, float top)
{
    double sum = 0;
    for (int64_t j = L::number(); j < l.n; j += L::WIDTH) sum += expf(l.p[j] - top);
    return score_fold<L>(l, sum, gpu_plus());
}

struct sparse_of_logits {
    template <class L> static __device__ double run(const score_line &l)
    {
        const float top = score_top<L>(l);
        const double sum = score_exponentials<L>(l, top);
        const float factor = l.scale / (float)sum;
        for (int64_t j = L::number(); l.grad && j < l.n; j += L::WIDTH)
            l.grad[j] = expf(l.p[j] - top) * factor - (j == l.label ? l.scale : 0);
        return log(sum) - (l.p[l.label] - top);
    }
};

struct sparse_of_probabilities {
    template <class L> static __device__ double run(const score_line &l)
    {
        double sum = 0;
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH) sum += score_cut(l.p[j]);
        sum = score_fold<L>(l, sum, gpu_plus());
        for (int64_t j = L::number(); l.grad && j < l.n; j += L::WIDTH) {
            const float p = l.p[j];
            const float g = l.scale / (float)sum - (j == l.label ? l.scale / p : 0);
            l.grad[j] = p == score_cut(p) ? g : 0;
        }
        return log(sum) - log((double)score_cut(l.p[l.label]));
    }
};

static __device__ __forceinline__ float score_target(const score_line &l, int64_t j)
{
    return l.t[j] * l.options.keep + l.options.share;
}

struct categorical_of_logits {
    template <class L> static __device__ double run(const score_line &l)
    {
        const float top = score_top<L>(l);
        const double sum = score_exponentials<L>(l, top), of_sum = log(sum);
        const float share = (float)(1 / sum);
        double loss = 0;
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH) {
            const float d = l.p[j] - top, t = score_target(l, j);
            loss += t * (of_sum - d);
            if (l.grad) l.grad[j] = l.scale * (expf(d) * share - t);
        }
        return score_fold<L>(l, loss, gpu_plus());
    }
};

/* q = p / sum(p), then cut; `inward` is the sum of the slopes by q times q. */
struct categorical_of_probabilities {
    template <class L> static __device__ double run(const score_line &l)
    {
        double all = 0, loss = 0, inward = 0;
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH) all += l.p[j];
        const float sum = (float)score_fold<L>(l, all, gpu_plus());
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH) {
            const float q = l.p[j] / sum, cut = score_cut(q), t = score_target(l, j);
            loss -= t * log((double)cut);
            inward += q == cut ? -t / cut * q : 0;
        }
        loss = score_fold<L>(l, loss, gpu_plus());
        inward = score_fold<L>(l, inward, gpu_plus());
        for (int64_t j = L::number(); l.grad && j < l.n; j += L::WIDTH) {
            const float q = l.p[j] / sum, cut = score_cut(q);
            const float slope = q == cut ? -score_target(l, j) / cut : 0;
            l.grad[j] = l.scale * (slope - (float)inward) / sum;
        }
        return loss;
    }
};

/* Both are cut to [epsilon, 1]. */
struct of_kl_divergence {
    static __device__ __forceinline__ float cut(float x)
    {
        const float low = (float)KEEL_EPSILON;
        return x < low ? low : x > 1 ? 1 : x;
    }
    template <class L> static __device__ double run(const score_line &l)
    {
        double sum = 0;
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH) {
            const float p = l.p[j], q = cut(p), t = cut(l.t[j]);
            sum += t * logf(t / q);
            if (l.grad) l.grad[j] = q == p ? -l.scale * t / q : 0;
        }
        return score_fold<L>(l, sum, gpu_plus());
    }
};

/* Where several of the others are the largest they share its gradient. */
struct of_categorical_hinge {
    template <class L> static __device__ double run(const score_line &l)
    {
        double of_class = 0, best = -INFINITY, largest = 0;
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH) {
            of_class += l.t[j] * l.p[j];
            best = gpu_greater()((double)((1 - l.t[j]) * l.p[j]), best);
        }
        of_class = score_fold<L>(l, of_class, gpu_plus());
        best = score_fold<L>(l, best, gpu_greater());
        const double loss = best - of_class + 1;
        for (int64_t j = L::number(); l.grad && j < l.n; j += L::WIDTH)
            largest += (double)((1 - l.t[j]) * l.p[j]) == best;
        if (l.grad) largest = score_fold<L>(l, largest, gpu_plus());
        for (int64_t j = L::number(); l.grad && j < l.n; j += L::WIDTH) {
            const float other = 1 - l.t[j], p = l.p[j];
            const float share = (double)(other * p) == best ? other / (float)largest : 0;
            l.grad[j] = loss >= 0 ? l.scale * (share - l.t[j]) : 0;
        }
        return loss < 0 ? 0 : loss; /* a NaN stays */
    }
};

struct of_cosine {
    template <class L> static __device__ double run(const score_line &l)
    {
        const float most = (float)(1 / KEEL_EPSILON); /* one over the least length */
        double p2 = 0, t2 = 0, cosine = 0;
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH) {
            p2 += l.p[j] * l.p[j];
            t2 += l.t[j] * l.t[j];
        }
        p2 = score_fold<L>(l, p2, gpu_plus());
        t2 = score_fold<L>(l, t2, gpu_plus());
        const float by_p = 1 / sqrtf((float)p2), by_t = 1 / sqrtf((float)t2);
        const bool longer = by_p <= most;
        const float of_p = longer ? by_p : most, of_t = by_t <= most ? by_t : most;
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH)
            cosine += l.t[j] * of_t * (l.p[j] * of_p);
        cosine = score_fold<L>(l, cosine, gpu_plus());
        const float along = longer ? (float)cosine : 0;
        for (int64_t j = L::number(); l.grad && j < l.n; j += L::WIDTH)
            l.grad[j] = -l.scale * of_p * (l.t[j] * of_t - along * (l.p[j] * of_p));
        return -cosine;
    }
};

/* q is the part of each in the sum of all; `along` adds up the slopes by q times q. */
template <bool LOGITS> struct of_categorical_focal {
    static __device__ __forceinline__ float part(float x, float top)
    {
        return LOGITS ? expf(x - top) : x;
    }
    static __device__ __forceinline__ float slope_by(const score_options &o, float q, float t)
    {
        const float cut = score_cut(q), factor = o.alpha * powf(1 - cut, o.gamma);
        const float by_q = o.gamma == 0 ? 0 : -o.alpha * o.gamma * powf(1 - cut, o.gamma - 1);
        return q == cut ? -t * (factor / cut + by_q * logf(cut)) : 0;
    }
    template <class L> static __device__ double run(const score_line &l)
    {
        const score_options &o = l.options;
        const float top = LOGITS ? score_top<L>(l) : 0;
        double all = 0, loss = 0, along = 0;
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH) all += part(l.p[j], top);
        const float sum = (float)score_fold<L>(l, all, gpu_plus());
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH) {
            const float q = part(l.p[j], top) / sum, cut = score_cut(q), t = score_target(l, j);
            loss -= o.alpha * powf(1 - cut, o.gamma) * t * logf(cut);
            if (l.grad) along += slope_by(o, q, t) * q;
        }
        loss = score_fold<L>(l, loss, gpu_plus());
        if (l.grad) along = score_fold<L>(l, along, gpu_plus());
        for (int64_t j = L::number(); l.grad && j < l.n; j += L::WIDTH) {
            const float q = part(l.p[j], top) / sum, slope = slope_by(o, q, score_target(l, j));
            l.grad[j] = l.scale * (slope - (float)along) * (LOGITS ? q : 1 / sum);
        }
        return loss;
    }
};

struct of_generalized_crossentropy {
    template <class L> static __device__ double run(const score_line &l)
    {
        const float q = l.options.limit, p = l.p[l.label];
        for (int64_t j = L::number(); l.grad && j < l.n; j += L::WIDTH)
            l.grad[j] = j == l.label ? -l.scale * powf(p, q - 1) : 0;
        return (1 - powf(p, q)) / q;
    }
};

/* ---- means of functions of two numbers --------------------------------------------------------
 */

/* AT: static float at(const score_options &, float p, float t, float *slope) */
template <class AT> struct mean_of {
    template <class L> static __device__ double run(const score_line &l)
    {
        const float scale = l.scale / (float)l.n;
        double sum = 0;
        for (int64_t j = L::number(); j < l.n; j += L::WIDTH) {
            float slope;
            sum += AT::at(l.options, l.p[j], l.t[j], &slope);
            if (l.grad) l.grad[j] = scale * slope;
        }
        return score_fold<L>(l, sum, gpu_plus()) / (double)l.n;
    }
};

#define SCORE_AT                                                                                   \
    static __device__ __forceinline__ float at([[maybe_unused]] const score_options &o, float p,   \
                                               float t, float *slope)

/* A program has computed it: losses/values.h. */
struct given {
    SCORE_AT
    {
        (void)t;
        *slope = 1;
        return p;
    }
};

struct squared {
    SCORE_AT
    {
        *slope = 2 * (p - t);
        return (p - t) * (p - t);
    }
};

struct difference {
    SCORE_AT
    {
        *slope = (float)((p > t) - (p < t));
        return fabsf(p - t);
    }
};

struct percentage {
    SCORE_AT
    {
        const float by = 100 / fmaxf(fabsf(t), (float)KEEL_EPSILON);
        *slope = (float)((p > t) - (p < t)) * by;
        return fabsf(t - p) * by;
    }
};

struct squared_logarithm {
    SCORE_AT
    {
        const float least = (float)KEEL_EPSILON;
        const float cut = p < least ? least : p, of = t < least ? least : t; /* a NaN stays */
        const float d = logf(cut + 1) - logf(of + 1);
        *slope = p >= least ? 2 * d / (cut + 1) : 0;
        return d * d;
    }
};

struct of_huber {
    SCORE_AT
    {
        const float x = p - t, size = fabsf(x);
        *slope = size <= o.limit ? x : x > 0 ? o.limit : -o.limit;
        return size <= o.limit ? 0.5f * (x * x) : o.limit * size - 0.5f * (o.limit * o.limit);
    }
};

struct of_log_cosh {
    SCORE_AT
    {
        const float x = p - t, size = fabsf(x);
        *slope = tanhf(x);
        return size + log1pf(expf(-2 * size)) - 0.69314718055994530942f;
    }
};

struct of_poisson {
    SCORE_AT
    {
        const float rate = p + (float)KEEL_EPSILON;
        *slope = 1 - t / rate;
        return p - t * logf(rate);
    }
};

/* Of logits: max(z, 0) - z t + log(1 + exp(-|z|)) */
struct binary_of_logits {
    SCORE_AT
    {
        const float y = t * o.keep + o.share, e = expf(-fabsf(p)), big = 1 / (1 + e);
        *slope = (p >= 0 ? big : e * big) - y;
        return (p > 0 ? p : 0) - p * y + log1pf(e);
    }
};

struct binary_of_probabilities {
    SCORE_AT
    {
        const float y = t * o.keep + o.share, q = score_cut(p);
        *slope = q == p ? (1 - y) / (1 - q) - y / q : 0;
        return -(y * logf(q) + (1 - y) * logf(1 - q));
    }
};

/* A target of 0 stands for -1. */
struct of_hinge {
    SCORE_AT
    {
        const float side = t == 0 ? -1 : t, left = 1 - side * p;
        *slope = left >= 0 ? -side : 0;
        return left < 0 ? 0 : left; /* a NaN stays */
    }
};

struct of_squared_hinge {
    SCORE_AT
    {
        const float side = t == 0 ? -1 : t, all = 1 - side * p, left = all < 0 ? 0 : all;
        *slope = -2 * side * left;
        return left * left;
    }
};

template <class BINARY, bool LOGITS> struct of_binary_focal {
    SCORE_AT
    {
        const score_options plain = { 1, 0 };
        const float y = t * o.keep + o.share, e = expf(-fabsf(p)), big = 1 / (1 + e);
        const float q = !LOGITS ? p : p >= 0 ? big : e * big;
        float by_x;
        const float loss = BINARY::at(plain, p, y, &by_x);
        const float wrong = 1 - (y * q + (1 - y) * (1 - q)), factor = powf(wrong, o.gamma);
        const float wrong_by_x = (1 - 2 * y) * (LOGITS ? q * (1 - q) : 1);
        const float factor_by_x =
            o.gamma == 0 ? 0 : o.gamma * powf(wrong, o.gamma - 1) * wrong_by_x;
        const float weight = o.balanced ? y * o.alpha + (1 - y) * (1 - o.alpha) : 1;
        *slope = weight * (factor * by_x + factor_by_x * loss);
        return weight * factor * loss;
    }
};

/* ---- metrics: they have no slope --------------------------------------------------------------
 */

struct equal {
    SCORE_AT
    {
        *slope = 0;
        return p == t ? 1 : 0;
    }
};

struct same_side {
    SCORE_AT
    {
        *slope = 0;
        return (p > o.limit ? 1.0f : 0.0f) == t ? 1 : 0;
    }
};

struct gpu_less {
    __device__ __forceinline__ double operator()(double a, double b) const
    {
        return a < b ? a : b;
    }
};

/* The index of the largest number, the first if there are several. NaN is never larger; one at the
 * begin stays. */
template <class L>
static __device__ __forceinline__ double score_argmax(const score_line &l, const float *x)
{
    float top = -INFINITY;
    double at = (double)l.n;
    for (int64_t j = L::number(); j < l.n; j += L::WIDTH) top = x[j] > top ? x[j] : top;
    top = (float)score_fold<L>(l, top, gpu_greater());
    for (int64_t j = L::number(); j < l.n && at == (double)l.n; j += L::WIDTH)
        if (x[j] == top || (j == 0 && x[j] != x[j])) at = (double)j;
    return score_fold<L>(l, at, gpu_less());
}

struct sparse_hit {
    template <class L> static __device__ double run(const score_line &l)
    {
        return score_argmax<L>(l, l.p) == (double)l.label;
    }
};

struct categorical_hit {
    template <class L> static __device__ double run(const score_line &l)
    {
        const double p = score_argmax<L>(l, l.p), t = score_argmax<L>(l, l.t);
        return p == t;
    }
};

/* Whether class y is among the k largest: ties with the k-th are, and nothing is beside a number
 * that is not finite. */
template <class L>
static __device__ __forceinline__ double score_in_top(const score_line &l, int64_t y)
{
    double larger = 0, wrong = 0;
    for (int64_t j = L::number(); j < l.n; j += L::WIDTH) {
        wrong += !(fabsf(l.p[j]) < INFINITY);
        larger += l.p[j] > l.p[y];
    }
    larger = score_fold<L>(l, larger, gpu_plus());
    wrong = score_fold<L>(l, wrong, gpu_plus());
    return wrong == 0 && larger < (double)l.options.k;
}

struct sparse_in_top {
    template <class L> static __device__ double run(const score_line &l)
    {
        return score_in_top<L>(l, l.label);
    }
};

struct categorical_in_top {
    template <class L> static __device__ double run(const score_line &l)
    {
        return score_in_top<L>(l, (int64_t)score_argmax<L>(l, l.t));
    }
};

/* ---- which loss has which ---------------------------------------------------------------------
 */

/* NULL: it has none. */
score_run score_of_loss(const keel_loss *l, const void *args);
/* What the term of a loss reads of its arguments. */
score_options score_options_of(const keel_loss *l, const void *args, int64_t last);
/* Faults of the loss's targets that are no labels. */
void score_targets(const keel_call *c, const score_frame &f, const keel_loss *l);
/* The label of elements that do not count; NaN: none. */
double score_left_out(const keel_loss *l, const void *args);

#endif
