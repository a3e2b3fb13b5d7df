/* The part that metrics share: look-up by name, the meaning of "accuracy", and Keras's mean of the
 * values of rows. */
#include "metrics/metric.h"
#include "losses/along.h"
#include "losses/values.h"
#include "tensor/shape.h"
#include <string.h>
#include <strings.h>

const keel_type *keel_metric_find(const char *name)
{
    for (int i = 0; keel_metrics[i]; i++)
        if (keel_type_is(&keel_metrics[i]->type, name)) return &keel_metrics[i]->type;
    if (!strcmp(name, KEEL_VALUES)) return &keel_metric_values_mean.type;
    return keel_metric_registered(name);
}

const char *keel_metric_resolve(const char *name, const char *loss, const keel_spec *prediction,
                                const keel_spec *target)
{
    static const char *const accuracy[] = { "binary_accuracy", "sparse_categorical_accuracy",
                                            "categorical_accuracy" };
    static const char *const entropy[] = { "binary_crossentropy", "sparse_categorical_crossentropy",
                                           "categorical_crossentropy" };
    const char *const *kind = NULL;
    if (!strcasecmp(name, "accuracy") || !strcasecmp(name, "acc")) kind = accuracy;
    if (!strcasecmp(name, "crossentropy") || !strcasecmp(name, "ce")) kind = entropy;
    if (!kind) return name;
    (void)loss; /* Keras decides by the shapes alone */
    const keel_shape *p = &prediction->shape, *t = &target->shape;
    const int64_t p_last = p->rank ? p->dim[p->rank - 1] : 1;
    const int64_t t_last = t->rank ? t->dim[t->rank - 1] : 1;
    if (p_last == 1) return kind[0];
    return kind[t->rank < p->rank || (t_last == 1 && p_last > 1) ? 1 : 2];
}

const keel_field keel_metric_fields[] = {
    KEEL_METRIC_FIELDS,
    { 0 },
};

double keel_metric_mean(const void *args, const double *sum, int64_t n)
{
    (void)args;
    (void)n;
    return sum[1] != 0 ? sum[0] / sum[1] : 0;
}

keel_target_kind keel_metric_target(const keel_metric *m, const void *args)
{
    if (m->kind) return m->kind(args);
    return m->loss ? m->loss->target : m->target;
}

keel_status keel_metric_check(const keel_metric *m, const void *args, const keel_spec *prediction,
                              const keel_spec *target)
{
    keel_dense d = { 0 };
    char shape[96];
    KEEL_TRY(keel_target_check(keel_metric_target(m, args), m->type.name, prediction, target, &d));
    if (m->one_dim && prediction->shape.rank != 1) {
        keel_shape_text(shape, &prediction->shape);
        return keel_fail(KEEL_ESHAPE, "%s: one row of predictions is %s; it must have one dim",
                         m->type.name, shape);
    }
    if (m->type.registered && prediction->dtype != KEEL_FLOAT32)
        return keel_fail(KEEL_EUNSUP, "%s: a registered metric is of float32, the model of %s",
                         m->type.name, keel_dtype_name(prediction->dtype));
    if (m->loss && m->loss->check) KEEL_TRY(m->loss->check(args, prediction, target, &d.elements));
    return m->check ? m->check(args, d.last) : KEEL_OK;
}

keel_status keel_metric_along(keel_along *out, const keel_metric *m, const void *args,
                              const keel_spec *prediction, const keel_spec *target)
{
    const keel_loss none = { .type = m->type };
    if (!m->axis_offset) return keel_along_loss(out, &none, args, prediction, target);
    if (m->loss) return keel_along_loss(out, m->loss, args, prediction, target);
    const int64_t axis = *(const int64_t *)((const char *)args + m->axis_offset);
    return keel_along_find(out, axis, keel_metric_target(m, args), m->type.name, prediction,
                           target);
}

int64_t keel_metric_sums(const keel_metric *m, const void *args, const keel_spec *prediction,
                         const keel_spec *target)
{
    keel_dense d = { 0 };
    if (!m->sums || keel_target_check(keel_metric_target(m, args), "", prediction, target, &d) < 0)
        return 2;
    return m->sums(args, d.last);
}

/* A mean over the elements of a row, then over rows. */
void keel_metric_update(const keel_metric *m, int real, const keel_loss_call *c, double *sum)
{
    const keel_loss *l = m->loss;
    const keel_target_kind kind = keel_metric_target(m, c->args);
    double sums[3] = { 0 };
    keel_loss_call of = *c;
    keel_dense d = { 0 };
    if (m->add) {
        m->add(c, real, sum);
        return;
    }
    of.grad = NULL;
    of.seed = 1;
    of.sum = sums;
    if (keel_target_check(kind, "", c->prediction, c->target, &d) < 0) return;
    keel_elements_of_rows(l ? l->of[real] : m->of[real], kind, &of, real);
    sum[0] += sums[0] / (double)d.elements;
    /* Keras leaves elements out of the count (ignore_class) by their weights, if there are any. */
    sum[1] += c->weight || c->mask ? sums[2] / (double)d.elements : (double)c->rows;
}
