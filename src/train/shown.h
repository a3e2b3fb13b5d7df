/* The rows of a step as callbacks see them: what the model gives for them, its masks, their targets
 * and their weights, in copies, since the buffers go on to other rows. */
#ifndef KEEL_TRAIN_SHOWN_H
#define KEEL_TRAIN_SHOWN_H
#include "data/feed.h"
#include "train/trainer.h"

enum { KEEL_SHOWN_OUTPUT, KEEL_SHOWN_MASK, KEEL_SHOWN_TARGET, KEEL_SHOWN_WEIGHT, KEEL_SHOWN_COUNT };

typedef struct keel_shown {
    int n; /* outputs of the model; 0: no callback sees rows */
    keel_tensor of[KEEL_SHOWN_COUNT][KEEL_OUTPUTS_MAX]; /* data NULL: there are none */
    void *memory[KEEL_SHOWN_COUNT][KEEL_OUTPUTS_MAX];
    int64_t room[KEEL_SHOWN_COUNT][KEEL_OUTPUTS_MAX]; /* bytes of that */
} keel_shown;

/* Copy the rows of a step that has just ended; processes tell each other theirs. n 0: nothing. */
keel_status keel_shown_take(keel_shown *x, const keel_trainer *t, bool training,
                            const keel_batch *b);
void keel_shown_free(keel_shown *x);

#endif
