/* The end of MPI in a program that has called MPI_Init_thread and calls MPI_Finalize, as keel/mpi.h
 * shows it, or that leaves both to Keel. tests/test_mpi_end.sh starts it under mpirun, in two
 * processes: ending CASE. Process 0 says when MPI_Finalize came back, and ends with 7. */
#include <keel/mpi.h>
#include <keel/mpi_open.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

keel_mpi_opener keel_mpi_open; /* of the library that this program is linked with */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void rest(time_t seconds)
{
    nanosleep(&(struct timespec){ .tv_sec = seconds }, NULL);
}

/* MPI calls this in MPI_Finalize, which therefore does not come to its end here. */
static int stay(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    rest(60);
    return MPI_SUCCESS;
}

static void stay_in_finalize(void)
{
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, stay, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

static void at_exit(void)
{
    puts("an exit function is called");
}

int main(int argc, char **argv)
{
    const char *const name = argc > 1 ? argv[1] : "";
    const bool kept = !strncmp(name, "keel-", 5); /* Keel begins and ends MPI */
    const char *const what = kept ? name + 5 : name;
    keel_process_group group;
    char error[512] = "";
    int level;
    if (!kept) MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    if (keel_mpi_open(&group, KEEL_MPI_ABI, error, sizeof error) < 0) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    const int rank = group.rank;
    if (!strcmp(what, "late") && rank == 1) rest(7); /* longer than the end of MPI may take */
    if (!strcmp(what, "stuck") && rank == 1) stay_in_finalize();
    if (!strcmp(what, "lost") && rank == 1) raise(SIGSTOP);
    const double begin = now();
    group.close(group.context, !strcmp(what, "lost"));
    const int code = kept ? MPI_SUCCESS : MPI_Finalize();
    if (rank != 0) return 0;
    if (!strcmp(what, "late")) atexit(at_exit);
    printf("came back with %s after %.1f s\n", code == MPI_SUCCESS ? "success" : "failure",
           now() - begin);
    return 7;
}
