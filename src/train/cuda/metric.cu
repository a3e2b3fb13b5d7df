/* The op of metrics that are means (train/score.h), for those that have a term in _terms.h; and of
 * those that count. */
#include "train/cuda/_confusion.h"
#include "train/cuda/_iou.h"
#include "train/cuda/_terms.h"
extern "C" {
#include "metrics/binary_accuracy.h"
#include "metrics/top_k.h"

extern const keel_metric keel_metric_accuracy;
extern const keel_metric keel_metric_binary_accuracy;
extern const keel_metric keel_metric_categorical_accuracy;
extern const keel_metric keel_metric_mean_absolute_error;
extern const keel_metric keel_metric_mean_squared_error;
extern const keel_metric keel_metric_root_mean_squared_error;
extern const keel_metric keel_metric_sparse_categorical_accuracy;
extern const keel_metric keel_metric_sparse_top_k_categorical_accuracy;
extern const keel_metric keel_metric_top_k_categorical_accuracy;
extern const keel_kernel keel_kernel_metric_cuda;
}

namespace
{
bool counts_top(const keel_metric *m)
{
    return m == &keel_metric_top_k_categorical_accuracy ||
           m == &keel_metric_sparse_top_k_categorical_accuracy;
}

/* NULL: it does not count. */
const keel_confusion *confusion_of(const keel_metric_args *a)
{
    return a->metric->add == keel_confusion_add ? static_cast<const keel_confusion *>(a->args)
                                                : nullptr;
}

score_run run_of(const keel_metric *m, const void *args)
{
    if (m->add || m->sums) return nullptr;
    if (m->loss) return score_of_loss(m->loss, args);
    if (m == &keel_metric_sparse_categorical_accuracy) return score_each<sparse_hit>;
    if (m == &keel_metric_categorical_accuracy) return score_each<categorical_hit>;
    if (m == &keel_metric_binary_accuracy) return score_each<mean_of<same_side>>;
    if (m == &keel_metric_accuracy) return score_each<mean_of<equal>>;
    if (m == &keel_metric_top_k_categorical_accuracy) return score_each<categorical_in_top>;
    if (m == &keel_metric_sparse_top_k_categorical_accuracy &&
        !static_cast<const keel_top_k *>(args)->from_sorted_ids)
        return score_each<sparse_in_top>;
    if (m == &keel_metric_mean_squared_error || m == &keel_metric_root_mean_squared_error)
        return score_each<mean_of<squared>>;
    if (m == &keel_metric_mean_absolute_error) return score_each<mean_of<difference>>;
    return nullptr;
}

void forward(const keel_call *c)
{
    const keel_metric_args *a = cuda_args<keel_metric_args>(c);
    const keel_metric *m = a->metric;
    score_frame f = score_frame_of(c, keel_metric_target(m, a->args), a->weighted);
    if (confusion_of(a)) {
        confusion_run(c, f, confusion_of(a));
        return;
    }
    if (m->add == keel_iou_add) {
        iou_run(c, f, static_cast<const keel_iou *>(a->args));
        return;
    }
    if (m->add == keel_fbeta_add) {
        fbeta_run(c, f, static_cast<const keel_fbeta *>(a->args));
        return;
    }
    if (m->loss) f.options = score_options_of(m->loss, a->args, f.last);
    if (m == &keel_metric_binary_accuracy)
        f.options.limit = (float)static_cast<const keel_binary_accuracy *>(a->args)->threshold;
    if (counts_top(m)) f.options.k = static_cast<const keel_top_k *>(a->args)->k;
    score_labels(c, f, m->loss ? score_left_out(m->loss, a->args) : NAN,
                 m->loss         ? SCORE_LABELS
                 : counts_top(m) ? SCORE_CUT_LABELS
                                 : SCORE_WHOLE_LABELS);
    if (m->loss) score_targets(c, f, m->loss);
    run_of(m, a->args)(c, f);
    score_rows(c, f, SCORE_METRIC);
}

keel_status prepare(keel_prepare *p)
{
    const keel_metric_args *a = static_cast<const keel_metric_args *>(p->node->args);
    if (const keel_confusion *counts = confusion_of(a)) {
        const int64_t numbers = p->rows * keel_row_count(&p->node->in[KEEL_SCORE_PREDICTION]);
        const bool fits = p->node->sums <= INT32_MAX && confusion_has_kernel(counts);
        return fits ? cuda_prepare(p, confusion_scratch(counts, numbers)) : KEEL_EUNSUP;
    }
    if (a->metric->add == keel_fbeta_add) return cuda_always(p);
    if (a->metric->add == keel_iou_add)
        return iou_prepare(p, static_cast<const keel_iou *>(a->args));
    if (!run_of(a->metric, a->args)) return KEEL_EUNSUP;
    return score_prepare(p, keel_metric_target(a->metric, a->args));
}
} // namespace

const keel_kernel keel_kernel_metric_cuda = {
    .op = &keel_metric_op, .name = "cuda", .prepare = prepare, .run = { forward }
};
