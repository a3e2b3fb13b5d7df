/* The last checkpoint of a fit whose first process is lost: one of the others writes it. Who of
 * them is left, nobody can find out any more, so they do not agree: each waits for its turn, and
 * the file is claimed by the first that begins. On machines that share no file system each machine
 * writes. */
#ifndef KEEL_TRAIN_STAND_IN_H
#define KEEL_TRAIN_STAND_IN_H
#include "comm/comm.h"
#include "train/checkpoint.h"

/* By a process that is not the first, once another is lost: write the checkpoint of this place,
 * unless it appears before this process has its turn. hurried: this process is asked to end. The
 * folder is not claimed, since a process that hangs keeps its claim, and no older checkpoint is
 * removed. KEEL_OK: written; KEEL_END: by another; KEEL_EIO, KEEL_ENOMEM. */
keel_status keel_stand_in(const char *folder, const keel_comm *c, bool hurried,
                          const keel_standing *st);

#endif
