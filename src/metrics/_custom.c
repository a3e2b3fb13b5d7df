/* Metrics that a program registers (keel_register_metric): each row leaves a state, and states are
 * put together in the order of the step's tree. */
#include "base/memory.h"
#include "base/registered.h"
#include "metrics/metric.h"

static keel_registry registry = { .what = "metric" };

const keel_type *keel_metric_registered(const char *name)
{
    return keel_registry_find(&registry, name);
}

static const keel_custom_metric *metric_of(const void *args)
{
    return keel_registered_of(args)->of;
}

static int64_t sums(const void *args, int64_t last)
{
    const keel_custom_metric *m = metric_of(args);
    return m->state ? m->state(keel_registered_config(args), m->type.user, last) : 2;
}

static keel_status check(const void *args, int64_t last)
{
    const int64_t n = sums(args, last);
    if (n >= 1 && n <= KEEL_METRIC_STATE_MAX) return KEEL_OK;
    return keel_fail(KEEL_EARG, "%s: a state of %lld numbers; possible are 1 to %d",
                     keel_registered_of(args)->name, (long long)n, (int)KEEL_METRIC_STATE_MAX);
}

static void add(const keel_loss_call *c, int real, double *sum)
{
    const keel_custom_metric *m = metric_of(c->args);
    const float *p = c->y_pred, *t = c->y_true;
    keel_dense d = { 0 };
    const keel_target_kind kind = m->labels ? KEEL_TARGET_LABEL : KEEL_TARGET_DENSE;
    if (keel_target_check(kind, "", c->prediction, c->target, &d) < 0) return;
    for (int64_t i = 0; i < c->rows * d.elements; i++) {
        keel_metric_element e = {
            .config = keel_registered_config(c->args),
            .user = m->type.user,
            .n = d.last,
            .y_pred = p + i * d.last,
            .y_true = m->labels ? NULL : t + i * d.last,
            .weight = keel_element_weight(c, real, d.elements, i / d.elements, i % d.elements),
        };
        if (e.weight == 0) continue;
        if (m->labels) {
            const double label = keel_label_at(c->y_true, c->target->dtype, i);
            if (!(label >= 0 && label < (double)d.last)) {
                keel_label_refuse(label, c->row + i / d.elements, d.last);
                return;
            }
            e.label = (int64_t)label;
        }
        m->add(&e, sum);
    }
}

static void merge(const void *args, double *into, const double *from, int64_t n)
{
    const keel_custom_metric *m = metric_of(args);
    m->merge(keel_registered_config(args), m->type.user, into, from, n);
}

static double result(const void *args, const double *sum, int64_t n)
{
    const keel_custom_metric *m = metric_of(args);
    if (!m->result) return keel_metric_mean(args, sum, n);
    return m->result(keel_registered_config(args), m->type.user, sum, n);
}

keel_status keel_register_metric(const keel_custom_metric *metric)
{
    const char *name = metric->type.name ? metric->type.name : "";
    const keel_type *same = keel_metric_find(name);
    keel_metric made = { .target = metric->labels ? KEEL_TARGET_LABEL : KEEL_TARGET_DENSE,
                         .sums = sums,
                         .check = check,
                         .add = add,
                         .merge = metric->merge ? merge : NULL,
                         .result = result };
    const keel_registration from = { .size = metric->size,
                                     .wanted = sizeof *metric,
                                     .of = metric,
                                     .type = &metric->type,
                                     .more = keel_metric_fields,
                                     .ours = keel_name_listed("Metric|Mean|Sum|MeanMetricWrapper",
                                                              name) ||
                                             (same && !same->registered) };
    KEEL_TRY(keel_registered_make(&registry, &from, &made.type));
    keel_status s = KEEL_OK;
    keel_metric *own = keel_calloc(1, sizeof *own);
    if (!own)
        s = KEEL_ENOMEM;
    else if (!metric->add)
        s = keel_fail(KEEL_EARG, "metric '%s': it has no `add`", metric->type.name);
    else if (metric->state && !metric->result)
        s = keel_fail(KEEL_EARG, "metric '%s': it has a `state` of its own, but no `result`",
                      metric->type.name);
    if (s >= 0) {
        *own = made;
        s = keel_registry_add(&registry, &own->type);
    }
    if (s >= 0) return s;
    keel_registered_free(&made.type);
    keel_free(own);
    return s;
}
