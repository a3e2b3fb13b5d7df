/* Finding a schedule by Keras's class name. */
#include "optimizers/schedules/rate.h"

const keel_type *keel_rate_find(const char *name)
{
    for (int i = 0; keel_rates[i]; i++)
        if (keel_type_is(&keel_rates[i]->type, name)) return &keel_rates[i]->type;
    return NULL;
}
