/* Stop at a loss that is not finite, where fit would fail. The weights are as before that step, and
 * the logs of the epoch are without it (Keras makes the step, and logs nan). */
#include "train/callbacks/watcher.h"
#include <math.h>

typedef struct args_t {
    bool raise_error;
} args_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, raise_error, "false", "fail instead of stopping"),
    { 0 },
};

static keel_status on_train_begin(void *context, const keel_moment *at)
{
    const keel_watching *w = context;
    at->watch->stop_at_nan = !((const args_t *)w->args.args)->raise_error;
    return KEEL_OK;
}

static keel_status on_train_batch_end(void *context, const keel_moment *at)
{
    const keel_watching *w = context;
    const double loss = keel_logs_get(at->logs, "loss");
    if (isfinite(loss)) return KEEL_OK;
    if (((const args_t *)w->args.args)->raise_error)
        return keel_fail(KEEL_ENUMERIC, "step %lld: the loss is %g", (long long)at->step, loss);
    keel_watch_say(at->watch, "step %lld: the loss is %g, so training stopped", (long long)at->step,
                   loss);
    return KEEL_END;
}

const keel_watcher keel_watcher_terminate_on_nan = {
    .type = {
        .name = "TerminateOnNaN",
        .module = "keras.callbacks",
        .help = "stop when the loss is not finite",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .on = { .on_train_begin = on_train_begin, .on_train_batch_end = on_train_batch_end },
};
