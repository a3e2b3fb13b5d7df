/* Weights that live on devices. Where a device can make the moves of the optimizer, each has all
 * weights and what the optimizer keeps for them. Once all have voted, each device moves its own:
 * all compute the same bits. The host's store is behind then, and catches up when somebody asks for
 * weights.
 *
 * A device that has the whole gradients, since it is the only one or since devices add them up
 * themselves, votes on them where they are. Else the host reduces and votes, and they go to each
 * device. So it is in several processes, whose devices move alike if all are of one kind.
 *
 *     host               | read votes |         | next step
 *     device    divide, vote          | moves   |
 *
 *     host       reduce, vote |                        | next step
 *     device                  | gradients in | moves   |
 *
 * Norms by which an optimizer clips are of gradients with those of regularisers, and of means of
 * several steps. Only devices have all of that, so in the second case they vote, too, behind the
 * host:
 *
 *     host       reduce, vote |                                | read norms |         | next step
 *     device                  | gradients in, joined, squares  |            | moves   |
 *
 * A device that fails while it moves is lost, since nobody knows what it has. The step stands if
 * another device has made it, and the next step fails. If none has, the step fails, and all goes
 * back to what the host has: what it has read, or what an epoch has ended with. Of several
 * processes one may go back alone; all end before the next step then. */
#ifndef KEEL_TRAIN_RESIDENT_H
#define KEEL_TRAIN_RESIDENT_H
#include "train/trainer.h"

/* When the trainer is made. Weights that cannot live on its devices are moved by the host, as those
 * of a trainer without devices. */
keel_status keel_resident_create(keel_trainer *t);
void keel_resident_free(keel_trainer *t);

/* Of the host's memory. */
int64_t keel_resident_bytes(const keel_trainer *t);

/* Why the host moves weights that devices compute with, in words; NULL: it does not. */
const char *keel_resident_why_not(const keel_trainer *t);

/* Before any step. KEEL_EDEVICE: a device is lost. */
keel_status keel_resident_begin(const keel_trainer *t);
/* When the run of a step has not failed. */
void keel_resident_ran(const keel_trainer *t);
/* While the host would else wait for a run: a part of what has been kept goes into the store. */
void keel_resident_settle(void *trainer);
/* If gradients stay on devices (graph/on_device.h), before the votes, by each worker: its device
 * divides them and votes. first: the first worker's gradients on the host. */
keel_status keel_resident_check(const keel_trainer *t, int worker, const char *first, double scale);
const keel_device_vote *keel_resident_vote(const keel_trainer *t, int worker, const keel_mover *x,
                                           int tile);
/* Whether devices know norms of this step that the host does not: of gradients that are joined. If
 * gradients do not stay there, each worker then calls join behind the votes, whose failure is one
 * of the step. reduced: as below. */
bool keel_resident_joins(const keel_trainer *t);
bool keel_resident_joins_of(const keel_trainer *t, const keel_mover *x); /* those of this one */
keel_status keel_resident_join(const keel_trainer *t, int worker, const char *reduced);
/* The sum of squares of a tile's gradient, by either way. */
double keel_resident_squares(const keel_trainer *t, int worker, const keel_mover *x, int tile);
/* Behind the commit point, by each worker: reduced is the gradient of element 0 of the store. */
void keel_resident_move(const keel_trainer *t, int worker, const char *reduced);
/* The regulariser of a tile, of the weights before the step: devices add its gradient. */
double keel_resident_penalty(const keel_trainer *t, const keel_mover *x, int tile);
/* When all workers have moved theirs. A failure: none has. */
keel_status keel_resident_end(const keel_trainer *t);

/* At the end of an epoch: what devices have now is what the host goes back to, once it has come,
 * which is during the next run. */
void keel_resident_keep(const keel_trainer *t);

/* Whether devices move a weight. */
bool keel_resident_has(const keel_trainer *t, keel_variable v);
/* A device looks for numbers that are not finite in the weights that it has, and then is_finite
 * knows of each. looked: false: the host's store has what is to be looked at. A failure: as that of
 * keel_resident_fetch. */
keel_status keel_resident_look(const keel_trainer *t, bool *looked);
bool keel_resident_is_finite(const keel_trainer *t, keel_variable v);

/* Before the host reads weights or slots. A failure: all devices are lost, and the host has what it
 * had. */
keel_status keel_resident_fetch(const keel_trainer *t);
/* The same, and the host may change them. */
keel_status keel_resident_leave(const keel_trainer *t);

#endif
