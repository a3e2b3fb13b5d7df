/* The folder of a fit's checkpoints: which there are, which is due, and the thread that writes
 * them.
 *
 * A checkpoint is due after so many steps or seconds or at the end of an epoch. The training thread
 * then copies the state (milliseconds); the saver's thread encodes, writes and syncs it. If it is
 * still busy with the one before, the next is taken as soon as it is free, so that training never
 * waits. Files are named by their place, "checkpoint-000002-000000200.keras" after 2 epochs and 200
 * steps, so that their order is that of their names. */
#ifndef KEEL_TRAIN_SAVER_H
#define KEEL_TRAIN_SAVER_H
#include "keel/checkpoint.h"
#include "train/checkpoint.h"

typedef struct keel_saver keel_saver;

/* o->folder is not NULL. Open the folder, claim it, and start the thread, which inherits the
 * caller's cores. KEEL_EIO: it cannot be written, or another fit has it; KEEL_EARG: an option, or
 * there are checkpoints and the fit is not to go on from them. */
keel_status keel_saver_open(keel_saver **out, const keel_checkpoint_options *o);
/* Waits for the thread. NULL is allowed. */
void keel_saver_close(keel_saver *s);

/* The newest checkpoint that can be read, and its path, which the caller frees. One that is damaged
 * is told and set aside. KEEL_END: there is none. */
keel_status keel_saver_newest(keel_saver *s, keel_checkpoint *out, char **path);

/* Once the model's texts and the optimizer's state are there, before the first step. */
keel_status keel_saver_begin(keel_saver *s, const keel_model *m);

/* Whether a checkpoint is due: after a step, where the thread is free, and at the end of a fit,
 * unless the last one is of this place. */
bool keel_saver_step(keel_saver *s);
bool keel_saver_end(const keel_saver *s, const keel_standing *st);
/* Take one, once the thread is free. */
void keel_saver_take(keel_saver *s, const keel_standing *st);
/* Wait until it is written. */
void keel_saver_wait(keel_saver *s);

/* At the end of the fit, which has waited: tell how many were not written. NULL is allowed. */
void keel_saver_sum_up(keel_saver *s);

/* Remove all checkpoints of the folder, and the folder if nothing else is in it. */
void keel_saver_remove(keel_saver *s);

/* Make the folder, if it is not there. KEEL_EIO. */
keel_status keel_saver_make_folder(const char *folder);
/* The name of the checkpoint of this place. */
enum { KEEL_SAVER_NAME = 64 };
void keel_saver_name(char out[KEEL_SAVER_NAME], const keel_standing *st);

/* NULL: nobody is told. */
void keel_saver_tell(keel_saver *s, const char *format, ...) KEEL_PRINTF(2, 3);
const char *keel_saver_line(const keel_saver *s); /* the last line that was told; NULL: none */

#endif
