/* The feeds of a fit. They share the memory of the input. */
#include "base/memory.h"
#include "data/stage.h"
#include "train/fit.h"

keel_status keel_fit_of_validation(keel_status s)
{
    return s < 0 ? keel_fail_within(s, "validation data") : s;
}

/* Both feeds share the memory of the input: that of the validation gets what it needs, or a quarter
 * if that is more. */
static keel_status share_memory(keel_fitting *f, const keel_dataset *d)
{
    const keel_dtype real = f->model->dtype;
    int64_t all, training, validation = 0;
    KEEL_TRY(keel_input_limit(&all, f->o.input_memory));
    if (!all) return KEEL_OK;
    KEEL_TRY(keel_session_least(&training, d, &f->o, true, real, &f->pairing));
    if (f->o.validation)
        KEEL_TRY(keel_fit_of_validation(keel_session_least(&validation, f->o.validation, &f->o,
                                                           false, real, &f->validation_pairing)));
    f->least[0] = training;
    f->least[1] = validation;
    const bool fits = training <= all && validation <= all - training;
    if (!fits)
        return keel_fail(
            KEEL_EARG,
            "the input may hold %lld bytes (input_memory), but needs at least %lld: "
            "%lld for two batches of training and what is read for them, %lld for "
            "validation",
            (long long)all,
            (long long)(training > INT64_MAX - validation ? INT64_MAX : training + validation),
            (long long)training, (long long)validation);
    if (validation && validation < all / 4 && all / 4 <= all - training) validation = all / 4;
    f->accounts.validation.limit = validation;
    f->accounts.training.limit = all - validation;
    return KEEL_OK;
}

keel_status keel_fit_open_feeds(keel_fitting *f, const keel_dataset *d)
{
    const keel_dataset *v = f->o.validation;
    const keel_dtype real = f->model->dtype;
    if (v)
        KEEL_TRY(
            keel_fit_of_validation(keel_pairing_make(&f->validation_pairing, f->model, v, true)));
    const keel_data_origin *both = v ? keel_stage_shared(d, v) : NULL;
    if (both)
        return keel_fit_of_validation(
            keel_fail(KEEL_EARG,
                      "%s gives the rows of the training, and can be read by one at a "
                      "time: make a second one for the validation",
                      both->name));
    KEEL_TRY(share_memory(f, d));
    KEEL_TRY(keel_session_feed(&f->feed, d, &f->o, true, real, &f->pairing, &f->accounts.training,
                               f->strategy));
    if (!(f->history.input = keel_calloc(1, sizeof *f->history.input))) return KEEL_ENOMEM;
    keel_input_begin(&f->input, d, f->feed, &f->o, f->strategy);
    if (!v) return KEEL_OK;
    return keel_fit_of_validation(keel_session_feed(&f->validation_feed, v, &f->o, false, real,
                                                    &f->validation_pairing, &f->accounts.validation,
                                                    f->strategy));
}
