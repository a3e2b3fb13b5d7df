/* The part that losses share: look-up by name, the divisor, and the match of targets with
 * predictions. */
#include "losses/loss.h"
#include "losses/totals.h"
#include <string.h>

const keel_type *keel_loss_find(const char *name)
{
    for (int i = 0; keel_losses[i]; i++)
        if (keel_type_is(&keel_losses[i]->type, name)) return &keel_losses[i]->type;
    if (!strcmp(name, KEEL_VALUES)) return &keel_loss_values.type;
    if (!strcmp(name, KEEL_TOTALS)) return &keel_loss_totals.type;
    return keel_loss_registered(name);
}

const keel_field keel_loss_plain_fields[] = {
    KEEL_LOSS_FIELDS(keel_loss_plain),
    { 0 },
};

keel_reduction keel_loss_reduction(const keel_loss *l, const void *args)
{
    return (keel_reduction) * (const int *)((const char *)args + l->reduction_offset);
}

bool keel_loss_has_logits(const keel_loss *l, const void *args)
{
    return *(const bool *)((const char *)args + l->from_logits_offset);
}

void keel_loss_use_logits(const keel_loss *l, void *args)
{
    *(bool *)((char *)args + l->from_logits_offset) = true;
}

double keel_loss_divisor(const keel_loss *l, const void *args, const double sum[3])
{
    if (sum[2] == 0) return 0;
    switch (keel_loss_reduction(l, args)) {
    case KEEL_REDUCTION_SUM:
    case KEEL_REDUCTION_NONE: /* the gradient of a list of losses is that of their sum */
        return 1;
    case KEEL_MEAN_WITH_SAMPLE_WEIGHT:
        return sum[2];
    default:
        return sum[1];
    }
}

double keel_loss_logged_divisor(const keel_loss *l, const void *args, const double sum[3])
{
    if (keel_loss_is_reduced(l, args)) return keel_loss_divisor(l, args, sum);
    return sum[2] == 0 ? 0 : sum[1];
}

bool keel_loss_is_reduced(const keel_loss *l, const void *args)
{
    return keel_loss_reduction(l, args) != KEEL_REDUCTION_NONE;
}

bool keel_loss_counts_rows(const keel_loss *l, const void *args)
{
    return !(l->leaves_out && l->leaves_out(args)) &&
           keel_loss_reduction(l, args) != KEEL_MEAN_WITH_SAMPLE_WEIGHT;
}

keel_status keel_loss_check(const keel_loss *l, const void *args, const keel_spec *prediction,
                            const keel_spec *target, int64_t *elements)
{
    keel_dense d = { 0 };
    KEEL_TRY(keel_target_check(l->target, l->type.name, prediction, target, &d));
    *elements = d.elements;
    return l->check ? l->check(args, prediction, target, elements) : KEEL_OK;
}

/* True if b is a with one more dim, of 1, at its end. */
static bool has_one_more(const keel_shape *a, const keel_shape *b)
{
    if (b->rank != a->rank + 1 || b->dim[a->rank] != 1) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

static keel_status check_dense(const char *loss, const keel_spec *prediction,
                               const keel_spec *target, keel_dense *out)
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
            s = t; /* as Keras, which squeezes the prediction */
        else if (!has_one_more(t, p) && !has_one_more(p, t))
            s = NULL; /* Keras would broadcast some of these, which nobody intends */
    }
    if (!s || s->rank < 1) {
        keel_shape_text(text[0], p);
        keel_shape_text(text[1], t);
        return keel_fail(KEEL_ESHAPE, "%s: a row of predictions has shape %s, of targets %s; %s",
                         loss, text[0], text[1],
                         s ? "they need at least one dim, as a last layer Reshape((1,)) gives"
                           : "they must have the same shape");
    }
    out->last = s->dim[s->rank - 1];
    if (out->last < 1 || keel_shape_count(s) < 1)
        return keel_fail(KEEL_ESHAPE, "%s: a row of predictions has no elements", loss);
    out->elements = keel_shape_count(s) / out->last;
    return KEEL_OK;
}

static keel_status check_labels(const char *loss, const keel_spec *prediction,
                                const keel_spec *target, keel_dense *out)
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
        return keel_fail(
            KEEL_ESHAPE,
            "%s: a row of predictions has shape %s, of labels %s; labels must have %s (for "
            "one-hot targets use the loss without \"sparse\")",
            loss, text[0], text[1], text[2]);
    }
    out->last = p->dim[p->rank - 1];
    out->elements = keel_shape_count(&labels);
    if (out->last < 1 || out->elements < 1)
        return keel_fail(KEEL_ESHAPE, "%s: a row of predictions has no elements", loss);
    return KEEL_OK;
}

