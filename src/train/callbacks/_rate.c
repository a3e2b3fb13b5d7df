/* See _rate.h. */
#include "train/callbacks/_rate.h"

keel_status keel_rate_is_a_number(const keel_model *m, const char *who)
{
    double rate;
    KEEL_TRY(keel_model_learning_rate(m, &rate));
    if (!keel_model_schedule(m)) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "%s sets the learning rate, which the schedule %s sets already; set a number "
                     "first",
                     who, keel_model_schedule(m));
}

keel_status keel_rate_now(const keel_model *m, double *out)
{
    double rate;
    KEEL_TRY(keel_model_learning_rate(m, &rate));
    *out = m->dtype == KEEL_FLOAT64 ? rate : (double)(float)rate;
    return KEEL_OK;
}
