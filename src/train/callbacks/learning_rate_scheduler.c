/* Set the learning rate at the begin of each epoch: by a function of the caller
 * (keel_callback_create_schedule), or by one of Keras's schedules, whose step is then the epoch. */
#include "optimizers/schedules/rate.h"
#include "train/callbacks/_monitor.h"
#include "train/callbacks/_rate.h"
#include <math.h>

typedef struct args_t {
    char *schedule;
    int64_t verbose;
    keel_object rate; /* made of the text */
    double (*function)(void *context, int64_t epoch, double rate);
    void *context;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, schedule, "null",
                "a schedule whose steps are epochs: ExponentialDecay(0.1, 10, 0.5)"),
    KEEL_VERBOSE(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    return a->schedule ? keel_rate_parse(&a->rate, a->schedule) : KEEL_OK;
}

static void release(void *args)
{
    keel_object_free(&((args_t *)args)->rate);
}

static keel_status on_train_begin(void *context, const keel_moment *at)
{
    const keel_watching *w = context;
    const args_t *a = w->args.args;
    if (!a->function && !a->schedule)
        return keel_fail(KEEL_EARG, "give a schedule, as schedule=ExponentialDecay(0.1, 10, 0.5)");
    KEEL_TRY(keel_rate_is_a_number(at->model, "LearningRateScheduler"));
    return keel_logs_set(at->logs, "learning_rate", NAN);
}

static keel_status on_epoch_begin(void *context, const keel_moment *at)
{
    const keel_watching *w = context;
    const args_t *a = w->args.args;
    double rate;
    KEEL_TRY(keel_rate_now(at->model, &rate));
    if (a->function)
        rate = a->function(a->context, at->epoch, rate);
    else
        rate = ((const keel_rate *)a->rate.type)->at(a->rate.args, at->epoch);
    if (a->verbose)
        keel_watch_say(at->watch, "epoch %lld: the learning rate is %g", (long long)at->epoch + 1,
                       rate);
    return keel_model_set_learning_rate(at->model, rate);
}

static keel_status on_epoch_end(void *context, const keel_moment *at)
{
    double rate;
    (void)context;
    KEEL_TRY(keel_rate_now(at->model, &rate));
    return keel_logs_set(at->logs, "learning_rate", rate);
}

keel_status keel_callback_create_schedule(keel_callback **out,
                                          double (*schedule)(void *context, int64_t epoch,
                                                             double rate),
                                          void *context)
{
    keel_callback *c;
    KEEL_TRY(keel_callback_create(&c, "LearningRateScheduler", NULL));
    args_t *a = ((keel_watching *)c)->args.args;
    a->function = schedule;
    a->context = context;
    *out = c;
    return KEEL_OK;
}

const keel_watcher keel_watcher_learning_rate_scheduler = {
    .type = {
        .name = "LearningRateScheduler",
        .module = "keras.callbacks",
        .help = "set the learning rate at the begin of each epoch",
        .args_size = sizeof(args_t),
        .fields = fields,
        .ready = ready,
        .release = release,
    },
    .on = {
        .on_train_begin = on_train_begin,
        .on_epoch_begin = on_epoch_begin,
        .on_epoch_end = on_epoch_end,
    },
    .steers = true,
};
