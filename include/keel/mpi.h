/* Training by several processes that MPI connects, on one machine or on many: for programs that are
 * compiled with mpicc, and linked with libkeel_mpi and libkeel (pkg-config keel-mpi).
 *
 *     MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
 *     keel_strategy_create_mpi(&strategy, "cpu", MPI_COMM_WORLD);
 *     keel_fit(model, strategy, data, &options, &history);     in all processes
 *     keel_strategy_destroy(strategy);
 *     MPI_Finalize();
 *
 * The end of MPI does not hold up the program. A process that is lost takes no part in
 * MPI_Finalize, and MPICH before 4.2 sometimes waits there for ever, between machines, although
 * nobody is lost. So libkeel_mpi has a function MPI_Finalize of its own, by the way that MPI has
 * for tools (it calls the next one of that name), and uses it itself where it ends MPI:
 *   - It waits for processes that come late, for as long as they take. All are awaited that
 *     MPI_Init has begun, if a strategy was made of all of them; else it is the MPI's own function.
 *   - Once all are there, or a fit has given up a process, the MPI has 5 s in process 0 and 10 s in
 *     the others, whose end might make the launcher end process 0.
 *   - After that it returns, with MPI_ERR_OTHER if a process was given up, and the program goes on:
 *     it may write its files, and its exit code is its own. MPI must not be called any more. What
 *     was registered with atexit before that is not called when the process ends.
 * After a loss save first, and then call MPI_Finalize in all processes: a process that ends without
 * it makes most launchers end the others. A program that is linked with its MPI before keel-mpi
 * does not get this function, and then no process of the job does, as long as nobody is lost.
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
 * here if the program has not done it, and then ends with the last such strategy, as said above;
 * but not after a process was given up. A process cannot begin it twice. With MPICH, an error in
 * messages also obeys the error handler of MPI_COMM_WORLD: a program that wants to hear of it sets
 * MPI_ERRORS_RETURN there; Keel does so where it begins MPI.
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
