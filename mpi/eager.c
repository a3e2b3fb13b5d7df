/* See eager.h. Both MPIs read these variables when they begin. That of Open MPI is of TCP alone;
 * that of UCX, which MPICH uses, is of all that it has. */
#include "eager.h"
#include <dirent.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT "1048576" /* bytes: 1 MiB */

/* A device that moves bytes by itself, once both processes have agreed. */
static bool has_rdma(void)
{
    DIR *d = opendir("/sys/class/infiniband");
    bool any = false;
    if (!d) return false;
    for (struct dirent *e; !any && (e = readdir(d));) any = e->d_name[0] != '.';
    closedir(d);
    return any;
}

/* As far as the launcher says it. */
static bool on_one_machine(void)
{
    static const char *const of[][2] = {
        /* processes of this machine, and all */
        { "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE" },
        { "MPI_LOCALNRANKS", "PMI_SIZE" },
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char *here = getenv(of[i][0]), *all = getenv(of[i][1]);
        if (here && all) return !strcmp(here, all);
    }
    return false;
}

int keel_mpi_eager(void)
{
    if (on_one_machine() || has_rdma()) return KEEL_MPI_PIECE_LONG;
#ifdef OPEN_MPI
    setenv("OMPI_MCA_btl_tcp_eager_limit", LIMIT, 0);
#else
    setenv("UCX_RNDV_THRESH", LIMIT, 0);
#endif
    return KEEL_MPI_PIECE_EAGER;
}
