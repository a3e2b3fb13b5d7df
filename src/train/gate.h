/* A gate between the thread that trains and one that wants to save the model at once
 * (keel_fit_save). The trainer holds it, except while it waits for rows, where it may wait for
 * ever. So whoever gets through finds the weights as after the last finished step. */
#ifndef KEEL_TRAIN_GATE_H
#define KEEL_TRAIN_GATE_H
#include "data/feed.h"
#include "train/trainer.h"
#include <pthread.h>

typedef struct keel_gate {
    keel_trainer *trainer; /* NULL: closed for good */
    pthread_mutex_t lock;
    int savers;             /* threads that save, or wait for the lock to do so */
    pthread_cond_t saved;   /* there are none any more */
    struct keel_gate *next; /* of all gates of the process */
} keel_gate;

/* Once the trainer is complete, and before it is destroyed. leave: nothing if it was not entered.
 */
void keel_gate_enter(keel_gate *g, keel_trainer *t);
void keel_gate_leave(keel_gate *g);

/* Around a wait for rows. NULL: no fit runs, and nothing is done. */
void keel_gate_open(keel_gate *g);
void keel_gate_close(keel_gate *g);

/* keel_feed_next, with the gate open meanwhile. */
keel_status keel_gate_next(keel_gate *g, keel_feed *f, keel_batch *out);

#endif
