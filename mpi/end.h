/* The end of MPI, which may not come: a process that is lost takes no part in it, and MPICH before
 * 4.2 sometimes waits for ever in MPI_Finalize between machines. */
#ifndef KEEL_MPI_END_H
#define KEEL_MPI_END_H
#include <mpi.h>
#include <stdbool.h>

/* MPI_Finalize, which ends as keel/mpi.h says. Returns MPI's code. */
int keel_mpi_end(void) __attribute__((visibility("hidden")));

/* Whether a call of MPI_Finalize in this process comes to that. */
bool keel_mpi_end_is_ours(void) __attribute__((visibility("hidden")));

/* That is so in all processes of MPI_COMM_WORLD, which `all` has: they meet before the end. All
 * call this. Returns MPI's code. */
int keel_mpi_end_together(MPI_Comm all) __attribute__((visibility("hidden")));

/* Some process may not answer any more: the end waits for nobody without a limit. */
void keel_mpi_end_lost(void) __attribute__((visibility("hidden")));

#endif
