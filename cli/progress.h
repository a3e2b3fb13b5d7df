/* Progress while a model trains: on a terminal one line that is redrawn, elsewhere plain lines; and
 * Ctrl-C, which stops after the current step. */
#ifndef KEEL_CLI_PROGRESS_H
#define KEEL_CLI_PROGRESS_H
#include "command.h"

typedef struct keel_meter {
    keel_callback callback; /* for fit, evaluate and predict; KEEL_END after Ctrl-C */
    bool live;              /* stderr is a terminal */
    bool validates;         /* each epoch ends with a validation */
    bool drawn;             /* the terminal shows a live line */
    double start;           /* time when this run began to train; 0: not yet */
    double from;            /* the fraction of the whole run that was finished then */
    double last;            /* time of the last output */
    int64_t epoch;          /* the current one */
    int64_t step, rows;     /* of the last call */
} keel_meter;

/* The meter must not move afterwards. */
void keel_meter_begin(keel_meter *m, bool validates);

/* Erase the live line before anything else is printed. */
void keel_meter_clear(keel_meter *m);

/* Print what a fit, an evaluation or a prediction says of GPUs before it begins:
 * keel_fit_options.explain_devices, with the meter as its context. */
void keel_meter_devices(void *meter, const char *note);

/* From now on the first Ctrl-C sets a flag, the second ends the process. */
void keel_interrupt_catch(void);
bool keel_interrupted(void);
void keel_interrupt(void); /* as a Ctrl-C does; for handlers of signals */

double keel_now(void); /* seconds, monotonic */
/* Seconds since the process began: its processor time while loading, and the time since. */
double keel_since_start(void);

#endif
