/* Weights that live on devices. Where a device can make the moves of the optimizer, each has all
 * weights and what the optimizer keeps for them. Once all have voted, the reduced gradients go to
 * each device, which moves its own: all compute the same bits. The host's store is behind then, and
 * catches up when somebody asks for weights.
 *
 *     host       reduce, vote |                        | next step
 *     device                  | gradients in | moves   |
 *
 * A device that fails while it moves is lost, since nobody knows what it has. The step stands if
 * another device has made it, and the next step fails. If none has, the step fails, and all goes
 * back to what the host had when it last caught up. */
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
keel_status keel_resident_begin(keel_trainer *t);
/* Behind the commit point, by each worker: reduced is the gradient of element 0 of the store. */
void keel_resident_move(const keel_trainer *t, int worker, const char *reduced);
/* When all workers have moved theirs. A failure: none has. */
keel_status keel_resident_end(keel_trainer *t);

/* Before the host reads weights or slots. A failure: all devices are lost, and the host has what it
 * had. */
keel_status keel_resident_fetch(const keel_trainer *t);
/* Before the host changes them, too. What fails is told by the next step. */
void keel_resident_leave(const keel_trainer *t);

#endif
