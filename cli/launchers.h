/* Which launcher started this process, by its environment. */
#ifndef KEEL_CLI_LAUNCHERS_H
#define KEEL_CLI_LAUNCHERS_H
#include <stdbool.h>
#include <stddef.h>

typedef struct keel_launch {
    const char *name; /* "mpirun of Open MPI"; NULL: none */
    const char *mpi;  /* the MPI that connects its processes: "openmpi", "mpich"; NULL: not known */
    int rank, size;   /* size 0: not known */
    int local;        /* rank among those on this machine; 0 if not known */
    bool slurm;       /* it is srun */
} keel_launch;

keel_launch keel_launch_find(void);

/* Whether TF_CONFIG names several workers, as for MultiWorkerMirroredStrategy, or is damaged: then
 * `out` gets what is wrong and what to type instead. False: nothing is wrong. */
bool keel_launch_refuses_tensorflow(char *out, size_t size, const char *command);

#endif
