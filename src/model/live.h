/* A model that is being trained, evaluated or asked for predictions by the functions that run
 * between two steps (keel/callback.h). Its values are then in the trainer's flat ranges, and the
 * model's own copies are made when they are read: *pulled*. A function that sets values changes the
 * copies, and the trainer takes them before its next step. */
#ifndef KEEL_MODEL_LIVE_H
#define KEEL_MODEL_LIVE_H
#include "base/error.h"
#include <stdbool.h>

typedef struct keel_model keel_model;

enum {
    KEEL_LIVE_NUMBERS = 1, /* steps done, learning rate, loss scale */
    KEEL_LIVE_WEIGHTS = 2,
    KEEL_LIVE_STATE = 4, /* of the optimizer: a tensor for each weight and slot */
    KEEL_LIVE_ALL = 7
};

typedef struct keel_model_live {
    void (*pull)(void *trainer, int what);
    void *trainer;
    int pulled;     /* the model's copies are those of the last finished step */
    int left;       /* their memory was given back, until they were pulled again */
    int changed;    /* a callback has set them since */
    bool destroyed; /* a callback called keel_model_destroy, which did nothing */
} keel_model_live;

/* Before the model's copies are read, and before they are set. Nothing to do if it is not live. */
void keel_model_pull(const keel_model *m, int what);
void keel_model_change(keel_model *m, int what);

/* KEEL_EARG: the model is live, and what `call` does would not fit the programs that run. */
keel_status keel_model_idle(const keel_model *m, const char *call);

#endif
