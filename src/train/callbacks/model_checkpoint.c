/* Save the model, or its weights, after each epoch or every so many steps; all of them, or only the
 * best. Files appear complete or not at all. An epoch without the monitored value is not saved as
 * the best (Keras saves it). */
#include "base/memory.h"
#include "io/file.h"
#include "train/callbacks/_monitor.h"
#include "train/callbacks/_texts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct args_t {
    keel_monitor watch;
    char *filepath, *save_freq;
    double initial_value_threshold;
    int64_t verbose;
    bool save_best_only, save_weights_only;
} args_t;

typedef struct state_t {
    double best;
    bool has_best;
    int64_t mode;
    int64_t steps; /* since the last file */
} state_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, filepath, NULL,
                "the file; {epoch:02d} and {val_loss:.2f} stand for numbers"),
    KEEL_MONITOR_NAME(args_t),
    KEEL_VERBOSE(args_t),
    KEEL_BOOL(args_t, save_best_only, "false", "save only what is better than all before"),
    KEEL_BOOL(args_t, save_weights_only, "false", "save a .weights.h5 instead of a .keras"),
    KEEL_MONITOR_MODE(args_t),
    KEEL_STRING(args_t, save_freq, "\"epoch\"", "epoch, or a number of steps"),
    KEEL_FLOAT(args_t, initial_value_threshold, "null", -INFINITY, INFINITY,
               "a value that the best must be better than"),
    { 0 },
};

static const keel_field state_fields[] = {
    KEEL_FLOAT(state_t, best, "null", 0, 0, "best value so far"),
    KEEL_BOOL(state_t, has_best, "false", "there is one, though it may be NaN"),
    KEEL_INT(state_t, mode, "0", 0, 0, "the direction"),
    KEEL_INT(state_t, steps, "0", 0, 0, "steps since the last file"),
    { 0 },
};

/* Steps between two files; 0: after epochs; -1: neither. */
static int64_t steps_of(const args_t *a)
{
    char *end;
    if (!a->save_freq || !strcmp(a->save_freq, "epoch")) return 0;
    const long long n = strtoll(a->save_freq, &end, 10);
    return *end || n < 1 ? -1 : n;
}

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

static keel_status check(const void *args)
{
    const args_t *a = args;
    const char *end = a->save_weights_only ? ".weights.h5" : ".keras";
    if (!ends_in(a->filepath, end))
        return keel_fail(KEEL_EARG, "ModelCheckpoint: filepath '%s' must end in %s", a->filepath,
                         end);
    if (steps_of(a) < 0)
        return keel_fail(KEEL_EARG,
                         "ModelCheckpoint: save_freq is '%s'; it must be epoch or a number of "
                         "steps above 0",
                         a->save_freq);
    return KEEL_OK;
}

/* Try the pattern on the names of the logs that there will be. */
static keel_status try_pattern(const args_t *a, const keel_moment *at)
{
    keel_text path = { 0 };
    keel_logs logs = { 0 };
    const bool steps = steps_of(a) > 0;
    for (int i = 0; i < at->logs->count; i++)
        if (!steps || strncmp(at->logs->name[i], "val_", 4))
            logs.name[logs.count++] = at->logs->name[i];
    const keel_status s = keel_python_format(&path, a->filepath, 1, steps ? 1 : 0, &logs);
    keel_text_free(&path);
    return s;
}

/* Try whether a file can be made in the folder, as far as its name is known now. Otherwise a fit
 * would fail only after its first epoch. */
static keel_status try_folder(const args_t *a)
{
    keel_text path = { 0 };
    keel_new_file *file;
    const size_t known = strcspn(a->filepath, "{");
    keel_text_add(&path, "%.*s%s", (int)known, a->filepath, a->filepath[known] ? ".keras" : "");
    keel_status s = path.failed ? KEEL_ENOMEM : keel_file_folders(path.data);
    if (s >= 0) s = keel_new_file_create(&file, path.data);
    if (s >= 0) keel_new_file_abort(file);
    keel_text_free(&path);
    return s;
}

static keel_status on_train_begin(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    const args_t *a = w->args.args;
    KEEL_TRY(try_pattern(a, at));
    if (at->watch->rank == 0) KEEL_TRY(try_folder(a));
    if (!a->save_best_only) return KEEL_OK;
    if (steps_of(a) > 0 && !strncmp(a->watch.monitor, "val_", 4))
        return keel_fail(KEEL_EARG,
                         "save_best_only by %s needs save_freq epoch: after a step there "
                         "is no validation",
                         a->watch.monitor);
    int mode;
    KEEL_TRY(keel_monitor_begin(&a->watch, at, &mode));
    ((state_t *)w->state)->mode = mode;
    return KEEL_OK;
}

/* Whether this moment is to be saved. */
static bool is_due(keel_watching *w, const keel_moment *at)
{
    const args_t *a = w->args.args;
    state_t *s = w->state;
    double value;
    if (!a->save_best_only) return true;
    if (!keel_monitor_has(&a->watch, at, &value)) return false;
    const bool first = !s->has_best && isnan(a->initial_value_threshold);
    const double best = s->has_best ? s->best : a->initial_value_threshold;
    if (!first && !keel_monitor_improves(&a->watch, (int)s->mode, value, best)) return false;
    s->has_best = true;
    s->best = value;
    return true;
}

static keel_status save(keel_watching *w, const keel_moment *at, int64_t batch)
{
    const args_t *a = w->args.args;
    keel_text path = { 0 };
    if (!is_due(w, at)) return KEEL_OK;
    KEEL_TRY(keel_live_gather(&at->watch->live));
    if (at->watch->rank > 0) return KEEL_OK; /* one process writes for all */
    keel_status s = keel_python_format(&path, a->filepath, at->epoch + 1, batch, at->logs);
    if (s >= 0) s = keel_file_folders(path.data);
    if (s >= 0)
        s = a->save_weights_only ? keel_model_save_weights(at->model, path.data)
                                 : keel_model_save(at->model, path.data);
    if (s >= 0 && a->verbose && a->save_best_only)
        keel_watch_say(at->watch, "epoch %lld: saved %s (%s %.5g)", (long long)at->epoch + 1,
                       path.data, a->watch.monitor, ((const state_t *)w->state)->best);
    else if (s >= 0 && a->verbose)
        keel_watch_say(at->watch, "epoch %lld: saved %s", (long long)at->epoch + 1, path.data);
    keel_text_free(&path);
    return s;
}

static keel_status on_epoch_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    return steps_of(w->args.args) ? KEEL_OK : save(w, at, 0);
}

static keel_status on_train_batch_end(void *context, const keel_moment *at)
{
    keel_watching *w = context;
    state_t *s = w->state;
    const int64_t every = steps_of(w->args.args);
    if (!every || ++s->steps < every) return KEEL_OK;
    s->steps = 0;
    return save(w, at, at->step);
}

static int reads(const void *args)
{
    (void)args;
    return KEEL_LIVE_ALL;
}

static const char *output(const void *args)
{
    return ((const args_t *)args)->filepath;
}

const keel_watcher keel_watcher_model_checkpoint = {
    .type = {
        .name = "ModelCheckpoint",
        .module = "keras.callbacks",
        .help = "save the model after epochs or steps, or only the best one",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .state = { .name = "ModelCheckpoint", .args_size = sizeof(state_t), .fields = state_fields },
    .on = {
        .on_train_begin = on_train_begin,
        .on_epoch_end = on_epoch_end,
        .on_train_batch_end = on_train_batch_end,
    },
    .check = check,
    .reads = reads,
    .output = output,
};
