/* Stop once a value has not improved for some epochs. As in Keras, improving on the best value is
 * not enough if there is a baseline that it does not reach, and the weights of the best epoch come
 * back in on_train_end, after the moving averages of an optimizer have replaced the weights. */
#include "base/memory.h"
#include "train/callbacks/_monitor.h"
#include "train/callbacks/_weights.h"
#include <math.h>

typedef struct args_t {
    keel_monitor watch;
    int64_t patience, verbose, start_from_epoch;
    double baseline;
    bool restore_best_weights;
} args_t;

typedef struct state_t {
    double best;
    bool has_best;
    int64_t mode;
    int64_t wait, best_epoch, stopped_epoch;
    bool has_weights; /* `own` has the weights of best_epoch */
} state_t;

static const keel_field fields[] = {
    KEEL_MONITOR_NAME(args_t),
    KEEL_MONITOR_DELTA(args_t, "0"),
    KEEL_INT(args_t, patience, "0", 0, 1e9, "epochs without improvement before it stops"),
    KEEL_VERBOSE(args_t),
    KEEL_MONITOR_MODE(args_t),
    KEEL_FLOAT(args_t, baseline, "null", -INFINITY, INFINITY,
               "a value that must be improved on, too"),
    KEEL_BOOL(args_t, restore_best_weights, "false", "end with the weights of the best epoch"),
    KEEL_INT(args_t, start_from_epoch, "0", 0, 1e9, "epochs before this one do not count"),
    { 0 },
};

static const keel_field state_fields[] = {
    KEEL_FLOAT(state_t, best, "null", 0, 0, "best value so far"),
    KEEL_BOOL(state_t, has_best, "false", "there is one, though it may be NaN"),
    KEEL_INT(state_t, mode, "0", 0, 0, "the direction"),
    KEEL_INT(state_t, wait, "0", 0, 0, "epochs since the best"),
    KEEL_INT(state_t, best_epoch, "0", 0, 0, "its number"),
    KEEL_INT(state_t, stopped_epoch, "0", 0, 0, "0: it has not stopped"),
    KEEL_BOOL(state_t, has_weights, "false", "the weights of that epoch are kept"),
    { 0 },
};

static keel_status on_train_begin(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    const args_t *a = w->args.args;
    int mode;
    KEEL_TRY(keel_watching_reset(w));
    KEEL_TRY(keel_monitor_begin(&a->watch, at, &mode));
    ((state_t *)w->state)->mode = mode;
    return a->restore_best_weights ? keel_kept_weights_create(&w->own, at->model) : KEEL_OK;
}

static void keep(keel_watching *w, const keel_moment *at)
{
    state_t *s = w->state;
    keel_kept_weights_take(w->own, at->model);
    s->has_weights = true;
    s->best_epoch = at->epoch;
}

static keel_status on_epoch_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    const args_t *a = w->args.args;
    state_t *s = w->state;
    double value;
    if (!keel_monitor_has(&a->watch, at, &value) || at->epoch < a->start_from_epoch) return KEEL_OK;
    s->wait++;
    if (!s->has_best || keel_monitor_improves(&a->watch, (int)s->mode, value, s->best)) {
        s->has_best = true;
        s->best = value;
        s->best_epoch = at->epoch;
        if (a->restore_best_weights) keep(w, at);
        if (isnan(a->baseline) ||
            keel_monitor_improves(&a->watch, (int)s->mode, value, a->baseline))
            s->wait = 0;
        return KEEL_OK;
    }
    if (s->wait < a->patience || at->epoch == 0) return KEEL_OK;
    s->stopped_epoch = at->epoch;
    return KEEL_END;
}

static keel_status on_train_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    const args_t *a = w->args.args;
    const state_t *s = w->state;
    if (a->verbose && s->stopped_epoch > 0)
        keel_watch_say(at->watch,
                       "stopped early after epoch %lld: %s has not improved since epoch "
                       "%lld (%.6g)",
                       (long long)s->stopped_epoch + 1, a->watch.monitor,
                       (long long)s->best_epoch + 1, s->best);
    if (!s->has_weights) return KEEL_OK;
    keel_kept_weights_give(w->own, at->model);
    if (a->verbose)
        keel_watch_say(at->watch, "the weights are those of epoch %lld",
                       (long long)s->best_epoch + 1);
    return KEEL_OK;
}

static int64_t bytes(const void *args, const keel_model *m)
{
    return ((const args_t *)args)->restore_best_weights ? keel_kept_weights_bytes(m) : 0;
}

static int reads(const void *args)
{
    return ((const args_t *)args)->restore_best_weights ? KEEL_LIVE_WEIGHTS : 0;
}

static void release(keel_watching *w)
{
    keel_kept_weights_destroy(w->own);
}

/* Written if they are there; filled once load_state has said that they are. */
static keel_status tensor(keel_watching *w, int i, keel_callback_tensor *out)
{
    const state_t *s = w->state;
    return s->has_weights ? keel_kept_weights_tensor(w->own, i, out) : KEEL_END;
}

const keel_watcher keel_watcher_early_stopping = {
    .type = {
        .name = "EarlyStopping",
        .module = "keras.callbacks",
        .help = "stop when a value no longer improves",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .state = { .name = "EarlyStopping", .args_size = sizeof(state_t), .fields = state_fields },
    .on = {
        .on_train_begin = on_train_begin,
        .on_train_end = on_train_end,
        .on_epoch_end = on_epoch_end,
    },
    .bytes = bytes,
    .reads = reads,
    .release = release,
    .tensor = tensor,
    .steers = true,
};
