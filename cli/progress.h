/* What a user sees while a model trains: one line that renews itself on a terminal, plain lines
 * elsewhere; and Ctrl-C, which ends the work after the running step. */
#ifndef KEEL_CLI_PROGRESS_H
#define KEEL_CLI_PROGRESS_H
#include "command.h"

typedef struct keel_meter {
    bool live;          /* stderr is a terminal */
    bool validates;     /* each epoch ends with a validation */
    bool drawn;         /* a live line stands on the terminal */
    double start;       /* when the first epoch began; 0: not yet */
    double last;        /* when something was shown last */
    int64_t epoch;      /* the running one */
    int64_t step, rows; /* as last told */
} keel_meter;

void keel_meter_begin(keel_meter *m, bool validates);

/* The callback of fit and evaluate; `context` is a keel_meter. KEEL_END after Ctrl-C. */
keel_status keel_meter_tell(void *context, const keel_progress *p);

/* Take the live line away, before anything else is printed. */
void keel_meter_clear(keel_meter *m);

/* From now on the first Ctrl-C sets a flag, the second kills. */
void keel_interrupt_catch(void);
bool keel_interrupted(void);

double keel_now(void); /* seconds, monotonic */
/* Since the process began: what loading it took, as its processor time tells, and all since. */
double keel_since_start(void);

#endif
