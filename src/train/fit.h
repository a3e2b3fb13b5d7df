/* Inside fit: its state, and the parts of it that have files of their own. */
#ifndef KEEL_TRAIN_FIT_H
#define KEEL_TRAIN_FIT_H
#include "train/gate.h"
#include "train/history.h"
#include "train/input.h"
#include "train/profile.h"
#include "train/resume.h"
#include "train/session.h"

typedef struct keel_fitting {
    keel_model *model;
    keel_strategy *strategy;
    keel_fit_options o;
    keel_trainer *trainer;
    keel_timing *timing;
    keel_profile_work work; /* where there is timing */
    keel_pairing pairing, validation_pairing;
    keel_feed *feed, *validation_feed;
    keel_input_accounts accounts;
    int64_t
        least[2]; /* bytes of the input of training, and of validation, where there is a limit */
    keel_input_follow input;
    keel_history history;
    keel_watch run;
    keel_tally trained, tested; /* of the epoch */
    keel_gate gate;
    keel_resume resume;
    keel_standing standing; /* after the last step, once there is a trainer */
    double start;
    bool validated;      /* the validation data was begun */
    int64_t unvalidated; /* epochs whose validation failed */
} keel_fitting;

/* fit_feeds.c: the feeds of training and validation, which share the memory of the input. */
keel_status keel_fit_open_feeds(keel_fitting *f, const keel_dataset *d);
/* Say in the error text that it is about the validation data. */
keel_status keel_fit_of_validation(keel_status s);

/* fit_notes.c: what the user should know, in one line: history.note. */
void keel_fit_take_notes(keel_fitting *f, const keel_dataset *data);

#endif
