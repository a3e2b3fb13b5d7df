/* Lower the learning rate once a value has not improved for some epochs. As in Keras, the rate of
 * the epoch is added to its logs before it is lowered. */
#include "train/callbacks/_monitor.h"
#include "train/callbacks/_rate.h"
#include <math.h>

typedef struct args_t {
    keel_monitor watch;
    double factor, min_lr;
    int64_t patience, verbose, cooldown;
} args_t;

typedef struct state_t {
    double best;
    bool has_best;
    int64_t mode;
    int64_t wait, cooldown;
} state_t;

static const keel_field fields[] = {
    KEEL_MONITOR_NAME(args_t),
    KEEL_FLOAT(args_t, factor, "0.1", 0, 1, "what the rate is multiplied by; below 1"),
    KEEL_INT(args_t, patience, "10", 0, 1e9, "epochs without improvement before the rate falls"),
    KEEL_VERBOSE(args_t),
    KEEL_MONITOR_MODE(args_t),
    KEEL_MONITOR_DELTA(args_t, "0.0001"),
    KEEL_INT(args_t, cooldown, "0", 0, 1e9, "epochs after a fall that do not count"),
    KEEL_FLOAT(args_t, min_lr, "0", 0, 1e300, "the rate does not fall below it"),
    { 0 },
};

static const keel_field state_fields[] = {
    KEEL_FLOAT(state_t, best, "null", 0, 0, "best value so far"),
    KEEL_BOOL(state_t, has_best, "false", "there is one, though it may be NaN"),
    KEEL_INT(state_t, mode, "0", 0, 0, "the direction"),
    KEEL_INT(state_t, wait, "0", 0, 0, "epochs since the best"),
    KEEL_INT(state_t, cooldown, "0", 0, 0, "epochs that still do not count"),
    { 0 },
};

static keel_status check(const void *args)
{
    const args_t *a = args;
    if (a->factor < 1) return KEEL_OK;
    return keel_fail(KEEL_EARG, "ReduceLROnPlateau: factor is %g; it must be below 1", a->factor);
}

static keel_status on_train_begin(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    const args_t *a = w->args.args;
    int mode;
    KEEL_TRY(keel_watching_reset(w));
    KEEL_TRY(keel_rate_is_a_number(at->model, "ReduceLROnPlateau"));
    KEEL_TRY(keel_logs_set(at->logs, "learning_rate", NAN));
    KEEL_TRY(keel_monitor_begin(&a->watch, at, &mode));
    ((state_t *)w->state)->mode = mode;
    return KEEL_OK;
}

static keel_status reduce(const keel_watching *w, const keel_moment *at, double old)
{
    const args_t *a = w->args.args;
    state_t *s = w->state;
    if (!(old > (double)(float)a->min_lr)) return KEEL_OK;
    const double rate = fmax(old * a->factor, a->min_lr);
    KEEL_TRY(keel_model_set_learning_rate(at->model, rate));
    s->cooldown = a->cooldown;
    s->wait = 0;
    if (a->verbose)
        keel_watch_say(at->watch, "epoch %lld: the learning rate falls to %g",
                       (long long)at->epoch + 1, rate);
    return KEEL_OK;
}

static keel_status on_epoch_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    const args_t *a = w->args.args;
    state_t *s = w->state;
    double value, rate;
    KEEL_TRY(keel_rate_now(at->model, &rate));
    KEEL_TRY(keel_logs_set(at->logs, "learning_rate", rate));
    if (!keel_monitor_has(&a->watch, at, &value)) return KEEL_OK;
    if (s->cooldown > 0) {
        s->cooldown--;
        s->wait = 0;
    }
    if (!s->has_best || keel_monitor_improves(&a->watch, (int)s->mode, value, s->best)) {
        s->has_best = true;
        s->best = value;
        s->wait = 0;
        return KEEL_OK;
    }
    if (s->cooldown > 0 || ++s->wait < a->patience) return KEEL_OK;
    return reduce(w, at, rate);
}

const keel_watcher keel_watcher_reduce_lr_on_plateau = {
    .type = {
        .name = "ReduceLROnPlateau",
        .module = "keras.callbacks",
        .help = "lower the learning rate when a value no longer improves",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .state = { .name = "ReduceLROnPlateau", .args_size = sizeof(state_t), .fields = state_fields },
    .on = { .on_train_begin = on_train_begin, .on_epoch_end = on_epoch_end },
    .check = check,
    .steers = true,
};
