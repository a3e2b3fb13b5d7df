/* Processes that a launcher started (mpirun, mpiexec, srun), for programs that choose the MPI when
 * they run, as those in Python do. The plug-in for the launcher's MPI (keel/mpi_open.h) is loaded
 * for them.
 *
 *     keel_launched *l = NULL;
 *     keel_launch launch = keel_launch_find();
 *     if (launch.size > 1) keel_launched_open(&l, &launch, 0);
 *     ...
 *     if (l) keel_launched_group(l, &group);                    before each run, in all processes
 *     keel_strategy_create_group(&strategy, "cpu", &group);     which closes that group at its end
 *     ...
 *     keel_launched_close(l, false);                            when the program ends */
#ifndef KEEL_LAUNCHER_H
#define KEEL_LAUNCHER_H
#include <keel/process_group.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_launch {
    const char *name; /* "mpirun of Open MPI"; NULL: none */
    const char *mpi;  /* the MPI that connects its processes: "openmpi", "mpich"; NULL: not known */
    int rank, size;   /* size 0: not known */
    int local;        /* rank among those on this machine; 0 if not known */
    bool slurm;       /* it is srun */
} keel_launch;

/* Which launcher started this process, by its environment.
 *
 * Returns  what is known; no name: nothing
 * Owns     the texts are static
 * Threads  any that may read the environment */
keel_launch keel_launch_find(void);

/* Whether TF_CONFIG names several workers, as for MultiWorkerMirroredStrategy, or is damaged: then
 * `out` gets what is wrong and what to type instead of `command`, "keel fit ...".
 *
 * Returns  false: nothing is wrong
 * Owns     nothing changes hands
 * Threads  any that may read the environment */
bool keel_launch_refuses_tensorflow(char *out, size_t size, const char *command);

/* A group of all processes of the launch. asked: the caller wants MPI, so a launcher that is not
 * known, or none, is no reason to refuse. All processes call this, as often as they like: each
 * group is one of its own.
 *
 * Returns  KEEL_OK; KEEL_EARG: the launcher has not connected its processes; KEEL_EIO: the plug-in
 *          is missing or damaged; KEEL_EREMOTE: MPI failed, or connects other processes
 * Owns     the caller closes *out, or gives it to keel_strategy_create_group
 * Threads  one, which is that of all that is done with the group
 * Cost     what MPI_Init takes, the first time */
keel_status keel_launch_connect(keel_process_group *out, const keel_launch *l, bool asked);

/* All processes of a launch, for what they say to each other between runs. */
typedef struct keel_launched keel_launched;

/* patience: seconds that others may take to come to a call; 0: 1800.
 *
 * Returns  KEEL_OK; as keel_launch_connect; KEEL_ENOMEM
 * Owns     the caller ends *out by keel_launched_close
 * Threads  one, also for all that is done with it
 * Cost     as keel_launch_connect */
keel_status keel_launched_open(keel_launched **out, const keel_launch *launch, double patience);

/* The number of processes, which of them this is, and the machine of each.
 *
 * Returns  the number; a text that lives as long as l
 * Owns     nothing changes hands
 * Threads  any */
int keel_launched_count(const keel_launched *l);
int keel_launched_rank(const keel_launched *l);
const char *keel_launched_host(const keel_launched *l, int rank);

/* How each process stands: a status, for a failure with the text of its error (keel_error_set). All
 * processes come here before what needs all of them, so that nobody waits for one that has failed.
 *
 * Returns  KEEL_OK: all are well; the failure of the first that is not, whose text names it;
 *          KEEL_EREMOTE: a process is lost
 * Owns     nothing changes hands
 * Threads  one
 * Cost     an exchange, and the time until all have come */
keel_status keel_launched_agree(keel_launched *l, keel_status mine);

/* Each process gets what all have: all [count of processes][bytes], with its own.
 *
 * Returns  KEEL_OK; KEEL_EREMOTE: a process is lost
 * Owns     nothing changes hands
 * Threads  one */
keel_status keel_launched_gather(keel_launched *l, const void *own, void *all, size_t bytes);

/* All get the bytes that process 0 has. As above.
 *
 * Returns  KEEL_OK; KEEL_EREMOTE: a process is lost
 * Owns     nothing changes hands
 * Threads  one
 * Cost     as many rounds as the logarithm of the number of processes, each of all bytes */
keel_status keel_launched_broadcast(keel_launched *l, void *data, size_t bytes);

/* A further group of the same processes, for a strategy, as by keel_launch_connect.
 *
 * Returns  as keel_launch_connect
 * Owns     the caller closes *out, or gives it to keel_strategy_create_group
 * Threads  one */
keel_status keel_launched_group(const keel_launched *l, keel_process_group *out);

/* The end, which is also that of MPI unless the program has begun it. failed: this process, or one
 * that it waits for, ends by a failure, so nobody is waited for. NULL is allowed.
 *
 * Returns  nothing
 * Owns     l is freed; strategies of its groups are destroyed before
 * Threads  one */
void keel_launched_close(keel_launched *l, bool failed);

#ifdef __cplusplus
}
#endif
#endif
