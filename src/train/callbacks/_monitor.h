/* What callbacks share that watch for an improvement of one value of the logs: Keras's
 * MonitorCallback. */
#ifndef KEEL_TRAIN_CALLBACKS_MONITOR_H
#define KEEL_TRAIN_CALLBACKS_MONITOR_H
#include "train/callbacks/watcher.h"

typedef struct keel_monitor {
    char *monitor;
    int mode;
    double min_delta;
} keel_monitor;

enum { KEEL_MONITOR_AUTO, KEEL_MONITOR_MIN, KEEL_MONITOR_MAX };

/* The args of a watcher begin with a keel_monitor called `watch`. */
#define KEEL_MONITOR_NAME(T)                                                                       \
    {                                                                                              \
        .key = "monitor", .kind = KEEL_FIELD_STRING, .offset = offsetof(T, watch.monitor),         \
        .dflt = "\"val_loss\"", .help = "name of the value in the logs"                            \
    }
#define KEEL_MONITOR_MODE(T)                                                                       \
    {                                                                                              \
        .key = "mode", .kind = KEEL_FIELD_CHOICE, .offset = offsetof(T, watch.mode),               \
        .dflt = "\"auto\"", .choices = "auto|min|max",                                             \
        .help = "whether less or more is better; auto: as the loss or metric says"                 \
    }
#define KEEL_MONITOR_DELTA(T, dflt_)                                                               \
    {                                                                                              \
        .key = "min_delta", .kind = KEEL_FIELD_FLOAT, .offset = offsetof(T, watch.min_delta),      \
        .dflt = dflt_, .min = -1e300, .max = 1e300, .help = "a smaller change is no improvement"   \
    }
/* Of every watcher that says what it did. */
#define KEEL_VERBOSE(T) KEEL_INT(T, verbose, "0", 0, 2, "1: add what it did to the history's note")

/* In on_train_begin: the value will be in the logs, and it is known which direction is better:
 * *mode is KEEL_MONITOR_MIN or _MAX. KEEL_EARG: not so; the text has the names. */
keel_status keel_monitor_begin(const keel_monitor *m, const keel_moment *at, int *mode);

/* Whether `value` is better than `best` by more than min_delta, compared in float32. As in Keras
 * NaN is never better than a number, and no number better than NaN. */
bool keel_monitor_improves(const keel_monitor *m, int mode, double value, double best);

/* Whether the logs have the value; an epoch without validation lacks val_. */
bool keel_monitor_has(const keel_monitor *m, const keel_moment *at, double *value);

#endif
