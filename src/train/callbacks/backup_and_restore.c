/* Write checkpoints, and go on from the newest one when fit is called again. The fit itself does
 * this (train/resume.c), since it must know before it is planned; this callback only says so. Keras
 * keeps the begin of an epoch or of some step, and draws other random numbers when it goes on; here
 * the rest of the training has the same bits. */
#include "train/callbacks/backup_and_restore.h"
#include "train/callbacks/watcher.h"
#include <stdlib.h>
#include <string.h>

extern const keel_watcher keel_watcher_backup_and_restore;

typedef struct args_t {
    char *backup_dir, *save_freq;
    bool double_checkpoint, delete_checkpoint;
} args_t;

static const keel_field fields[] = {
    KEEL_STRING(args_t, backup_dir, NULL, "the folder of the checkpoints"),
    KEEL_STRING(args_t, save_freq, "\"epoch\"", "epoch, or a number of steps"),
    KEEL_BOOL(args_t, double_checkpoint, "false",
              "keep the checkpoint before the newest, too; Keel always does"),
    KEEL_BOOL(args_t, delete_checkpoint, "true", "remove them when the training is complete"),
    { 0 },
};

/* Steps between two checkpoints; 0: after epochs; -1: neither. */
static int64_t steps_of(const args_t *a)
{
    char *end;
    if (!a->save_freq || !strcmp(a->save_freq, "epoch")) return 0;
    const long long n = strtoll(a->save_freq, &end, 10);
    return *end || n < 1 ? -1 : n;
}

static keel_status check(const void *args)
{
    const args_t *a = args;
    if (!a->backup_dir || !*a->backup_dir)
        return keel_fail(KEEL_EARG, "BackupAndRestore: backup_dir must name a folder");
    if (steps_of(a) < 0)
        return keel_fail(KEEL_EARG,
                         "BackupAndRestore: save_freq is '%s'; it must be epoch or a number of "
                         "steps above 0",
                         a->save_freq);
    return KEEL_OK;
}

/* By a function of its own the callback is known: keel_watching_of. */
static keel_status on_train_begin(void *context, const keel_moment *at)
{
    (void)context;
    (void)at;
    return KEEL_OK;
}

int keel_backup_find(const keel_fit_options *o, const char **folder, int64_t *every_steps,
                     bool *deletes)
{
    int n = 0;
    for (int i = 0; o->callbacks && o->callbacks[i]; i++) {
        const keel_watching *w = keel_watching_of(o->callbacks[i]);
        if (!w || w->watcher != &keel_watcher_backup_and_restore) continue;
        const args_t *a = w->args.args;
        *folder = a->backup_dir;
        *every_steps = steps_of(a);
        *deletes = a->delete_checkpoint;
        n++;
    }
    return n;
}

static const char *output(const void *args)
{
    return ((const args_t *)args)->backup_dir;
}

const keel_watcher keel_watcher_backup_and_restore = {
    .type = {
        .name = "BackupAndRestore",
        .module = "keras.callbacks",
        .help = "write checkpoints, and go on from the newest one",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .on = { .on_train_begin = on_train_begin },
    .check = check,
    .output = output,
    .fills_folder = true,
};
