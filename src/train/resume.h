/* The checkpoints of one fit: opened before it is planned, taken while it runs, and given back to a
 * fit that goes on. All functions do nothing where the options ask for none. */
#ifndef KEEL_TRAIN_RESUME_H
#define KEEL_TRAIN_RESUME_H
#include "comm/comm.h"
#include "train/identity.h"
#include "train/saver.h"

typedef struct keel_resume {
    keel_checkpoint_options chosen; /* by the options, or by BackupAndRestore */
    keel_saver *saver;              /* NULL: there are no checkpoints */
    json_t *identity;
    keel_checkpoint from; /* where found */
    bool found;
    bool over;    /* the last one was taken */
    bool outside; /* another process was interrupted */
    bool deletes; /* all of them, once the training is complete */
    bool takes;   /* there are checkpoints, which process 0 writes */
    bool by_step; /* they are not taken at the ends of epochs */
    int64_t epochs;
    char *folder; /* of a process that is not the first, and may have to stand in for it */
    keel_comm *comm;
    bool (*interrupted)(void *context);
    void (*on_line)(void *context, const char *line);
    void *context;
} keel_resume;

/* Before the feeds are opened: what run this is. All processes must be of one, have the same
 * epochs, and all or none of them checkpoints; KEEL_EARG names the first that differs. */
keel_status keel_resume_identify(keel_resume *r, const keel_model *m, const keel_strategy *s,
                                 const keel_dataset *data, const keel_fit_options *o);
/* Before the trainer is made, by a thread that is not bound to a core: look for a checkpoint, and
 * give its weights to the model. Of several processes the first has the folder, and the others get
 * the checkpoint from it. KEEL_EARG: the checkpoint is of another run. */
keel_status keel_resume_open(keel_resume *r, keel_model *m, const keel_strategy *s,
                             const keel_fit_options *o);
/* Once there are trainer, tally and history, and after on_train_begin. */
keel_status keel_resume_begin(keel_resume *r, const keel_standing *st);

/* Bring the rows to where the checkpoint was taken. Of a stream those before it are read again: how
 * many is told first, and then how long it took. */
keel_status keel_resume_seek(keel_resume *r, keel_feed *f);

/* After a step, and at the end of an epoch: take a checkpoint if one is due. Of a sharded optimizer
 * all processes give their parts to process 0 then, so this and the next two are called by all at
 * the same step, and a failure of any process is that of all. */
keel_status keel_resume_step(keel_resume *r, const keel_standing *st);
keel_status keel_resume_epoch(keel_resume *r, const keel_standing *st);
/* Whether the fit is to end for a reason that has nothing to do with it, such as a signal. */
bool keel_resume_from_outside(const keel_resume *r);
/* A callback has stopped the fit within an epoch, whose end changes more than the rest of it would:
 * if the reason is outside, the last checkpoint is taken here. */
keel_status keel_resume_stop(keel_resume *r, const keel_standing *st);
/* The end, or a failure. stopped: by a callback. If another process is lost, it may be the first
 * one that would write the last checkpoint: then one of the others does. */
keel_status keel_resume_end(keel_resume *r, keel_standing *st, bool stopped);
void keel_resume_close(keel_resume *r);

#endif
