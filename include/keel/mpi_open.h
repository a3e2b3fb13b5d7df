/* Connecting processes by an MPI that is chosen while the program runs: what a plug-in of Keel for
 * one MPI offers to dlopen. Such are libkeel_mpi_openmpi.so and libkeel_mpi_mpich.so, in the folder
 * keel/ beside libkeel.so. A program that is compiled with mpicc uses keel/mpi.h instead. */
#ifndef KEEL_MPI_OPEN_H
#define KEEL_MPI_OPEN_H
#include <keel/process_group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The function's name, and the number by which a plug-in refuses to work with another Keel. */
#define KEEL_MPI_OPEN "keel_mpi_open"
enum { KEEL_MPI_ABI = 4 };

/* Make a group of all processes that were started together, and begin MPI unless the program has:
 * keel_mpi_open(&group, KEEL_MPI_ABI, error, sizeof error). All of them call it. `error` receives
 * one line, at most `size` bytes. The group is used by one thread at a time; it is given to
 * keel_strategy_create_group, or ended by its `close`, which also ends MPI if this function began
 * it and nothing failed. Load the plug-in with RTLD_GLOBAL: some MPIs load further parts of
 * themselves that look there. 0; -1: failed. */
typedef int keel_mpi_opener(keel_process_group *out, int abi, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
