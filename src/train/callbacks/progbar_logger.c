/* The lines that Keras's fit shows, on standard output, for programs that have no display of their
 * own: on a terminal a bar that is redrawn, elsewhere one line at the end of a pass. */
#include "base/c_locale.h"
#include "base/memory.h"
#include "train/callbacks/watcher.h"
#include <math.h>
#include <stdio.h>
#include <unistd.h>

typedef struct args_t {
    int64_t width;
} args_t;

typedef struct own_t {
    bool live;    /* standard output is a terminal */
    double drawn; /* seconds of the pass when the line was last drawn */
} own_t;

static const double DRAW_EVERY = 0.1; /* seconds */

static const keel_field fields[] = {
    KEEL_INT(args_t, width, "20", 0, 200, "letters of the bar on a terminal (of Keel)"),
    { 0 },
};

static void release(keel_watching *w)
{
    keel_free(w->own);
    w->own = NULL;
}

static keel_status begin(keel_watching *w)
{
    if (!w->own && !(w->own = keel_calloc(1, sizeof(own_t)))) return KEEL_ENOMEM;
    ((own_t *)w->own)->live = isatty(STDOUT_FILENO);
    ((own_t *)w->own)->drawn = 0;
    return KEEL_OK;
}

static void put_bar(const keel_moment *at, int64_t width)
{
    const int64_t full = at->steps > 0 ? width * at->step / at->steps : 0;
    for (int64_t i = 0; i < width; i++) fputs(i < full ? "━" : "─", stdout);
    putchar(' ');
}

/* Seconds so far and milliseconds a step, then the logs, as in Keras. */
static void put_line(const keel_watching *w, const keel_moment *at, bool last)
{
    const own_t *o = w->own;
    const keel_logs *logs = at->logs;
    char number[400];
    if (o->live) fputs("\r\033[K", stdout);
    printf("%lld/", (long long)at->step);
    if (at->steps > 0)
        printf("%lld ", (long long)at->steps);
    else
        fputs("unknown ", stdout);
    if (o->live) put_bar(at, ((const args_t *)w->args.args)->width);
    keel_snprintf(number, sizeof number, "%.3g",
                  1e3 * at->seconds / (double)(at->step ? at->step : 1));
    printf("%.0fs %sms/step", at->seconds, number);
    for (int i = 0; logs && i < logs->count; i++) {
        const double v = logs->value[i];
        keel_snprintf(number, sizeof number, fabs(v) > 1e-3 ? "%.4f" : "%.4e", v);
        printf(" - %s: %s", logs->name[i], number);
    }
    if (last) putchar('\n');
    fflush(stdout);
}

static keel_status drawn(keel_watching *w, const keel_moment *at)
{
    own_t *o = w->own;
    if (!o->live || at->seconds - o->drawn < DRAW_EVERY) return KEEL_OK;
    o->drawn = at->seconds;
    put_line(w, at, false);
    return KEEL_OK;
}

static keel_status on_epoch_begin(void *context, const keel_moment *at)
{
    KEEL_TRY(begin(context));
    printf("Epoch %lld/%lld\n", (long long)at->epoch + 1, (long long)at->epochs);
    return KEEL_OK;
}

static keel_status on_batch_end(void *context, const keel_moment *at)
{
    return drawn(context, at);
}

static keel_status on_epoch_end(void *context, const keel_moment *at)
{
    put_line(context, at, true);
    return KEEL_OK;
}

/* A validation within fit is part of the epoch's line. */
static keel_status on_pass_begin(void *context, const keel_moment *at)
{
    return at->fits ? KEEL_OK : begin(context);
}

static keel_status on_pass_batch_end(void *context, const keel_moment *at)
{
    return at->fits ? KEEL_OK : drawn(context, at);
}

static keel_status on_pass_end(void *context, const keel_moment *at)
{
    if (!at->fits) put_line(context, at, true);
    return KEEL_OK;
}

const keel_watcher keel_watcher_progbar_logger = {
    .type = {
        .name = "ProgbarLogger",
        .module = "keras.callbacks",
        .help = "write the progress of each epoch to standard output",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .on = {
        .on_epoch_begin = on_epoch_begin,
        .on_epoch_end = on_epoch_end,
        .on_train_batch_end = on_batch_end,
        .on_test_begin = on_pass_begin,
        .on_test_end = on_pass_end,
        .on_test_batch_end = on_pass_batch_end,
        .on_predict_begin = on_pass_begin,
        .on_predict_end = on_pass_end,
        .on_predict_batch_end = on_pass_batch_end,
    },
    .release = release,
    .only_writes = true,
};
