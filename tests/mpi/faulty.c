/* A plug-in in front of another, for tests/test_lost_ranks.sh: it passes every call on, and at one
 * exchange of one process something goes wrong. The environment says what:
 *
 *     KEEL_FAULTY_PLUGIN  the plug-in that connects the processes
 *     KEEL_FAULTY         "RANK KIND K", K from 1; none: it only counts
 *     KEEL_FAULTY_COUNT   a file for the number of exchanges of process 0 that were started
 *
 * Kinds: `start` and `test`, that call fails at the K-th exchange; `silent`, the process takes no
 * part in it nor in any later one; `kill` and `stop`, the process gets SIGKILL or SIGSTOP when it
 * comes to this exchange; `after`, SIGKILL when the exchange is complete; `slow`, each exchange of
 * the process begins K ms late; `leak`, the process loses some memory there. */
#include <dlfcn.h>
#include <keel/mpi_open.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static keel_process_group real;
static int started, at;    /* at 0: nothing goes wrong in this process */
static int number_at = -1; /* of that exchange: others may begin before it ends */
static char kind[16];

static bool now(const char *what)
{
    return at > 0 && started == at && !strcmp(kind, what);
}

static bool silent(void)
{
    return at > 0 && started >= at && !strcmp(kind, "silent");
}

static int fail(char *error, size_t size)
{
    snprintf(error, size, "the test says so");
    return -1;
}

static void lose_memory(void)
{
    static void *volatile lost;
    lost = malloc(1234);
    if (lost) lost = NULL;
}

static int start(void *context, int number, const keel_exchange *e, char *error, size_t size)
{
    if (++started == at) number_at = number;
    if (!strcmp(kind, "slow"))
        nanosleep(&(struct timespec){ at / 1000, at % 1000 * 1000000L }, NULL);
    if (now("kill")) raise(SIGKILL);
    if (now("stop")) raise(SIGSTOP);
    if (now("leak")) lose_memory();
    if (now("start")) return fail(error, size);
    return silent() ? 0 : real.start(context, number, e, error, size);
}

static int test(void *context, int number, char *error, size_t size)
{
    const bool it = number == number_at;
    if (it && !strcmp(kind, "test")) return fail(error, size);
    if (silent()) return 0;
    const int got = real.test(context, number, error, size);
    if (got > 0 && it && !strcmp(kind, "after")) raise(SIGKILL);
    return got;
}

static void close_group(void *context, bool failed)
{
    const char *path = getenv("KEEL_FAULTY_COUNT");
    FILE *f = path && real.rank == 0 ? fopen(path, "w") : NULL;
    if (f) {
        fprintf(f, "%d\n", started);
        fclose(f);
    }
    real.close(context, failed);
}

keel_mpi_opener keel_mpi_open;
int keel_mpi_open(keel_process_group *out, int abi, char *error, size_t size)
{
    const char *path = getenv("KEEL_FAULTY_PLUGIN"), *fault = getenv("KEEL_FAULTY");
    keel_mpi_opener *open_it = NULL;
    int rank = -1, k = 0;
    void *plugin = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (plugin) *(void **)&open_it = dlsym(plugin, KEEL_MPI_OPEN);
    if (!open_it || open_it == keel_mpi_open) {
        snprintf(error, size, "KEEL_FAULTY_PLUGIN does not name a plug-in");
        return -1;
    }
    if (fault && sscanf(fault, "%d %15s %d", &rank, kind, &k) != 3) {
        snprintf(error, size, "KEEL_FAULTY is not RANK KIND K");
        return -1;
    }
    if (open_it(&real, abi, error, size) < 0) return -1;
    if (real.rank == rank) at = k;
    *out = real;
    out->start = start;
    out->test = test;
    out->close = close_group;
    return 0;
}
