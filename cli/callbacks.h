/* The callbacks of keel fit that options choose. */
#ifndef KEEL_CLI_CALLBACKS_H
#define KEEL_CLI_CALLBACKS_H
#include "setup.h"

typedef struct keel_callbacks_options {
    const char *list;     /* "CSVLogger(log.csv), EarlyStopping(patience=3)" */
    const char *stopping; /* "val_loss,patience=5,restore-best" */
    const char *best;     /* "val_loss" */
    const char *by_epoch; /* a schedule */
} keel_callbacks_options;

enum { KEEL_CALLBACKS_MAX = 24 };

typedef struct keel_callback_list {
    int n, own;                                      /* all, and those that were made here */
    const keel_callback *at[KEEL_CALLBACKS_MAX + 3]; /* ends with NULL */
    keel_callback *made[KEEL_CALLBACKS_MAX];
    char best[4096]; /* the file of --save-best, the last of `made`; "": none */
} keel_callback_list;

/* Make them. `output` is the file of the trained model; validates: there is validation data.
 * Returns -1, or an exit code after an error was printed. */
int keel_callbacks_make(keel_callback_list *out, const keel_callbacks_options *o,
                        const char *output, bool validates);
void keel_callbacks_add(keel_callback_list *l,
                        const keel_callback *c); /* at most two, at the end */
void keel_callbacks_free(keel_callback_list *l);

#define KEEL_CALLBACKS_ROWS(T, member)                                                             \
    KEEL_OPTION_ROW(T, member.stopping, "early-stopping", 0, false, KEEL_OPTION_ONCE, "NAME,...",  \
                    NULL,                                                                          \
                    "stop when this value of the logs no longer improves: "                        \
                    "val_loss,patience=5,restore-best (see keel callbacks EarlyStopping)"),        \
        KEEL_OPTION_ROW(T, member.best, "save-best", 0, false, KEEL_OPTION_ONCE, "NAME", NULL,     \
                        "save the model of the best epoch by this value, val_loss or "             \
                        "val_accuracy, beside the output, as OUT.best.keras"),                     \
        KEEL_OPTION_ROW(T, member.by_epoch, "learning-rate-by-epoch", 0, false, KEEL_OPTION_TEXT,  \
                        "S", NULL,                                                                 \
                        "learning rate of each epoch, by a schedule whose steps are epochs: "      \
                        "'ExponentialDecay(0.1, 10, 0.5)'"),                                       \
        KEEL_OPTION_ROW(T, member.list, "callbacks", 0, false, KEEL_OPTION_ONCE, "LIST", NULL,     \
                        "callbacks of Keras's, separated by commas: 'ReduceLROnPlateau("           \
                        "patience=3), CSVLogger(log.csv)' (see keel callbacks)")

#endif
