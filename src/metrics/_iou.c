/* See _iou.h. */
#include "metrics/_iou.h"
#include <math.h>
#include <string.h>

enum { BOTH, TRUE, PREDICTED, COUNTS };
#define EPSILON 1e-7 /* Keras's backend.epsilon() */

keel_status keel_iou_ready(void *args)
{
    keel_iou *a = args;
    a->threshold = NAN;
    for (int i = 0; i < a->target_class_ids.count; i++) {
        const double id = a->target_class_ids.at[i];
        if (id != trunc(id) || id >= (double)a->num_classes)
            return keel_fail(KEEL_EARG, "target_class_ids: %g is none of %lld classes", id,
                             (long long)a->num_classes);
    }
    if (a->sparse_y_pred && !a->sparse_y_true)
        return keel_fail(KEEL_EUNSUP,
                         "sparse_y_pred: one-hot targets of predictions that are class numbers");
    return KEEL_OK;
}

keel_status keel_iou_one_hot(void *args)
{
    keel_iou *a = args;
    a->sparse_y_true = false;
    return keel_iou_ready(args);
}

keel_target_kind keel_iou_kind(const void *args)
{
    const keel_iou *a = args;
    return a->sparse_y_pred   ? KEEL_TARGET_DENSE
           : a->sparse_y_true ? KEEL_TARGET_LABEL
                              : KEEL_TARGET_ONE_HOT;
}

int64_t keel_iou_sums(const void *args, int64_t last)
{
    (void)last;
    return ((const keel_iou *)args)->num_classes * COUNTS;
}

keel_status keel_iou_check(const void *args, int64_t last)
{
    const keel_iou *a = args;
    if (a->sparse_y_pred || last <= a->num_classes) return KEEL_OK;
    return keel_fail(KEEL_EARG, "num_classes %lld: predictions have %lld class%s",
                     (long long)a->num_classes, (long long)last, last == 1 ? "" : "es");
}

bool keel_iou_cuts_weights(const keel_iou *a)
{
    return !a->dtype || strncmp(a->dtype, "float", strlen("float")) != 0;
}

static int64_t largest(const void *x, int real, int64_t first, int64_t n)
{
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        if (keel_real_at(x, real, first + j) > keel_real_at(x, real, first + best)) best = j;
    return best;
}

static void add_one(const keel_iou *a, double of_true, double predicted, double w, double *sum)
{
    const double n = (double)a->num_classes;
    const double t = trunc(of_true), p = trunc(predicted);
    if (!(t >= 0 && t < n && p >= 0 && p < n) || t == (double)a->ignore_class) return;
    if (t == p) sum[(int64_t)t * COUNTS + BOTH] += w;
    sum[(int64_t)t * COUNTS + TRUE] += w;
    sum[(int64_t)p * COUNTS + PREDICTED] += w;
}

void keel_iou_add(const keel_loss_call *c, int real, double *sum)
{
    const keel_iou *a = c->args;
    const keel_target_kind kind = keel_iou_kind(a);
    keel_loss_call unmasked = *c; /* Keras does not look at masks here */
    keel_dense d = { 0 };
    unmasked.mask = NULL;
    if (keel_target_check(kind, "", c->prediction, c->target, &d) < 0) return;
    for (int64_t i = 0; i < c->rows * d.elements; i++) {
        double w = keel_element_weight(&unmasked, real, d.elements, i / d.elements, i % d.elements);
        const int64_t first = i * d.last;
        if (keel_iou_cuts_weights(a)) w = trunc(w);
        if (w == 0) continue;
        for (int64_t j = 0; kind == KEEL_TARGET_DENSE && j < d.last; j++) {
            const double p = keel_real_at(c->y_pred, real, first + j);
            add_one(a, keel_real_at(c->y_true, real, first + j),
                    isnan(a->threshold) ? p : (float)p >= (float)a->threshold, w, sum);
        }
        if (kind == KEEL_TARGET_DENSE) continue;
        const double t = kind == KEEL_TARGET_LABEL
                             ? keel_label_at(c->y_true, c->target->dtype, i)
                             : (double)largest(c->y_true, real, first, d.last);
        add_one(a, t, (double)largest(c->y_pred, real, first, d.last), w, sum);
    }
}

static double of_class(const double *count, double *valid)
{
    const double all = count[TRUE] + count[PREDICTED] - count[BOTH];
    if (!(all > 1e-9)) return 0;
    *valid += 1;
    return count[BOTH] / (all + EPSILON);
}

double keel_iou_result(const void *args, const double *sum, int64_t n)
{
    const keel_iou *a = args;
    double all = 0, valid = 0;
    for (int i = 0; i < a->target_class_ids.count; i++)
        all += of_class(sum + (int64_t)a->target_class_ids.at[i] * COUNTS, &valid);
    for (int64_t k = 0; a->target_class_ids.count == 0 && k < n / COUNTS; k++)
        all += of_class(sum + k * COUNTS, &valid);
    return all / (valid + EPSILON);
}
