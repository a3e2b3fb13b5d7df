/* Several processes that train one model: what Keel asks of whatever connects them. MPI is one such
 * way (keel/mpi.h); a program may bring its own. */
#ifndef KEEL_PROCESS_GROUP_H
#define KEEL_PROCESS_GROUP_H
#include <keel/train.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KEEL_PROCESSES_MAX = 1024, KEEL_EXCHANGES_MAX = 64 };

/* What one process sends to each process, and where it receives. Entry q is for process q; of no
 * bytes there is no message, and one's own entry is not looked at. What p sends to q is as long as
 * what q expects of p. */
typedef struct keel_exchange {
    const void *const *send; /* [count] */
    const size_t *send_bytes;
    void *const *receive;
    const size_t *receive_bytes;
    /* NULL, or the n_with processes that may have bytes, each once: all others have none. A group
     * that looks at these entries alone spends no time on the others. */
    const int *with;
    int n_with;
} keel_exchange;

/* The functions are called by one thread at a time. Exchanges with one number follow each other in
 * the same order in all processes; those with different numbers are independent. `error` receives
 * one line, at most `size` bytes. */
typedef struct keel_process_group {
    size_t size; /* sizeof(keel_process_group): KEEL_PROCESS_GROUP */
    int rank, count;
    double timeout; /* seconds that a process may be silent before it counts as lost; 0: 60 */
    void *context;
    /* The name of the machine that a process runs on. */
    const char *(*host)(void *context, int rank);
    /* Start exchange `number` (0 to KEEL_EXCHANGES_MAX - 1). All it points to stays as it is until
     * `test` says that it is complete. 0; -1: failed. */
    int (*start)(void *context, int number, const keel_exchange *e, char *error, size_t size);
    /* Move it on. 1: complete; 0: not yet; -1: failed. */
    int (*test)(void *context, int number, char *error, size_t size);
    /* A process of which a message of this exchange has not come yet; -1: none. */
    int (*awaited)(void *context, int number);
    /* The end. failed: some process may not answer any more, so wait for nobody. */
    void (*close)(void *context, bool failed);
    /* The number by which people know a process; NULL: its rank. */
    int (*number)(void *context, int rank);
    /* Some process has failed or is silent: called before the memory of exchanges is freed that
     * have not ended, in which nothing may be written any more. `awaited` still answers. NULL: the
     * group writes there only while `start` and `test` run for that exchange. */
    void (*stop)(void *context);
} keel_process_group;

#define KEEL_PROCESS_GROUP .size = sizeof(keel_process_group)

/* Open devices of this process and share each step with those of all others. All processes of the
 * group call this, and afterwards call the same functions in the same order: fit, evaluate,
 * predict. The result is that of one process with all the devices. keel_strategy_devices and its
 * like tell of the devices of this process alone.
 *
 * Returns  KEEL_OK; as keel_strategy_create; KEEL_EREMOTE: another process failed or is silent, and
 *          the text names it
 * Owns     the caller destroys *out, which closes the group; after a failure the group is closed
 * Threads  one
 * Cost     one exchange of what devices there are
 * Source   tf.distribute.MultiWorkerMirroredStrategy */
keel_status keel_strategy_create_group(keel_strategy **out, const char *devices,
                                       const keel_process_group *group);

/* Use only the instructions that the processors of all processes have, so that they round alike: as
 * if each had called keel_instructions_limit with the least of their sets. All processes of the
 * group call this before keel_strategy_create_group, and before the first fit, evaluate, predict or
 * plan.
 *
 * Returns  KEEL_OK; KEEL_EREMOTE: another process failed or is silent; KEEL_EARG: the group does not
 *          make sense; KEEL_ENOMEM
 * Owns     the group stays open, and the caller's
 * Threads  one, while no thread trains
 * Cost     one exchange */
keel_status keel_instructions_common(const keel_process_group *group);

/* Change that timeout of the group, and how long a GPU of s may not answer before it counts as lost
 * (60 seconds at first).
 *
 * Returns  KEEL_OK; KEEL_EARG: not above 0
 * Owns     nothing changes hands
 * Threads  any, while nothing runs on s */
