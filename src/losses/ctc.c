/* Connectionist temporal classification (Graves et al. 2006): -log of the probability that a row
 * of T steps spells its symbols y_1 .. y_L, by all paths of one class a step that give them once
 * repeats are merged and blanks (class 0) are left out. Predictions are logits; the symbols of a
 * row are as many as its targets that are not 0.
 *
 * Paths go through the states s: blank y_1 blank y_2 ... blank. With log a_t(s) the log of the
 * probability of all beginnings that are in s at step t, and log b_t(s) of all ends from there,
 * dl/dz_tk = softmax(z_t)_k - sum over states of class k of a_t(s) b_t(s) / p. Logs are sums in
 * double. A row whose symbols do not fit into its steps has no path: the step fails by its number
 * (Keras goes on with a made-up loss). */
#ifndef REAL
#include "losses/each.h"
#include <string.h>

typedef struct lattice {
    int64_t steps, classes, states;
    int64_t *class_of;   /* [states] */
    double *log_p;       /* [steps][classes] */
    double *begin, *end; /* [steps][states] */
} lattice;

static double log_add(double x, double y)
{
    const double most = x > y ? x : y, least = x > y ? y : x;
    return least == -INFINITY ? most : most + log1p(exp(least - most));
}

/* May a path go from state s to s + 2? Over a blank between two symbols that differ. */
static bool skips(const lattice *l, int64_t s)
{
    return s + 2 < l->states && l->class_of[s + 2] != 0 && l->class_of[s + 2] != l->class_of[s];
}

static double log_p_of(const lattice *l, int64_t t, int64_t s)
{
    return l->log_p[t * l->classes + l->class_of[s]];
}

static void run_forward(const lattice *l)
{
    for (int64_t t = 0; t < l->steps; t++)
        for (int64_t s = 0; s < l->states; s++) {
            const double *before = l->begin + (t - 1) * l->states;
            double sum = t == 0 && s < 2 ? 0 : -INFINITY;
            if (t > 0) sum = before[s];
            if (t > 0 && s > 0) sum = log_add(sum, before[s - 1]);
            if (t > 0 && s > 1 && skips(l, s - 2)) sum = log_add(sum, before[s - 2]);
            l->begin[t * l->states + s] = sum + log_p_of(l, t, s);
        }
}

/* end leaves out the step itself, which begin has. */
static void run_backward(const lattice *l)
{
    for (int64_t t = l->steps - 1; t >= 0; t--)
        for (int64_t s = 0; s < l->states; s++) {
            const double *after = l->end + (t + 1) * l->states;
            const bool last = t == l->steps - 1;
            double sum = last && s >= l->states - 2 ? 0 : -INFINITY;
            for (int64_t to = s; !last && to < s + 3 && to < l->states; to++)
                if (to < s + 2 || skips(l, s))
                    sum = log_add(sum, after[to] + log_p_of(l, t + 1, to));
            l->end[t * l->states + s] = sum;
        }
}

static double log_likelihood(const lattice *l)
{
    const double *last = l->begin + (l->steps - 1) * l->states;
    const double blank = last[l->states - 1];
    return l->states > 1 ? log_add(blank, last[l->states - 2]) : blank;
}

static int64_t scratch(const keel_spec *prediction, const keel_spec *target)
{
    const double steps = (double)prediction->shape.dim[0];
    const double classes = (double)prediction->shape.dim[1];
    const double states = 2 * (double)target->shape.dim[0] + 1;
    const double doubles = steps * classes + states + 2 * steps * states;
    return doubles < 0x1p50 ? (int64_t)doubles * (int64_t)sizeof(double) : INT64_MAX;
}

/* Lay out the lattice of a row; false: one of its symbols is no class. */
static bool prepare(const keel_elements *e, lattice *l)
{
    const int64_t most = e->target->shape.dim[0];
    int64_t symbols = 0;
    *l = (lattice){ .steps = e->prediction->shape.dim[0],
                    .classes = e->prediction->shape.dim[1],
                    .class_of = e->scratch };
    for (int64_t i = 0; i < most; i++)
        symbols += keel_label_at(e->y_true, e->label_dtype, e->first * most + i) != 0;
    l->states = 2 * symbols + 1;
    l->log_p = (double *)(l->class_of + 2 * most + 1);
    l->begin = l->log_p + l->steps * l->classes;
    l->end = l->begin + l->steps * l->states;
    for (int64_t s = 0; s < l->states; s++) {
        const double label =
            s % 2 ? keel_label_at(e->y_true, e->label_dtype, e->first * most + s / 2) : 0;
        if (!(label > -1 && label < (double)l->classes)) {
            keel_label_refuse(label, e->row, l->classes);
            return false;
        }
        l->class_of[s] = (int64_t)label;
    }
    return true;
}

#define REAL_FILE "losses/ctc.c"
#include "ops/real.h"

const keel_loss keel_loss_ctc = {
    .type = {
        .name = "CTC",
        .alias = "ctc",
        .module = "keras.losses",
        .help = "how unlikely steps spell a row of symbols, whenever each of them comes",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_loss_plain_fields,
    },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .target = KEEL_TARGET_SYMBOLS,
    .scratch = scratch,
    .of = REALS(of),
};

#else
static void REAL_(log_softmax)(const lattice *l, const REAL *z)
{
    for (int64_t t = 0; t < l->steps; t++, z += l->classes) {
        double top = (double)z[0], sum = 0, *to = l->log_p + t * l->classes;
        for (int64_t k = 1; k < l->classes; k++) top = (double)z[k] > top ? (double)z[k] : top;
        for (int64_t k = 0; k < l->classes; k++) sum += exp((double)z[k] - top);
        for (int64_t k = 0; k < l->classes; k++) to[k] = (double)z[k] - top - log(sum);
    }
}

static void REAL_(gradient)(const lattice *l, double log_all, double scale, REAL *grad)
{
    for (int64_t t = 0; t < l->steps; t++) {
        double *p = l->log_p + t * l->classes;
        for (int64_t k = 0; k < l->classes; k++) p[k] = exp(p[k]);
        for (int64_t s = 0; s < l->states; s++) {
            const int64_t at = t * l->states + s;
            p[l->class_of[s]] -= exp(l->begin[at] + l->end[at] - log_all);
        }
        for (int64_t k = 0; k < l->classes; k++) grad[t * l->classes + k] = (REAL)(scale * p[k]);
    }
}

static double REAL_(of)(keel_elements *e)
{
    lattice l;
    if (e->weightless) return 0;
    if (e->grad) memset(e->grad, 0, (size_t)e->last * sizeof(REAL));
    if (!prepare(e, &l)) return 0;
    REAL_(log_softmax)(&l, e->y_pred);
    run_forward(&l);
    const double log_all = log_likelihood(&l);
    if (log_all == -INFINITY) {
        keel_call_failed(NULL, keel_fail(KEEL_EDATA,
                                         "CTC: the %lld symbols of row %lld of the step do not "
                                         "fit into its %lld steps",
                                         (long long)(l.states / 2), (long long)e->row,
                                         (long long)l.steps));
        return 0;
    }
    if (!e->grad) return -log_all;
    run_backward(&l);
    REAL_(gradient)(&l, log_all, e->scale, e->grad);
    return -log_all;
}
#endif
