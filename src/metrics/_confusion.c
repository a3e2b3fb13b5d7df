/* See _confusion.h. Comparisons are in float32, as Keras's are, whatever the model's type is. */
#include "metrics/_confusion.h"
#include "base/plural.h"
#include <math.h>

int64_t keel_confusion_thresholds(const keel_confusion *a)
{
    if (a->thresholds.count > 0) return a->thresholds.count + (a->outside ? 2 : 0);
    return a->num_thresholds > 1 ? a->num_thresholds : 1;
}

bool keel_confusion_is_even(const keel_confusion *a)
{
    const int64_t n = keel_confusion_thresholds(a), first = a->outside;
    if (a->thresholds.count == 0) return n > 1;
    for (int i = 0; i < a->thresholds.count; i++) {
        const double even = (double)(first + i) / (double)(n - 1);
        if (fabs(a->thresholds.at[i] - even) > 1e-7 + 1e-5 * even) return false; /* as allclose */
    }
    return n > 2;
}

const keel_field keel_confusion_count_fields[] = { KEEL_CONFUSION_THRESHOLD,
                                                   KEEL_METRIC_FIELDS,
                                                   { 0 } };

keel_status keel_confusion_count(void *args)
{
    keel_confusion *a = args;
    a->top_k = a->class_id = KEEL_INT_NULL;
    return KEEL_OK;
}

keel_status keel_confusion_at_least(void *args)
{
    ((keel_confusion *)args)->top_k = KEEL_INT_NULL;
    return KEEL_OK;
}

int64_t keel_confusion_sums(const void *args, int64_t last)
{
    const keel_confusion *a = args;
    return (a->multi_label ? last : 1) * 2 * (keel_confusion_thresholds(a) + 1);
}

keel_status keel_confusion_check(const void *args, int64_t last)
{
    const keel_confusion *a = args;
    if (a->label_weights.count > 0 && a->label_weights.count != last)
        return keel_fail(KEEL_EARG, "%d label_weights: predictions have %lld label%s",
                         a->label_weights.count, (long long)last, keel_s(last));
    if (a->class_id == KEEL_INT_NULL || a->class_id < last) return KEEL_OK;
    return keel_fail(KEEL_EARG, "class_id %lld: predictions have %lld class%s",
                     (long long)a->class_id, (long long)last, last == 1 ? "" : "es");
}

/* How many thresholds are below the prediction. */
static int64_t below(const keel_confusion *a, bool even, float p)
{
    int64_t n = 0;
    if (even) {
        const float cut = p > 1 ? 1 : p > 0 ? p : 0;
        n = (int64_t)ceilf(cut * (float)(keel_confusion_thresholds(a) - 1));
        return n == 0 && a->outside ? 1 : n;
    }
    if (!a->outside && a->thresholds.count == 0)
        return p > (a->top_k == KEEL_INT_NULL ? 0.5F : -1e10F); /* Keras's NEG_INF */
    for (int i = 0; i < a->thresholds.count; i++) n += p > (float)a->thresholds.at[i];
    return a->outside ? n + (p > -1e-7F) + (p > 1 + 1e-7F) : n;
}

/* Is element j among the k largest of n? Among equals the first are. */
static bool is_top(const void *p, int real, int64_t begin, int64_t n, int64_t j, int64_t k)
{
    const float own = (float)keel_real_at(p, real, begin + j);
    int64_t before = 0;
    for (int64_t i = 0; i < n && before < k; i++) {
        const float other = (float)keel_real_at(p, real, begin + i);
        before += other > own || (other == own && i < j);
    }
    return before < k;
}

void keel_confusion_add(const keel_loss_call *c, int real, double *sum)
{
    const keel_confusion *a = c->args;
    const int64_t n = keel_confusion_thresholds(a);
    const bool even = keel_confusion_is_even(a);
    keel_dense d = { 0 };
    if (keel_target_check(KEEL_TARGET_DENSE, "", c->prediction, c->target, &d) < 0) return;
    for (int64_t i = 0; i < c->rows * d.elements; i++) {
        const double w = keel_element_weight(c, real, d.elements, i / d.elements, i % d.elements);
        for (int64_t j = 0; w != 0 && j < d.last; j++) {
            if (a->class_id != KEEL_INT_NULL && j != a->class_id) continue;
            float p = (float)keel_real_at(c->y_pred, real, i * d.last + j);
            if (a->from_logits) p = 1 / (1 + expf(-p));
            if (a->top_k != KEEL_INT_NULL &&
                !is_top(c->y_pred, real, i * d.last, d.last, j, a->top_k))
                p = -1e10f;
            const bool positive = keel_real_at(c->y_true, real, i * d.last + j) != 0;
            double *histogram = sum + (a->multi_label ? j * 2 * (n + 1) : 0);
            const bool own = a->label_weights.count > 0 && !a->multi_label;
            histogram[(positive ? 0 : n + 1) + below(a, even, p)] +=
                own ? w * a->label_weights.at[j] : w;
        }
    }
}

keel_counts keel_confusion_none(const double *sum, int64_t n)
{
    keel_counts c = { 0 };
    for (int64_t i = 0; i <= n; i++) {
        c.false_negatives += sum[i];
        c.true_negatives += sum[n + 1 + i];
    }
    return c;
}

void keel_confusion_down(keel_counts *c, const double *sum, int64_t n, int64_t i)
{
    c->true_positives += sum[i + 1];
    c->false_negatives -= sum[i + 1];
    c->false_positives += sum[n + 1 + i + 1];
    c->true_negatives -= sum[n + 1 + i + 1];
}

int64_t keel_confusion_values(const void *args, int64_t n)
{
    (void)n;
    const keel_confusion *a = args;
    return a->thresholds.count > 1 ? a->thresholds.count : 1;
}

keel_counts keel_confusion_above(const void *args, const double *sum, int64_t i)
{
    const keel_confusion *a = args;
    const int64_t n = keel_confusion_thresholds(a);
    keel_counts c = keel_confusion_none(sum, n);
    int64_t lower = 0; /* the histogram is by thresholds in ascending order */
    for (int k = 0; k < a->thresholds.count; k++)
        lower += a->thresholds.at[k] < a->thresholds.at[i];
    for (int64_t k = n - 1; k >= lower; k--) keel_confusion_down(&c, sum, n, k);
    return c;
}

double keel_confusion_best(const void *args, const double *sum,
                           double (*constrained)(const keel_counts *c),
                           double (*dependent)(const keel_counts *c))
{
    const keel_confusion *a = args;
    const int64_t n = keel_confusion_thresholds(a);
    keel_counts c = keel_confusion_none(sum, n);
    double best = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        keel_confusion_down(&c, sum, n, i);
        if (constrained(&c) >= a->least && dependent(&c) > best) best = dependent(&c);
    }
    return best;
}
