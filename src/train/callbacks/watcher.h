/* A callback with a Keras name: a const struct keel_watcher_STEM at the end of its file. Its
 * arguments and its state have field tables, so that the command line, its help, and checkpoints
 * need no code of their own. */
#ifndef KEEL_TRAIN_CALLBACKS_WATCHER_H
#define KEEL_TRAIN_CALLBACKS_WATCHER_H
#include "base/field.h"
#include "train/watch.h"

typedef struct keel_watching keel_watching;

typedef struct keel_watcher {
    keel_type type;
    /* What changes while it watches: a struct with a table like that of arguments, whose defaults
     * are its values in on_train_begin. args_size 0: it has no state. */
    keel_type state;
    keel_callback on; /* its functions, whose context is a keel_watching */
    /* All may be NULL: checks arguments together; frees what `own` points to; the tensors of the
     * state, as keel_callback.state_tensor. */
    keel_status (*check)(const void *args);
    void (*release)(keel_watching *w);
    keel_status (*tensor)(keel_watching *w, int i, keel_callback_tensor *out);
    void (*failed)(keel_watching *w, const keel_moment *at); /* see keel_watch_failed */
    int64_t (*bytes)(const void *args, const keel_model *m); /* of what it keeps of a model */
    int (*reads)(const void *args);          /* of the live model, KEEL_LIVE_*; NULL: nothing */
    const char *(*output)(const void *args); /* the file that it writes; NULL: none */
    bool fills_folder;                       /* that is a folder, for files of its own */
    bool only_writes; /* files or lines, and changes nothing: one process does it for all */
    bool steers;      /* what is trained depends on its arguments: all but `verbose` */
} keel_watcher;

/* One that was made: what the functions get. */
struct keel_watching {
    keel_callback callback; /* first, since callers have a pointer to it */
    const keel_watcher *watcher;
    keel_object args;
    void *state;
    void *own; /* of the watcher: files, tensors */
};

extern const keel_watcher *const keel_watchers[]; /* generated; ends with NULL */
const keel_type *keel_watcher_find(const char *name);

/* What a callback is, or a copy of it; NULL: none of Keel's own. */
const keel_watching *keel_watching_of(const keel_callback *c);

/* Give the state its defaults. For every on_train_begin. */
keel_status keel_watching_reset(keel_watching *w);

#endif
