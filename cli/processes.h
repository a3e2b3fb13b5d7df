/* A command in several processes that a launcher started: mpirun, mpiexec, srun. Those of a command
 * with KEEL_TOGETHER share each step. The first one (rank 0) prints and writes files; the others
 * are silent, except for errors that it does not have, which begin with "rank 3 (host): ". All end
 * with one exit code. */
#ifndef KEEL_CLI_PROCESSES_H
#define KEEL_CLI_PROCESSES_H
#include "command.h"
#include <keel/process_group.h>

typedef struct keel_processes_options {
    bool mpi, apart;
    double timeout;   /* seconds; NAN: not given */
    int instructions; /* which word of the option */
} keel_processes_options;

#define KEEL_MPI_ROW(T, member)                                                                    \
    KEEL_OPTION_ROW(T, member.mpi, "mpi", 0, false, KEEL_OPTION_FLAG, NULL, NULL,                  \
                    "connect the processes by MPI also where no launcher is recognised; those "    \
                    "that mpirun, mpiexec or srun started find each other without it")
#define KEEL_TIMEOUT_ROW(T, member)                                                                \
    KEEL_OPTION_ROW(T, member.timeout, "timeout", 0, false, KEEL_OPTION_REAL, "S", NULL,           \
                    "of several processes, and of GPUs: end with an error if one is silent for S " \
                    "seconds (default: 60)")
#define KEEL_PROCESSES_ROWS(T, member)                                                             \
    KEEL_MPI_ROW(T, member),                                                                       \
        KEEL_OPTION_ROW(T, member.apart, "apart", 0, false, KEEL_OPTION_FLAG, NULL, NULL,          \
                        "processes of one machine share each step by copies, each with its own "   \
                        "devices (default: the first one runs the devices of all, and the "        \
                        "others wait, which is faster)"),                                          \
        KEEL_TIMEOUT_ROW(T, member),                                                               \
        KEEL_OPTION_ROW(T, member.instructions, "instructions", 0, false, KEEL_OPTION_CHOICE,      \
                        "own|common|base|avx2|avx512|avx512_bf16|amx", "own",                      \
                        "what the processor may compute with: all that it has (own); of several "  \
                        "processes what all of them have (common), since they are refused where "  \
                        "they differ; or no more than the set that is named, so that another "     \
                        "machine computes the same")

/* The words are in the order of keel_compress, which _process_options.c asserts. */
#define KEEL_COMPRESS_ROW(T, member)                                                               \
    KEEL_OPTION_ROW(T, member, "compress", 0, false, KEEL_OPTION_CHOICE, "none|bf16", "none",      \
                    "how gradients travel between processes: as they are (none), or as bfloat16 "  \
                    "(bf16), in half the bytes: each process rounds its own to 8 bits of "         \
                    "precision, they are added in float32, and all use the same rounded sum, so "  \
                    "weights stay equal; not with --reproducible")

#define KEEL_SHARD_ROW(T, member)                                                                  \
    KEEL_OPTION_ROW(T, member, "shard-optimizer", 0, false, KEEL_OPTION_FLAG, NULL, NULL,          \
                    "each process keeps a part of the optimizer's state (ZeRO, stage 1) instead "  \
                    "of all of it, moves its part of the weights and sends them to the others; "   \
                    "to the same bits. If a process is lost, a part of the state is: the model "   \
                    "is saved without it, and --resume goes on from the last checkpoint")

/* Refuse --compress with --reproducible, and where nothing travels; and --shard-optimizer there.
 * otherwise: what to do, if there is one process; NULL: there are several. Returns as
 * keel_processes_look. */
int keel_processes_check_compress(int compress, bool reproducible, const char *otherwise);
int keel_processes_check_shards(bool shards, const char *otherwise);

/* Both of a fit: set them, where processes share steps by messages; say in the first line, which
 * this ends, and in the report what they do. Returns as above. */
typedef struct keel_sharing {
    int compress;
    bool shard_optimizer;
} keel_sharing;
int keel_sharing_set(const keel_sharing *o, keel_strategy *s);
void keel_sharing_begin(const keel_sharing *o, const keel_strategy *s);
void keel_sharing_report(const keel_sharing *o, const keel_strategy *s, const keel_model *m);

/* Before options are parsed: see whether and where a launcher started this process, and be silent
 * if others speak. Returns -1 to continue, or an exit code after an error was printed. */
int keel_processes_look(const keel_command *c);

/* Before keel_processes_begin: this is a fit, with checkpoints in that folder (NULL: none). */
void keel_processes_train(const char *folder);

/* Connect the processes, or see that there is only this one. Those of one machine act as one
 * (keel/machines.h); in one that follows another this returns when the work is done, with its exit
 * code. devices: as for keel_processes_strategy. Returns as above. */
int keel_processes_begin(const keel_processes_options *o, const char *devices);

/* True in rank 0 and in a process that is alone. */
bool keel_processes_first(void);

/* How many processes were started, and on how many machines those are that do not follow; 1 and 0
 * without other processes. */
int keel_processes_started(void);
int keel_processes_machines(void);
/* Whether some of one machine work apart, although nobody asked for that. */
bool keel_processes_apart(const keel_strategy *s);

/* True if there are others. */
bool keel_processes_several(void);

/* The group of all, for what is no step; NULL: this process is alone. */
const keel_process_group *keel_processes_group(void);

/* All processes come here, or fail before: *number becomes that of process 0. Alone, it stays.
 * Returns as above. */
int keel_processes_agree(int64_t *number);

/* All get the bytes that process 0 has. Returns as above. */
int keel_processes_broadcast(void *data, size_t n_bytes);

/* As keel_strategy_create, for the devices of all processes; all of them are here, or have failed
 * and are in keel_processes_end. Returns as above. */
int keel_processes_strategy(keel_strategy **out, const char *devices);

/* After a fit that was stopped: the signal that the first of the processes with one got, 0: none.
 */
int keel_processes_signal(int got);

/* Destroy the strategy (NULL: it was not made), and agree on an exit code, that of the first
 * process that failed. Returns it. */
int keel_processes_end(keel_strategy *s, int code);

/* ---- in place of the first process ----------------------------------------------------------- */

/* A number that all processes have in common: the largest that one of them wants, once there is a
 * strategy; of the name under which the model is saved if it is lost. 0: there are no others. */
void keel_processes_number(int least);
int keel_processes_number_agreed(void);

/* After another process was lost: seconds until this one saves what was learned, unless another has
 * by then. -1: it does not, since it is the first process, which saves at once, or none is lost. */
double keel_processes_turn(void);
bool keel_processes_first_lost(void); /* after keel_processes_end */

/* This process has saved it in place of the first one: print errors now. */
void keel_processes_speak(void);

/* Another process has saved it and says so: nothing is printed here. */
void keel_processes_told(void);

/* Before the process ends: print errors that were kept, since the first process may have the same.
 */
void keel_processes_leave(void);

/* Before a process ends at once, while its work hangs: print errors, and, unless it is the first,
 * wait until that one has missed it and saved what was learned, since some launchers end all at
 * once. */
void keel_processes_abandon(void);

#endif
