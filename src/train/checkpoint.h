/* One checkpoint: a .keras file with the member "keel.state", which has all that training needs
 * and Keras has no place for. Captured between two steps from where a fit stands; read back and
 * given to a new fit of the same run. saver.h says when and where to. */
#ifndef KEEL_TRAIN_CHECKPOINT_H
#define KEEL_TRAIN_CHECKPOINT_H
#include "data/faults.h"
#include "io/sections.h"
#include "model/snapshot.h"
#include "train/tally.h"
#include "train/trainer.h"
#include <jansson.h>

#define KEEL_STATE_MEMBER "keel.state"

/* Where a fit stands, between two steps. */
typedef struct keel_standing {
    keel_trainer *trainer;
    keel_tally *tally; /* of the running epoch */
    keel_history *history;
    int64_t epoch, step, rows; /* steps and rows done in that epoch */
    bool finished;             /* a callback has ended the training: nothing is left to do */
    keel_ledger *ledger;       /* of the training data */
    const json_t *identity;
    const keel_callback *callback; /* [n_callback] */
    int n_callback;
} keel_standing;

/* Copy weights, optimizer and numbers of the trainer to a snapshot of its model. Of a sharded
 * optimizer the state is copied if it has been gathered, into memory made here (KEEL_ENOMEM); else
 * the snapshot is without it. */
keel_status keel_snapshot_take(keel_snapshot *s, const keel_trainer *t);

/* The content of the member; the caller frees *out with keel_free. */
keel_status keel_standing_encode(const keel_standing *st, void **out, size_t *n_bytes);

typedef struct keel_checkpoint {
    keel_model *model; /* as read from the file */
    json_t *head;
    void *block;
    keel_sections sections;
    int64_t epoch, step, rows;
    bool finished;
} keel_checkpoint;

/* Read a block as the member of that name; *out takes it over on success. Does not read the model.
 * KEEL_EFORMAT: it is damaged. */
keel_status keel_checkpoint_decode(keel_checkpoint *out, void *block, size_t n_bytes);
keel_status keel_checkpoint_load(keel_checkpoint *out, const char *path);
void keel_checkpoint_free(keel_checkpoint *c);

/* Before the trainer is made: the model gets the checkpoint's weights and optimizer. KEEL_EFORMAT:
 * they are not those of this model. */
keel_status keel_checkpoint_give_model(const keel_checkpoint *c, keel_model *m);
/* Once it is made: the rest. */
keel_status keel_checkpoint_give_rest(const keel_checkpoint *c, const keel_standing *st);

#endif
