/* Checkpoints: all that a fit needs to go on as if it had never ended, in .keras files that Keras
 * loads as models. Options of keel_fit (train.h), and claims on the files that a program writes. */
#ifndef KEEL_CHECKPOINT_H
#define KEEL_CHECKPOINT_H
#include <keel/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where and how often a fit writes checkpoints. They are written by a thread of their own, from a
 * copy, while training goes on; each appears complete or not at all. A checkpoint is due at the
 * end of each epoch, unless steps or seconds are given, and when the fit ends in any way. One that
 * cannot be written is told by on_line; training goes on.
 *
 * With `resume` the fit goes on from the newest checkpoint: weights, optimizer, learning rate, loss
 * scale, means of the running epoch, states of stateful layers, order and place of the rows,
 * history. The weights at the end have the same bits as without the interruption: for the same
 * number of workers, or for any number if the strategy is reproducible. A newest file that is
 * damaged is set aside, and the one before it is used. Rows of a stream that cannot be found by
 * number are read again up to that place. Without a checkpoint the fit begins anew. */
typedef struct keel_checkpoint_options {
    size_t size;         /* sizeof(keel_checkpoint_options): KEEL_CHECKPOINT_OPTIONS */
    const char *folder;  /* made if it does not exist; of one fit at a time; NULL: no checkpoints */
    int64_t every_steps; /* 0: not by steps */
    double every_seconds; /* 0: not by time */
    int64_t keep;         /* how many files: 2 or more; 0: 2 */
    bool resume;          /* else a folder that has checkpoints is refused */
    /* Called with one line for the user: what the fit goes on from, what is damaged, what could not
     * be written. From the thread that called fit. NULL: history.note has the last of them. */
    void (*on_line)(void *context, const char *line);
    void *context;
    /* Whether a callback that has stopped the fit did so for a reason of outside, such as a signal:
     * a later fit goes on. NULL, or false: the training is complete. */
    bool (*interrupted)(void *context);
} keel_checkpoint_options;

#define KEEL_CHECKPOINT_OPTIONS .size = sizeof(keel_checkpoint_options)

/* Save a model while keel_fit trains it, from another thread than the one that called fit: for a
 * program that must end at once, even while the fit waits for rows. Training waits while the state
 * is copied.
 *
 * Returns  KEEL_OK: the file has the weights after the last finished step; KEEL_END: no fit trains
 *          the model, and nothing was written; KEEL_EARG: called in a callback of that fit, where
 *          keel_model_save serves; KEEL_EIO; KEEL_ENOMEM
 * Owns     nothing changes hands
 * Threads  any but the one that called fit; the fit may end meanwhile, but the model must live on
 * Cost     waits for the end of the current step or callback */
keel_status keel_fit_save(const keel_model *m, const char *path);

/* Claim a file that this program will write, so that no other program that claims it writes it too.
 * The claim is a lock on "PATH.lock", which ends with the process in any case.
 *
 * Returns  KEEL_OK, also where the file system has no locks; KEEL_EIO: another process has claimed
 *          the file, or its folder cannot be written; KEEL_EARG: out or path is NULL, or path is
 *          empty; KEEL_ENOMEM
 * Owns     the caller releases *out
 * Threads  any
 * Cost     waits up to a second for the end of another claim: a process that was killed needs a
 *          moment to end */
typedef struct keel_claim keel_claim;
keel_status keel_claim_take(keel_claim **out, const char *path);

/* Claim a file that one of several processes is to write, for the others: whoever calls this first
 * writes it, and the others learn that it is there. If the one that writes dies, the next one takes
 * over. First wait up to `seconds` for the file to appear.
 *
 * Returns  KEEL_OK: this process is to write the file, and then to release the claim; KEEL_END: the
 *          file is there; KEEL_EIO, KEEL_EARG, KEEL_ENOMEM: as keel_claim_take
 * Owns     the caller releases *out after KEEL_OK
 * Threads  any
 * Cost     waits while another process writes, up to 30 s */
keel_status keel_claim_first(keel_claim **out, const char *path, double seconds);

/* How long process `rank` lets others be before it claims a file first, once process `lost` does
 * not answer: `seconds` of keel_claim_first. If that is process 0, the others have their turn by
 * rank. Else process 0 is probably there and writes, for which it gets as much as `timeout`, at
 * most 10 s; little if this process is hurried, since whoever asked it to end will not wait for
 * long.
 *
 * Returns  seconds
 * Owns     nothing changes hands
 * Threads  any */
double keel_claim_turn(int rank, int lost, double timeout, bool hurried);

/* End a claim, and remove its lock file. NULL is allowed.
 *
 * Returns  nothing
 * Owns     frees c
 * Threads  any */
void keel_claim_release(keel_claim *c);

#ifdef __cplusplus
}
#endif
#endif
