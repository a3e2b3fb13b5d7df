/* What the user of GPUs should know before the first step: which ops run on the host, and what the
 * host waits for. */
#ifndef KEEL_TRAIN_DEVICE_NOTES_H
#define KEEL_TRAIN_DEVICE_NOTES_H
#include "train/trainer.h"

/* Tells o->explain_devices of a program that is ready; without devices, or if nobody asks, nothing.
 * trains: why its devices do not move the weights, if so. Otherwise what kernels have asked for in
 * vain, which a fit has in its note. unlocked: bytes of batches that are not page-locked. */
keel_status keel_device_notes_tell(const keel_fit_options *o, const keel_trainer *t,
                                   const keel_program *p, bool trains, int64_t unlocked);

#endif
