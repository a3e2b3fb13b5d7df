/* Losses that a program registers (keel_register_loss): one function of the numbers of an element.
 * Weights, masks and reductions are those of every loss. */
#include "base/memory.h"
#include "base/registered.h"
#include "losses/loss.h"

static keel_registry registry = { .what = "loss" };

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(keel_registered_args),
    { 0 },
};

const keel_type *keel_loss_registered(const char *name)
{
    return keel_registry_find(&registry, name);
}

static keel_status check(const void *args, const keel_spec *prediction, const keel_spec *target,
                         int64_t *elements)
{
    (void)target;
    (void)elements;
    if (prediction->dtype == KEEL_FLOAT32) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP, "%s: a registered loss is of float32, the model of %s",
                     keel_registered_of(args)->name, keel_dtype_name(prediction->dtype));
}

static double of(keel_elements *e)
{
    const keel_registered *registered = keel_registered_of(e->args);
    const keel_custom_loss *loss = registered->of;
    const float *p = e->y_pred, *t = e->y_true;
    float *grad = e->grad;
    double sum = 0;
    if (e->weightless) return 0; /* its labels may be no classes */
    for (int64_t k = 0; k < e->count; k++) {
        keel_loss_element one = { .config = keel_registered_config(e->args),
                                  .user = registered->type.user,
                                  .n = e->last,
                                  .y_pred = p + k * e->last,
                                  .y_true = loss->labels ? NULL : t + k * e->last,
                                  .grad = grad ? grad + k * e->last : NULL };
        if (loss->labels) {
            const double label = keel_label_at(e->y_true, e->label_dtype, e->first + k);
            if (!(label >= 0 && label < (double)e->last)) {
                keel_label_refuse(label, e->row, e->last);
                return 0;
            }
            one.label = (int64_t)label;
        }
        sum += loss->value(&one);
        for (int64_t j = 0; grad && j < e->last; j++)
            one.grad[j] = (float)(e->scale * (double)one.grad[j]);
    }
    return sum;
}

keel_status keel_register_loss(const keel_custom_loss *loss)
{
    const char *name = loss->type.name ? loss->type.name : "";
    const keel_type *same = keel_loss_find(name);
    keel_loss made = { .reduction_offset = offsetof(keel_registered_args, reduction),
                       .target = loss->labels ? KEEL_TARGET_LABEL : KEEL_TARGET_DENSE,
                       .of = { of, NULL },
                       .check = check };
    const keel_registration from = { .size = loss->size,
                                     .wanted = sizeof *loss,
                                     .of = loss,
                                     .type = &loss->type,
                                     .more = fields,
                                     .ours = keel_name_listed("Loss|LossFunctionWrapper", name) ||
                                             (same && !same->registered) };
    KEEL_TRY(keel_registered_make(&registry, &from, &made.type));
    keel_status s = KEEL_OK;
    keel_loss *own = keel_calloc(1, sizeof *own);
    if (!own)
        s = KEEL_ENOMEM;
    else if (!loss->value)
        s = keel_fail(KEEL_EARG, "loss '%s': it has no `value`", loss->type.name);
    if (s >= 0) {
        *own = made;
        s = keel_registry_add(&registry, &own->type);
    }
    if (s >= 0) return s;
    keel_registered_free(&made.type);
    keel_free(own);
    return s;
}
