/* See end.h. The MPI's function runs in a thread of its own, since nothing else can be done about a
 * function that does not return: to end the process there would take from the program what it wants
 * to do afterwards, and its exit code. The thread is left behind; it may poll for ever, so it only
 * gets time that nobody else wants. When the process ends, nothing that it uses is taken from it.
 *
 * A process that comes late is no reason to give up. So where nobody is lost, all meet first, for
 * as long as it takes, and the time begins then.
 *
 * A program comes here by the way that MPI has for tools: who is linked before the MPI has a
 * function MPI_Finalize, which calls the next one of that name. */
#define _GNU_SOURCE /* RTLD_NEXT, pthread_clockjoin_np, on_exit, SCHED_IDLE */
#include "end.h"
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Seconds that MPI may take. Launchers end all processes when one of them ends without
 * MPI_Finalize, so the first one, which mostly writes the files, has some time before the others
 * end. */
enum { FIRST = 5, OTHERS = 10 };

static bool lost;
static MPI_Comm meeting = MPI_COMM_NULL;

void keel_mpi_end_lost(void)
{
    lost = true;
}

int keel_mpi_end_together(MPI_Comm all)
{
    if (meeting != MPI_COMM_NULL) return MPI_SUCCESS;
    const int code = MPI_Comm_dup(all, &meeting);
    return code == MPI_SUCCESS ? MPI_Comm_set_errhandler(meeting, MPI_ERRORS_RETURN) : code;
}

/* ---- the MPI's own end ----------------------------------------------------------------------- */

static int finalize(void)
{
    int (*next)(void) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Finalize"); /* of another tool, or of the MPI */
    return next ? next() : PMPI_Finalize();
}

static void *run(void *code)
{
    if (!lost) MPI_Barrier(meeting); /* see meet_at_once: a new thread does not begin at once */
    *(int *)code = finalize();
    return NULL;
}

/* The functions that end libraries would meet a thread which still runs in them. */
static void leave(int code, void *context)
{
    (void)context;
    fflush(NULL);
    _exit(code);
}

static int end_within(int seconds)
{
    static int code; /* not on the stack: the thread may come back later */
    struct timespec until;
    sigset_t all, before;
    pthread_t thread;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&thread, NULL, run, &code);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed && !lost) return finalize();
    if (!failed) {
        if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0) return code;
        pthread_setschedparam(thread, SCHED_IDLE, &(struct sched_param){ 0 });
    }
    on_exit(leave, NULL);
    return lost ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* ---- before it ------------------------------------------------------------------------------- */

/* In MPI_Finalize of MPICH before 4.2 a process that is ready waits for its launcher, and no longer
 * answers the others, of which some may still need an answer. So all go in at once, out of
 * meetings without pauses; out of meet() they come up to a pause apart. Of ends of two processes
 * between namespaces, at a load of 25, 27 of 46 were given up without this and run's barrier, 1 of
 * 30 with both. It cannot take long, since all are here; if it does, the end itself has a limit. */
static void meet_at_once(void)
{
    enum { LOOKS = 1000000 };
    MPI_Request request;
    int done = 0;
    if (MPI_Ibarrier(meeting, &request) != MPI_SUCCESS) return;
    for (int i = 0; i < LOOKS && !done; i++)
        if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
}

/* Wait for all, without limit. False: that failed. */
static bool meet(void)
{
    MPI_Request request;
    long nap = 10000, most = 200000;
    int done = 0;
    if (MPI_Ibarrier(meeting, &request) != MPI_SUCCESS) return false;
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
        if (done) return true;
        nanosleep(&(struct timespec){ .tv_nsec = nap }, NULL);
        nap = 2 * nap < most ? 2 * nap : most;
    }
    return false;
}

int keel_mpi_end(void)
{
    int rank = 0, begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (!begun || ended || (!lost && meeting == MPI_COMM_NULL))
        return finalize(); /* as if this were not here */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!lost && !meet()) lost = true;
    if (!lost) meet_at_once();
    return end_within(rank == 0 ? FIRST : OTHERS);
}

int MPI_Finalize(void) __attribute__((alias("keel_mpi_end"), visibility("default")));

bool keel_mpi_end_is_ours(void)
{
    return dlsym(RTLD_DEFAULT, "MPI_Finalize") == (void *)(size_t)&keel_mpi_end;
}
