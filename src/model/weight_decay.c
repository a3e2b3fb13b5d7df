/* Which weights the optimizer does not decay. Keras keeps this with the optimizer and not in files;
 * Keel keeps it with the weights, until another optimizer is chosen. */
#include "base/memory.h"
#include "model/parts.h"
#include "optimizers/pattern.h"
#include <string.h>

/* A name with a '/' is that of one weight; Keras looks for any other in the last part of names. */
static keel_status is_meant(const char *by, const char *name, bool *out)
{
    if (!strchr(by, '/'))
        return keel_pattern_finds("exclude_from_weight_decay", by, strrchr(name, '/') + 1, false,
                                  out);
    *out = !strcmp(by, name);
    return KEEL_OK;
}

keel_status keel_model_exclude_from_weight_decay(keel_model *m, const char *const *names, int count)
{
    keel_status s = KEEL_OK;
    bool *excluded = NULL;
    KEEL_TRY(keel_model_idle(m, "keel_model_exclude_from_weight_decay"));
    if (count < 0 || (count && !names))
        return keel_fail(KEEL_EARG, "%d names of weights without decay are not given", count);
    if (!(excluded = keel_calloc((size_t)m->n_weight, sizeof *excluded))) return KEEL_ENOMEM;
    for (int k = 0; k < count && s >= 0; k++) {
        bool any = false;
        for (int i = 0; i < m->n_weight && s >= 0; i++) {
            bool meant = false;
            s = is_meant(names[k], m->weight[i].info.name, &meant);
            excluded[i] = excluded[i] || meant;
            any = any || meant;
        }
        if (s >= 0 && !any)
            s = keel_fail(KEEL_EARG, "no weight has the name '%.60s', which is to have no decay",
                          names[k]);
    }
    for (int i = 0; i < m->n_weight && s >= 0; i++) m->weight[i].info.undecayed = excluded[i];
    keel_free(excluded);
    return s;
}

void keel_model_decay_all(keel_model *m)
{
    for (int i = 0; i < m->n_weight; i++) m->weight[i].info.undecayed = false;
}
