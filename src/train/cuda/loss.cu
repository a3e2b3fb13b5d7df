/* The op of losses (train/score.h), for those that have a term in _terms.h. */
#include "train/cuda/_terms.h"
extern "C" {
#include "losses/crossentropy.h"
#include "losses/huber.h"
#include "losses/values.h"

extern const keel_loss keel_loss_binary_focal_crossentropy;
extern const keel_loss keel_loss_categorical_focal_crossentropy;
extern const keel_loss keel_loss_categorical_generalized_cross_entropy;
extern const keel_loss keel_loss_categorical_hinge;
extern const keel_loss keel_loss_cosine_similarity;
extern const keel_loss keel_loss_hinge;
extern const keel_loss keel_loss_huber;
extern const keel_loss keel_loss_kl_divergence;
extern const keel_loss keel_loss_log_cosh;
extern const keel_loss keel_loss_mean_absolute_error;
extern const keel_loss keel_loss_mean_absolute_percentage_error;
extern const keel_loss keel_loss_mean_squared_error;
extern const keel_loss keel_loss_mean_squared_logarithmic_error;
extern const keel_loss keel_loss_poisson;
extern const keel_loss keel_loss_squared_hinge;
extern const keel_kernel keel_kernel_loss_cuda;
}

/* Many alphas lie with the host. */
static score_run score_of_focal(const keel_loss *l, const void *args)
{
    if (l == &keel_loss_binary_focal_crossentropy)
        return static_cast<const keel_binary_focal *>(args)->from_logits
                   ? score_each<mean_of<of_binary_focal<binary_of_logits, true>>>
                   : score_each<mean_of<of_binary_focal<binary_of_probabilities, false>>>;
    if (l != &keel_loss_categorical_focal_crossentropy) return nullptr;
    const keel_categorical_focal *a = static_cast<const keel_categorical_focal *>(args);
    if (a->alpha.count > 1) return nullptr;
    return a->from_logits ? score_each<of_categorical_focal<true>>
                          : score_each<of_categorical_focal<false>>;
}

score_run score_of_loss(const keel_loss *l, const void *args)
{
    const bool logits = l->logits_of && keel_loss_has_logits(l, args);
    if (l->whole) return nullptr;
    if (l == &keel_loss_sparse_categorical_crossentropy)
        return logits ? score_each<sparse_of_logits> : score_each<sparse_of_probabilities>;
    if (l == &keel_loss_categorical_crossentropy)
        return logits ? score_each<categorical_of_logits>
                      : score_each<categorical_of_probabilities>;
    if (l == &keel_loss_binary_crossentropy)
        return logits ? score_each<mean_of<binary_of_logits>>
                      : score_each<mean_of<binary_of_probabilities>>;
    if (l == &keel_loss_values) return score_each<mean_of<given>>;
    if (l == &keel_loss_mean_squared_error) return score_each<mean_of<squared>>;
    if (l == &keel_loss_mean_absolute_error) return score_each<mean_of<difference>>;
    if (l == &keel_loss_mean_absolute_percentage_error) return score_each<mean_of<percentage>>;
    if (l == &keel_loss_mean_squared_logarithmic_error)
        return score_each<mean_of<squared_logarithm>>;
    if (l == &keel_loss_huber) return score_each<mean_of<of_huber>>;
    if (l == &keel_loss_log_cosh) return score_each<mean_of<of_log_cosh>>;
    if (l == &keel_loss_poisson) return score_each<mean_of<of_poisson>>;
    if (l == &keel_loss_hinge) return score_each<mean_of<of_hinge>>;
    if (l == &keel_loss_squared_hinge) return score_each<mean_of<of_squared_hinge>>;
    if (l == &keel_loss_kl_divergence) return score_each<of_kl_divergence>;
    if (l == &keel_loss_categorical_hinge) return score_each<of_categorical_hinge>;
    if (l == &keel_loss_cosine_similarity) return score_each<of_cosine>;
    if (l == &keel_loss_categorical_generalized_cross_entropy)
        return score_each<of_generalized_crossentropy>;
    return score_of_focal(l, args);
}

static void smooth(score_options *o, double smoothing, double classes)
{
    o->keep = (float)(1 - smoothing);
    o->share = (float)(smoothing / classes);
}

