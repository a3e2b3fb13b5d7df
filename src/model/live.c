/* See live.h. */
#include "model/live.h"
#include "model/model.h"

void keel_model_pull(const keel_model *m, int what)
{
    keel_model_live *l = m->live;
    if (!l || !(what & ~l->pulled)) return;
    l->pull(l->trainer, what & ~l->pulled);
    l->pulled |= what;
}

void keel_model_change(keel_model *m, int what)
{
    keel_model_pull(m, what);
    if (what & KEEL_LIVE_WEIGHTS) m->changes++;
    if (m->live) m->live->changed |= what;
}

keel_status keel_model_idle(const keel_model *m, const char *call)
{
    if (!keel_model_outermost(m)->live) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "%s: the model '%s' is in use by the fit, evaluate or predict that has called "
                     "back; do this when it has returned (a callback may read and set weights and "
                     "the learning rate, and save)",
                     call, m->name);
}
