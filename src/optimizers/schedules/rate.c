/* Finding a schedule by Keras's class name, and reading one that is written as in Python. */
#include "optimizers/schedules/rate.h"

const keel_type *keel_rate_find(const char *name)
{
    for (int i = 0; keel_rates[i]; i++)
        if (keel_type_is(&keel_rates[i]->type, name)) return &keel_rates[i]->type;
    return NULL;
}

static const keel_type *at(int i)
{
    return keel_rates[i] ? &keel_rates[i]->type : NULL;
}

keel_status keel_rate_parse(keel_object *out, const char *text)
{
    const keel_call_kind kind = { "schedule", keel_rate_find, at };
    keel_object o = { 0 };
    KEEL_TRY(keel_object_parse(&o, text, &kind));
    const keel_rate *rate = (const keel_rate *)o.type;
    const keel_status s = rate->check ? rate->check(o.args) : KEEL_OK;
    if (s < 0)
        keel_object_free(&o);
    else
        *out = o;
    return s;
}
