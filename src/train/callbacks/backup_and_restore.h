/* The checkpoints that a BackupAndRestore among the callbacks of a fit asks for. */
#ifndef KEEL_TRAIN_CALLBACKS_BACKUP_AND_RESTORE_H
#define KEEL_TRAIN_CALLBACKS_BACKUP_AND_RESTORE_H
#include "keel/train.h"

/* Returns how many there are; of the last one: *folder is the callback's; *every_steps 0: at the
 * end of epochs; *deletes: once the training is complete, nothing is left to go on from. */
int keel_backup_find(const keel_fit_options *o, const char **folder, int64_t *every_steps,
                     bool *deletes);

#endif
