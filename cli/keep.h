/* What fit keeps of its work: the claim on its output, a history that grows with each epoch, and
 * the model when the run ends in any other way than planned. */
#ifndef KEEL_CLI_KEEP_H
#define KEEL_CLI_KEEP_H
#include "command.h"
#include <stdatomic.h>

typedef struct keel_keeper {
    const char *output, *history; /* history NULL: none is written; both: by another process */
    const char *spare;            /* the output of that one, which may be lost */
    const keel_model *model;
    _Atomic(keel_claim *) claim; /* released once: by the end, or by the thread of signals */
    keel_callback callback;
    FILE *lines; /* the growing history */
    char columns[KEEL_LOGS_MAX][160];
    int n_column;
    bool lines_failed;              /* told already */
    bool rescued;                   /* keel_keeper_rescue was called */
    volatile bool learned;          /* a step was made */
    volatile long long epoch, step; /* of the last one, from 1 */
} keel_keeper;

/* Claim the output. Returns -1 to continue, or an exit code after an error was printed. */
int keel_keeper_begin(keel_keeper *k, const char *output, const char *history, const keel_model *m);
/* Try whether a file of the size of the model, which is compiled now, can be made there. Returns as
 * above. */
int keel_keeper_try_room(const keel_keeper *k);
void keel_keeper_end(keel_keeper *k);

/* For keel_signals_catch: save and end the process; context is the keeper. */
void keel_keeper_quit(void *keeper, int signal);

/* For keel_setup_watch_rescue: say why, and save. */
void keel_keeper_leave(void *keeper, const char *why);

/* Save the model beside the output, after a failure or a signal whose text is `why`. Prints the
 * error line with what was saved. */
void keel_keeper_rescue(keel_keeper *k, const char *why);

/* After all processes have ended their work: if the first one was lost while it saved, save the
 * model here. */
void keel_keeper_stand_in(keel_keeper *k);

/* Print the error of a fit whose epochs are over, so that the model will be saved as the output.
 * Returns an exit code. */
int keel_keeper_complain(const keel_keeper *k, keel_status s);

/* Save the model as the output; if it cannot be written there, where temporary files are. Returns
 * an exit code. */
int keel_keeper_save(keel_keeper *k);

#endif