score_options score_options_of(const keel_loss *l, const void *args, int64_t last)
{
    score_options o = {};
    const bool binary = l == &keel_loss_binary_crossentropy;
    o.keep = 1;
    if (binary || l == &keel_loss_categorical_crossentropy)
        smooth(&o, static_cast<const keel_crossentropy *>(args)->label_smoothing,
               binary ? 2 : (double)last);
    if (l == &keel_loss_binary_focal_crossentropy) {
        const keel_binary_focal *a = static_cast<const keel_binary_focal *>(args);
        smooth(&o, a->label_smoothing, 2);
        o.alpha = (float)a->alpha;
        o.gamma = (float)a->gamma;
        o.balanced = a->apply_class_balancing;
    }
    if (l == &keel_loss_categorical_focal_crossentropy) {
        const keel_categorical_focal *a = static_cast<const keel_categorical_focal *>(args);
        smooth(&o, a->label_smoothing, (double)last);
        o.alpha = (float)a->alpha.at[0];
        o.gamma = (float)a->gamma;
    }
    if (l == &keel_loss_categorical_generalized_cross_entropy)
        o.limit = (float)static_cast<const keel_generalized_crossentropy *>(args)->q;
    if (l == &keel_loss_huber) o.limit = (float)static_cast<const keel_huber *>(args)->delta;
    return o;
}

void score_targets(const keel_call *c, const score_frame &f, const keel_loss *l)
{
    if (l == &keel_loss_hinge || l == &keel_loss_squared_hinge) score_sides(c, f);
}

double score_left_out(const keel_loss *l, const void *args)
{
    if (l != &keel_loss_sparse_categorical_crossentropy) return NAN;
    return (double)static_cast<const keel_sparse_crossentropy *>(args)->ignore_class;
}

namespace
{
score_frame frame_of(const keel_call *c)
{
    const keel_loss_args *a = cuda_args<keel_loss_args>(c);
    score_frame f = score_frame_of(c, a->loss->target, true);
    f.options = score_options_of(a->loss, a->args, f.last);
    return f;
}

score_seed seed_of(const keel_call *c)
{
    const keel_loss_args *a = cuda_args<keel_loss_args>(c);
    score_seed s = { c->facts, a->index, a->weight, a->meets ? c->merged : nullptr, 1 };
    if (!a->meets) return s;
    switch (keel_loss_reduction(a->loss, a->args)) {
    case KEEL_REDUCTION_SUM:
    case KEEL_REDUCTION_NONE:
        s.divisor = -1;
        break;
    case KEEL_MEAN_WITH_SAMPLE_WEIGHT:
        s.divisor = 2;
        break;
    default:
        break;
    }
    return s;
}

void run(const keel_call *c)
{
    const keel_loss_args *a = cuda_args<keel_loss_args>(c);
    score_frame f = frame_of(c);
    float *grad = c->in_grad ? cuda_in_grad<float>(c, KEEL_SCORE_PREDICTION) : nullptr;
    const bool adds = grad && c->in_adds[KEEL_SCORE_PREDICTION];
    f.grad = adds ? score_apart(f) : grad;
    if (grad) f.seed = seed_of(c);
    score_labels(c, f, score_left_out(a->loss, a->args), SCORE_LABELS);
    score_targets(c, f, a->loss);
    score_of_loss(a->loss, a->args)(c, f);
    if (adds) score_add(c, f, grad);
    score_rows(c, f, SCORE_LOSS);
}

/* What rows leave before backward: how many elements count, and their weights. */
void partial(const keel_call *c)
{
    const keel_loss_args *a = cuda_args<keel_loss_args>(c);
    const score_frame f = frame_of(c);
    score_labels(c, f, score_left_out(a->loss, a->args), SCORE_LABELS);
    score_rows(c, f, SCORE_TERMS);
}

keel_status prepare(keel_prepare *p)
{
    const keel_loss_args *a = static_cast<const keel_loss_args *>(p->node->args);
    if (!score_of_loss(a->loss, a->args)) return KEEL_EUNSUP;
    return score_prepare(p, a->loss->target);
}
} // namespace

const keel_kernel keel_kernel_loss_cuda = { .op = &keel_loss_op,
                                            .name = "cuda",
                                            .prepare = prepare,
                                            .run = { run, run, nullptr, nullptr, partial } };
