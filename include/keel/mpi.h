/* Training by several processes that MPI connects, on one machine or on many: for programs that are
 * compiled with mpicc, and linked with libkeel_mpi and libkeel (pkg-config keel-mpi).
 *
 *     MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
 *     keel_strategy_create_mpi(&strategy, "cpu", MPI_COMM_WORLD);
 *     keel_fit(model, strategy, data, &options, &history);     in all processes
 *     keel_strategy_destroy(strategy);
 *     MPI_Finalize();
 *
 * libkeel_mpi is made for one MPI, that of the mpicc found when Keel was built; libkeel_mpi_openmpi
 * and libkeel_mpi_mpich are for the one in their name. */
#ifndef KEEL_MPI_H
#define KEEL_MPI_H
#include <keel/process_group.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* keel_strategy_create_group with the processes of `comm`, of which a copy is made, so that
 * messages of Keel never meet those of the program. All processes of comm call this. MPI is begun
 * here if the program has not done it, and then ends with the last such strategy: a process cannot
 * begin it twice. With MPICH, an error in messages also obeys the error handler of MPI_COMM_WORLD:
 * a program that wants to hear of it sets MPI_ERRORS_RETURN there; Keel does so where it begins
 * MPI.
 *
 * Returns  KEEL_OK; as keel_strategy_create_group; KEEL_EARG: comm is no intracommunicator of at most
 *          KEEL_PROCESSES_MAX processes, MPI has ended, or was begun for one thread only
 * (MPI_Init): Keel's threads need MPI_THREAD_FUNNELED or more; KEEL_EREMOTE: MPI failed
 * Owns     the caller destroys *out, before MPI_Finalize; comm stays the caller's
 * Threads  one; with MPI_THREAD_FUNNELED the thread that began MPI, also for all that is done with *out
 * Cost     copies comm; one exchange of the names of machines; 5.5 KiB for each process of comm
 * Source   tf.distribute.MultiWorkerMirroredStrategy */
keel_status keel_strategy_create_mpi(keel_strategy **out, const char *devices, MPI_Comm comm);

#ifdef __cplusplus
}
#endif
#endif