static keel_status check_symbols(const char *loss, const keel_spec *prediction,
                                 const keel_spec *target, keel_dense *out)
{
    const keel_shape *p = &prediction->shape, *t = &target->shape;
    if (!keel_dtype_is_real(prediction->dtype) || p->rank != 2 || t->rank != 1 ||
        keel_shape_count(p) < 1) {
        char text[2][96];
        keel_shape_text(text[0], p);
        keel_shape_text(text[1], t);
        return keel_fail(KEEL_ESHAPE,
                         "%s: a row of predictions has shape %s, of targets %s; predictions must "
                         "be (steps, classes), targets (symbols)",
                         loss, text[0], text[1]);
    }
    *out = (keel_dense){ .elements = 1, .last = keel_shape_count(p) };
    return KEEL_OK;
}

keel_status keel_target_check(keel_target_kind kind, const char *name, const keel_spec *prediction,
                              const keel_spec *target, keel_dense *out)
{
    if (kind == KEEL_TARGET_LABEL) return check_labels(name, prediction, target, out);
    if (kind == KEEL_TARGET_SYMBOLS) return check_symbols(name, prediction, target, out);
    KEEL_TRY(check_dense(name, prediction, target, out));
    if (kind == KEEL_TARGET_ONE_HOT && !keel_shape_equal(&prediction->shape, &target->shape)) {
        char text[2][96];
        keel_shape_text(text[0], &prediction->shape);
        keel_shape_text(text[1], &target->shape);
        return keel_fail(
            KEEL_ESHAPE,
            "%s: a row of predictions has shape %s, of targets %s; targets must be one-hot. "
            "For class numbers use Sparse%s",
            name, text[0], text[1], name);
    }
    return KEEL_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The number in x that applies to element e of row i. A row of x has `n` numbers (0: one), shared
 * evenly by the `elements` elements of the row. Without x it is 1. */
static double at_element(const void *x, int real, int64_t n, int64_t elements, int64_t i, int64_t e)
{
    if (!x) return 1;
    if (n < 1) n = 1;
    const int64_t at = i * n + e / (elements / n);
    return real ? ((const double *)x)[at] : (double)((const float *)x)[at];
}

bool keel_element_counts(const keel_loss_call *c, int real, int64_t elements, int64_t i, int64_t e)
{
    return at_element(c->mask, real, c->masks, elements, i, e) != 0;
}

double keel_element_weight(const keel_loss_call *c, int real, int64_t elements, int64_t i,
                           int64_t e)
{
    if (!keel_element_counts(c, real, elements, i, e)) return 0;
    return at_element(c->weight, real, c->weights, elements, i, e);
}

void keel_elements_of_rows(keel_elements_run run, keel_target_kind kind, const keel_loss_call *c,
                           int real)
{
    const size_t size = real ? sizeof(double) : sizeof(float);
    const bool labels = keel_target_is_labels(kind);
    const bool apart = c->mask || c->weights > 1; /* elements of a row may differ in weight */
    keel_dense d = { 0 };
    if (keel_target_check(kind, "", c->prediction, c->target, &d) < 0) return;
    const int64_t n = d.elements * d.last;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t from = 0, to; from < d.elements; from = to) {
            const double w = keel_element_weight(c, real, d.elements, i, from);
            const bool in = keel_element_counts(c, real, d.elements, i, from);
            to = apart ? from + 1 : d.elements;
            while (to < d.elements && keel_element_weight(c, real, d.elements, i, to) == w &&
                   keel_element_counts(c, real, d.elements, i, to) == in)
                to++;
            const size_t at = (size_t)(i * n + from * d.last) * size;
            const int64_t count = to - from;
            keel_elements e = { .args = c->args,
                                .count = count,
                                .last = d.last,
                                .y_pred = (const char *)c->y_pred + at,
                                .y_true = labels ? c->y_true : (const char *)c->y_true + at,
                                .label_dtype = c->target->dtype,
                                .prediction = c->prediction,
                                .target = c->target,
                                .first = i * d.elements + from,
                                .row = c->row + i,
                                .scratch = c->scratch,
                                .weightless = w == 0,
                                .scale = c->seed * w,
                                .grad = c->grad ? (char *)c->grad + at : NULL };
            /* Elements of weight 0 are skipped, since they may have any value, even NaN. Only
             * labels equal to ignore_class are counted. */
            if (w == 0 && e.grad) memset(e.grad, 0, (size_t)(count * d.last) * size);
            if (w == 0) e.grad = NULL;
            if (w != 0)
                c->sum[0] += w * run(&e);
            else if (in && labels)
                run(&e);
            if (!in) continue;
            c->sum[1] += (double)(count - e.left_out);
            c->sum[2] += w * (double)(count - e.left_out);
        }
}

void keel_loss_run(const keel_loss *l, int real, const keel_loss_call *c)
{
    keel_elements_of_rows(l->of[real], l->target, c, real);
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

void keel_label_refuse(double label, int64_t row, int64_t classes)
{
    keel_call_failed(NULL, keel_fail(KEEL_EDATA,
                                     "label %.9g at row %lld of the step is not in 0..%lld, the "
                                     "classes of the prediction",
                                     label, (long long)row, (long long)classes - 1));
}
