/* Processes that each keep a part of the optimizer's state (ZeRO, stage 1). A process adds the
 * gradients of some tiles for all others (graph/buckets.h). With keel_strategy_shard_optimizer it
 * keeps these sums, has slots for these tiles alone, moves them, and sends the weights. Of a step:
 *
 *     vote     all learn whether every gradient is finite, and the norms and penalties of tiles
 *     move     each process moves its tiles beside the weights, which stay as they are
 *     share    what the weights become goes to everybody, into the place of the gradients
 *     agree    all have all of it
 *     take     it becomes the weights
 *
 * So a process that is lost leaves the others with the weights of a whole step, whenever that
 * happens. Its part of the state is lost with it: then no process has all of the state any more,
 * and what is saved is without it.
 *
 * During a fit the model has no state, in any process. Where one is to be saved, all give their
 * parts to process 0, at the same step: they are gathered. */
#ifndef KEEL_TRAIN_SHARDED_H
#define KEEL_TRAIN_SHARDED_H
#include "train/trainer.h"

typedef struct keel_sharded {
    int64_t room_bytes;
    char *room;         /* [n_worker][room_bytes] a tile of each worker */
    int64_t n_fact;     /* tiles whose norms and penalties are told; 0: nobody asks for them */
    double *fact;       /* [n_fact][2] those of one process after those of another */
    size_t *at, *bytes; /* [n_process] of fact, or of a slot that is gathered */
    bool gathered;      /* the model of process 0 has the state of the last step */
} keel_sharded;

/* Once the trainer has its optimizers. Unless its program shards the optimizer, t->sharded stays
 * NULL. */
keel_status keel_sharded_create(keel_trainer *t);
void keel_sharded_free(keel_trainer *t);
int64_t keel_sharded_bytes(const keel_trainer *t); /* besides the slots */
/* What a step sends to others for the norms and penalties of tiles, in bytes. */
int64_t keel_sharded_vote_bytes(const keel_trainer *t);

/* ---- of a step, by every worker; a failure is that of the program -----------------------------
 */

/* Once all tiles are reduced: all workers know the votes of all processes. */
void keel_sharded_vote(keel_trainer *t, int worker);
/* Move, share, agree, take. After a failure the weights are as before. */
void keel_sharded_apply(keel_trainer *t, int worker);

/* ---- between steps ----------------------------------------------------------------------------
 */

/* The slots of this process become those of the model's state. */
void keel_sharded_read(keel_trainer *t);
/* Slots that begin as the weight begin as it is now. */
void keel_sharded_begin_slots(keel_trainer *t);
/* The model's state is gone, or old: its memory is freed. */
void keel_sharded_leave(keel_trainer *t);

/* By all processes, whose status `mine` is: the model of process 0 gets the state. A failure of any
 * process is that of all. Nothing to do where it has it, or where nothing is sharded. */
keel_status keel_sharded_gather(keel_trainer *t, keel_status mine);
/* The same, if process 0 wants it. KEEL_END: it does not, or has no memory for it, of which it
 * alone has the error's text. */
keel_status keel_sharded_gather_if(keel_trainer *t, bool wanted);
/* At the end of a fit that failed: all learn of it, and process 0 gets the state, if nobody is
 * lost. Returns `mine`, or the failure of another process. */
keel_status keel_sharded_end(keel_trainer *t, keel_status mine);

/* By all processes, when training ends: weights become their averages, where the optimizer has
 * them. */
keel_status keel_sharded_finish(keel_trainer *t);

#endif
