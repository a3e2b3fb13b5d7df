/* What losses share: the finder, the divisor, and how targets line up with predictions. */
#include "losses/loss.h"

const keel_type *keel_loss_find(const char *name)
{
    for (int i = 0; keel_losses[i]; i++)
        if (keel_type_is(&keel_losses[i]->type, name)) return &keel_losses[i]->type;
    return NULL;
}

static keel_reduction reduction_of(const keel_loss *l, const void *args)
{
    return (keel_reduction) * (const int *)((const char *)args + l->reduction_offset);
}

double keel_loss_divisor(const keel_loss *l, const void *args, const double sum[3])
{
    if (sum[2] == 0) return 0;
    switch (reduction_of(l, args)) {
    case KEEL_REDUCTION_SUM:
        return 1;
    case KEEL_MEAN_WITH_SAMPLE_WEIGHT:
        return sum[2];
    default:
        return sum[1];
    }
}

keel_status keel_loss_check_reduction(const char *loss, int reduction)
{
    if (reduction == KEEL_REDUCTION_NONE)
        return keel_fail(KEEL_EUNSUP,
                         "%s: reduction \"none\" leaves no single number to train on; use "
                         "\"sum_over_batch_size\" or \"sum\"",
                         loss);
    return KEEL_OK;
}

/* Does b equal a with one more dim of 1 at its end? */
static bool has_one_more(const keel_shape *a, const keel_shape *b)
{
    if (b->rank != a->rank + 1 || b->dim[a->rank] != 1) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

keel_status keel_loss_dense(const char *loss, const keel_spec *prediction, const keel_spec *target,
                            keel_dense *out)
{
    const keel_shape *p = &prediction->shape, *t = &target->shape;
    char text[2][96];
    if (!keel_dtype_is_real(prediction->dtype) || target->dtype != prediction->dtype)
        return keel_fail(KEEL_EARG,
                         "%s: targets are %s, predictions %s; both must be the same real type",
                         loss, keel_dtype_name(target->dtype), keel_dtype_name(prediction->dtype));
    const keel_shape *s = p;
    if (!keel_shape_equal(p, t)) {
        if (has_one_more(t, p) && t->rank > 0)
            s = t; /* Keras squeezes the prediction */
        else if (!has_one_more(t, p) && !has_one_more(p, t))
            s = NULL; /* Keras would broadcast some of these, which is never meant */
    }
    if (!s || s->rank < 1) {
        keel_shape_text(text[0], p);
        keel_shape_text(text[1], t);
        return keel_fail(KEEL_ESHAPE, "%s: one row of predictions is %s, of targets %s; %s", loss,
                         text[0], text[1],
                         s ? "they need at least one dim" : "they must have the same shape");
    }
    out->last = s->dim[s->rank - 1];
    if (out->last < 1 || keel_shape_count(s) < 1)
        return keel_fail(KEEL_ESHAPE, "%s: a row of predictions has no elements", loss);
    out->elements = keel_shape_count(s) / out->last;
    return KEEL_OK;
}

keel_status keel_loss_sparse(const char *loss, const keel_spec *prediction, const keel_spec *target,
                             keel_dense *out)
{
    const keel_shape *p = &prediction->shape, *t = &target->shape;
    keel_shape labels = *p;
    if (!keel_dtype_is_real(prediction->dtype))
        return keel_fail(KEEL_EARG, "%s: predictions are %s, not real numbers", loss,
                         keel_dtype_name(prediction->dtype));
    if (p->rank > 0) labels.rank--;
    if (p->rank < 1 || !(keel_shape_equal(&labels, t) || has_one_more(&labels, t))) {
        char text[3][96];
        keel_shape_text(text[0], p);
        keel_shape_text(text[1], t);
        keel_shape_text(text[2], &labels);
        return keel_fail(KEEL_ESHAPE,
                         "%s: one row of predictions is %s, of labels %s; labels must be %s (for "
                         "one-hot targets use the loss without \"sparse\")",
                         loss, text[0], text[1], text[2]);
    }
    out->last = p->dim[p->rank - 1];
    out->elements = keel_shape_count(&labels);
    if (out->last < 1 || out->elements < 1)
        return keel_fail(KEEL_ESHAPE, "%s: a row of predictions has no elements", loss);
    return KEEL_OK;
}

double keel_label_at(const void *y_true, keel_dtype dtype, int64_t i)
{
    switch (dtype) {
    case KEEL_FLOAT32:
        return (double)((const float *)y_true)[i];
    case KEEL_FLOAT64:
        return ((const double *)y_true)[i];
    case KEEL_UINT8:
    case KEEL_BOOL:
        return ((const uint8_t *)y_true)[i];
    case KEEL_INT32:
        return ((const int32_t *)y_true)[i];
    default:
        return (double)((const int64_t *)y_true)[i];
    }
}
