/* The programs of losses and metrics; see losses/values.h. */
#include "base/memory.h"
#include "losses/totals.h"
#include "model/parts.h"

static keel_status check(const keel_model *p)
{
    const char *why = NULL;
    if (p->n_input != 2 || p->n_output != 1)
        why = "have two inputs, y_true and y_pred, and one output";
    else if (p->n_weight)
        why = "have no weights";
    else if (keel_model_reads_rows(p))
        why = "look nothing up while rows are read";
    return why ? keel_fail(KEEL_EARG, "the program of a loss must %s", why) : KEEL_OK;
}

keel_status keel_model_read_values(const keel_model *m, const keel_object *o, keel_model **out)
{
    const bool values = o->type == &keel_loss_values.type || o->type == &keel_loss_totals.type ||
                        o->type == &keel_metric_values_mean.type;
    keel_model *p = NULL;
    *out = NULL;
    if (!values) return KEEL_OK;
    KEEL_TRY(keel_model_begin(&p, "values", m->dtype, m->seed));
    keel_status s = keel_model_from_config(p, ((const keel_values_args *)o->args)->program);
    if (s >= 0) s = check(p);
    if (s < 0)
        keel_model_destroy(p);
    else
        *out = p;
    return s;
}

keel_status keel_model_emit_values(const keel_model *program, keel_graph *g, keel_value target,
                                   keel_value prediction, keel_value *out)
{
    const keel_value in[2] = { target, prediction }, mask[2] = { KEEL_MASK_NONE, KEEL_MASK_NONE };
    keel_value gone;
    keel_model_chances chances = { .next = KEEL_MODEL_LAYERS_MAX };
    if (!(chances.drew = keel_calloc(KEEL_MODEL_LAYERS_MAX, sizeof *chances.drew)))
        return KEEL_ENOMEM;
    const int carried = g->n_carried;
    keel_status s = keel_model_emit_into(program, g, in, mask, NULL, &chances, out, &gone);
    if (s >= 0 && g->n_carried > carried)
        s = keel_fail(KEEL_EUNSUP, "the program of a loss has stateful layers");
    keel_free(chances.drew);
    return s;
}
