/* What batch_norm and masked_batch_norm have in common: their weights and the arguments of their
 * cases. */
#ifndef KEEL_OPS_BATCH_NORM_WEIGHTS_H
#define KEEL_OPS_BATCH_NORM_WEIGHTS_H
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"

/* Which weights there are, in Keras's order. */
typedef struct keel_batch_norm_weights {
    int gamma, beta, mean, variance;        /* gamma, beta: -1 where there is none */
    int stddev, renorm_mean, renorm_stddev; /* with renorm */
    int count;
} keel_batch_norm_weights;

static inline keel_batch_norm_weights keel_batch_norm_weights_of(const keel_batch_norm_args *a)
{
    const int n = a->scale + a->center;
    return (keel_batch_norm_weights){
        a->scale ? 0 : -1,
        a->center ? a->scale : -1,
        n,
        n + 1,
        n + 2,
        n + 3,
        n + 4,
        a->renorm.on ? n + 5 : n + 2,
    };
}

static inline int64_t keel_batch_norm_channels(const keel_node *n)
{
    return n->in[0].shape.dim[n->in[0].shape.rank - 1];
}

/* Each weight has a number for each channel. */
static inline keel_status keel_batch_norm_infer_weights(const keel_node *n)
{
    static const char *const names[] = { "gamma",           "beta",          "moving_mean",
                                         "moving_variance", "moving_stddev", "renorm_mean",
                                         "renorm_stddev" };
    const keel_batch_norm_weights at = keel_batch_norm_weights_of(n->args);
    const keel_shape c = KEEL_SHAPE(keel_batch_norm_channels(n));
    for (int i = 0; i < at.count; i++) {
        const int name = i == at.gamma ? 0 : i == at.beta ? 1 : i - at.mean + 2;
        KEEL_TRY(keel_infer_weight(n, i, names[name], &c));
    }
    return KEEL_OK;
}

static inline void keel_batch_norm_for_case(void *args, const char *text)
{
    keel_batch_norm_args *a = args;
    *a = (keel_batch_norm_args){ .epsilon = 1e-3, .momentum = 0.99 };
    a->center = !keel_case_has(text, "no_center");
    a->scale = !keel_case_has(text, "no_scale");
    a->frozen = keel_case_has(text, "frozen");
    keel_case_number(text, "epsilon", &a->epsilon);
    keel_case_number(text, "momentum", &a->momentum);
    a->relu = keel_case_has(text, "relu");
    keel_case_number(text, "max_value", &a->max_value);
    a->silu = keel_case_has(text, "silu");
    if (keel_case_has(text, "renorm")) /* one r and no d: they are constants to gradients */
        a->renorm = (keel_batch_renorm){ true, 0.9, 1.5, 1.5, 0 };
}

#endif