keel_status keel_strategy_timeout(keel_strategy *s, double seconds);

/* How gradients travel between processes. */
typedef enum keel_compress {
    KEEL_COMPRESS_NONE, /* as they are */
    KEEL_COMPRESS_BF16  /* as bfloat16: half the bytes of float32, 8 bits of precision */
} keel_compress;

/* How the gradients of each further step travel. With KEEL_COMPRESS_BF16 each process rounds its
 * own to bfloat16, to nearest, ties to even; they are added in float32, in the order of the
 * processes, and the sum is rounded once. Everybody uses that sum, so all processes have equal
 * weights, and a run that is repeated has the same bits. They are others than with
 * KEEL_COMPRESS_NONE, and depend on the number of processes. Infinity and NaN stay what they are,
 * and what is above the largest bfloat16, 3.39e38, becomes infinite. All gradients are rounded,
 * also those of small weights and of tables. Statistics, sums of losses and metrics, and the
 * optimizer's state are not.
 *
 * Returns  KEEL_OK; KEEL_EARG: not one of keel_compress, or s is reproducible. What trains later:
 *          KEEL_EARG: there is one process, so that nothing travels, or not all processes do the
 *          same; KEEL_EUNSUP: the model is not of float32
 * Owns     nothing changes hands
 * Threads  any, while nothing runs on s
 * Cost     the two roundings; they take less than sending the bytes unless the network is fast
 * Source   bf16_compress_hook of torch.distributed, Compression of Horovod */
keel_status keel_strategy_compress(keel_strategy *s, keel_compress how);

/* Whether each further fit keeps the optimizer's state in parts, one in each process (ZeRO, stage
 * 1), instead of all of it in every process. A process then moves only the weights of its part, and
 * sends them to all others: as many bytes travel, but the half of them only once backward has
 * ended. Weights, state and logs have the bits that they have without it.
 *
 * The state is gathered in process 0 for checkpoints, for ModelCheckpoint, and when the fit ends;
 * afterwards the models of all other processes are without it. A model that a callback of the
 * program's own saves is without it, too, unless a ModelCheckpoint before it has saved in the same
 * call. If a process is lost, its part of the state is: the others keep the weights of the last
 * step, which can be saved, and a run goes on from its last checkpoint.
 *
 * Returns  KEEL_OK. What trains later: KEEL_EARG: there is one process, so that nothing is in parts,
 *          or not all processes do the same; KEEL_EUNSUP: an optimizer that moves whole weights
 *          (Lamb, Muon, Adafactor), SwapEMAWeights, a keel_function, or a model whose state is not
 *          here, since a fit has left it in process 0
 * Owns     nothing changes hands
 * Threads  any, while nothing runs on s
 * Cost     two more agreements in a step
 * Source   Rajbhandari, Rasley, Ruwase, He 2020, arXiv 1910.02054, 5.1 */
keel_status keel_strategy_shard_optimizer(keel_strategy *s, bool shards);

/* Whether m has the state of its optimizer. False after a fit that has sharded it: in all processes
 * but the first, and in all that are left if one was lost; and after keel_model_load_without_state.
 * A file of m is then without it.
 *
 * Returns  whether it has
 * Owns     nothing changes hands
 * Threads  any that may read m */
bool keel_model_has_state(const keel_model *m);

/* In the place of a run that all processes make: this one has failed by itself, in code of the
 * program. The others do not wait for it: their run fails with the status and text of this process.
 * That is not for failures of Keel's own functions, which all processes know.
 *
 *     if (s < 0) return keel_strategy_leave(strategy, keel_error_set(s, "no camera"));
 *
 * Returns  the status, and its text stays
 * Owns     nothing changes hands
 * Threads  one, while nothing runs on s */
keel_status keel_strategy_leave(keel_strategy *s, keel_status status);

/* The number of processes, and which of them this is; 1 and 0 without a group.
 *
 * Returns  the number
 * Owns     nothing changes hands
 * Threads  any */
int keel_strategy_processes(const keel_strategy *s);
int keel_strategy_rank(const keel_strategy *s);

#ifdef __cplusplus
}
#endif
#endif
