/* See processes.h. The plug-in for the launcher's MPI is loaded when the program runs, so that a
 * keel without any MPI is the same program. */
#define _GNU_SOURCE /* dladdr, RTLD_DEFAULT */
#include "processes.h"
#include "launchers.h"
#include "progress.h"
#include "signals.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <keel/mpi_open.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { AGREEMENT = KEEL_EXCHANGES_MAX - 1 };
enum { FINALE = 5 }; /* seconds that MPI may take to end */
/* A process may read for long before it trains, or save for long afterwards, while others wait. */
static const double PATIENCE = 10;

/* What each process tells all others at the beginning and at the end. */
typedef struct word {
    int64_t code;   /* -1: goes on */
    uint64_t error; /* of the text of its first error; 0: none */
} word;

static keel_launch launch;
static const char *running = "";
static bool silent;
static keel_process_group group; /* size 0: this process is alone */
static bool connected;           /* there was a group */
static bool opening, given;      /* a strategy is being made of it; it was */
static bool failed;              /* it ended, or has to end, without waiting for others */
static bool ends_first;          /* if this process ends by a failure, so does the first one */
static double timeout = 60;
static int final_code;
static atomic_bool closed; /* the group, if there was one */

bool keel_processes_first(void)
{
    return launch.rank == 0;
}

int keel_processes_machines(void)
{
    int n = 0;
    for (int q = 0; q < group.count; q++) {
        const char *host = group.host(group.context, q);
        int p = 0;
        while (p < q && strcmp(group.host(group.context, p), host)) p++;
        n += p == q;
    }
    return n;
}

/* ---- silence --------------------------------------------------------------------------------- */

static void be_silent(void)
{
    char host[HOST_NAME_MAX + 1] = "?", who[HOST_NAME_MAX + 64];
    if (silent || launch.rank == 0) return;
    silent = true;
    gethostname(host, sizeof host - 1);
    snprintf(who, sizeof who, "rank %d (%s)", launch.rank, host);
    keel_complain_as(who);
    fflush(stdout);
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing < 0) return;
    dup2(nothing, STDOUT_FILENO);
    close(nothing);
}

/* Wait until the launcher ends this process, which it does when the first one has ended. */
static void linger(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)(1e9 * (seconds - floor(seconds))) };
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    while (nanosleep(&t, &t) && errno == EINTR) continue;
}

void keel_processes_leave(void)
{
    if (!silent || !keel_complaints_kept()) return;
    if (!connected && launch.local > 0) return; /* wrong usage: the first on this machine says it */
    const bool waits = failed && ends_first;
    linger(waits ? 5 : 1); /* the first process may have the same error, and then ends all */
    keel_complaints_print();
    if (waits) linger(25); /* while it saves what was learned: an early end would end it, too */
}

void keel_processes_abandon(void)
{
    keel_complaints_print();
    if (silent) linger(timeout + 30);
}

int keel_processes_look(const keel_command *c)
{
    launch = keel_launch_find();
    running = c->name;
    if (c->processes == KEEL_EACH || !launch.name || launch.size == 1) {
        launch.rank = 0;
        return -1;
    }
    if (c->processes == KEEL_TOGETHER) {
        be_silent();
        return -1;
    }
    if (launch.size == 0 || launch.rank > 0) return launch.size ? EXIT_USAGE : -1;
    return keel_complain(EXIT_USAGE,
                         "%s works in one process, but %s started %d; start it without a launcher",
                         c->name, launch.name, launch.size);
}

/* ---- the plug-in ----------------------------------------------------------------------------- */

static bool folder_of(char out[PATH_MAX], const char *file)
{
    char path[PATH_MAX];
    if (!file || !realpath(file, path)) return false;
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    *slash = 0;
    strcpy(out, path);
    return true;
}

/* Beside libkeel.so, where a build has it, or in its folder keel/, where it is installed. */
static bool find_plugin(char out[PATH_MAX], const char *name, char folder[PATH_MAX])
{
    static const char *const below[] = { "/keel", "" };
    Dl_info library;
    void *in_library = dlsym(RTLD_DEFAULT, "keel_fit");
    if (!in_library || !dladdr(in_library, &library) || !folder_of(folder, library.dli_fname))
        snprintf(folder, PATH_MAX, ".");
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        const int n = snprintf(out, PATH_MAX, "%s%s/%s", folder, below[i], name);
        if (n < PATH_MAX && !access(out, R_OK)) return true;
    }
    return false;
}

static int complain_missing(const char *name, const char *folder)
{
    const bool mpich = launch.mpi && !strcmp(launch.mpi, "mpich");
    char who[128] = "";
    if (launch.name && launch.size)
        snprintf(who, sizeof who, "%s started %d processes, but ", launch.name, launch.size);
    return keel_complain(
        EXIT_FAILED,
        "%sthe plug-in that connects processes is missing: no %s in %s/keel; install "
        "%s and build Keel again",
        who, name, folder, mpich ? "libmpich-dev and mpich" : "libopenmpi-dev and openmpi-bin");
}

static int open_group(void)
{
    char name[64], path[PATH_MAX], folder[PATH_MAX], text[1024], error[512] = "";
    keel_mpi_opener *open_it = NULL;
    snprintf(name, sizeof name, "libkeel_mpi%s%s.so", launch.mpi ? "_" : "",
             launch.mpi ? launch.mpi : "");
    if (!find_plugin(path, name, folder)) return complain_missing(name, folder);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* see keel/mpi_open.h */
    if (!plugin)
        return keel_complain(EXIT_FAILED, "%s", keel_printable(text, sizeof text, dlerror()));
    *(void **)&open_it = dlsym(plugin, KEEL_MPI_OPEN);
    if (!open_it) return keel_complain(EXIT_FAILED, "%s has no function " KEEL_MPI_OPEN, path);
    keel_process_group g = { 0 };
    if (open_it(&g, KEEL_MPI_ABI, error, sizeof error) < 0)
        return keel_complain(EXIT_FAILED, "%s: %s", path, error);
    if (launch.size && (g.count != launch.size || g.rank != launch.rank)) {
        const int count = g.count;
        g.close(g.context, true);
        return keel_complain(
            EXIT_FAILED,
            "%s started %d processes, but MPI connects %d: it is not the launcher of this "
            "MPI (%s)",
            launch.name, launch.size, count, name);
    }
    launch.rank = g.rank;
    launch.size = g.count;
    be_silent();
    group = g;
    connected = true;
    /* the launcher of MPICH ends only those on the machine of the one that failed */
    ends_first = !launch.mpi || strcmp(launch.mpi, "mpich") ||
                 !strcmp(g.host(g.context, 0), g.host(g.context, g.rank));
    return -1;
}

int keel_processes_begin(const keel_processes_options *o)
{
    char text[2048];
    const bool several = launch.name && launch.size != 1;
    if (!isnan(o->timeout) && !(o->timeout > 0 && o->timeout < 1e9))
        return keel_complain(EXIT_USAGE, "--timeout %g: must be above 0", o->timeout);
    if (!isnan(o->timeout) && !launch.name && !o->mpi)
        return keel_complain(EXIT_USAGE, "--timeout is for several processes, which mpirun starts; "
                                         "leave it out");
    if (!isnan(o->timeout)) timeout = o->timeout;
    if (!launch.name && keel_launch_refuses_tensorflow(text, sizeof text, running))
        return keel_complain(EXIT_USAGE, "%s", text);
    if (!several && !o->mpi) return -1;
    if (!launch.mpi && launch.name && !o->mpi)
        return keel_complain(EXIT_USAGE,
                             "%s started %d processes without connecting them; use srun "
                             "--mpi=pmix or --mpi=pmi2 (srun --mpi=list shows what there is), or "
                             "mpirun",
                             launch.name, launch.size);
    return open_group();
}

/* ---- agreements ------------------------------------------------------------------------------ */

static int lose(const char *error)
{
    char safe[512];
    const int rank = group.awaited(group.context, AGREEMENT);
    const char *host = rank >= 0 ? group.host(group.context, rank) : NULL;
    failed = true;
    keel_printable(safe, sizeof safe, error);
    if (rank < 0)
        return keel_complain(EXIT_FAILED, "the other processes cannot be reached: %s", safe);
    return keel_complain(EXIT_FAILED, "process %d (%s) does not answer%s%s", rank,
                         host ? host : "?", *error ? ": " : "", safe);
}

/* In place of the plug-in's own. Who is asked to end does not wait for long: Open MPI ends all
 * processes a second after SIGTERM, which it sends when one of them is gone, and by then the model
 * shall be saved. After Ctrl-C there is more time, for a long step of another process, unless it
 * comes twice. */
static int test_with_patience(void *context, int number, char *error, size_t size)
{
    static double since;
    const int got = group.test(context, number, error, size);
    const int asked = keel_signal_got();
    if (got != 0 || !asked) {
        since = 0;
        return got;
    }
    const double now = keel_now(), most = keel_signal_again() ? 0 : asked == SIGTERM ? 0.5 : 10;
    if (since == 0) since = now;
    if (now - since < most) return 0;
    snprintf(error, size, "this process is asked to end and has waited for %.1f s", now - since);
    since = 0;
    return -1;
}

/* Wait for the exchange. Returns -1, or an exit code after an error was printed. */
static int wait_for_all(void)
{
    char error[512] = "";
    const double end = keel_now() + PATIENCE * timeout;
    for (;;) {
        const int got = test_with_patience(group.context, AGREEMENT, error, sizeof error);
        if (got > 0) return -1;
        if (got < 0 || keel_now() > end) return lose(error);
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    }
}

/* Every process gets the words of all, all[count]. Returns as above. */
static int tell_all(const word *own, word *all)
{
    const size_t n = (size_t)group.count;
    const void **send = calloc(n, sizeof *send);
    void **receive = calloc(n, sizeof *receive);
    size_t *bytes = calloc(n, sizeof *bytes);
    char error[512] = "";
    int code;
    if (!send || !receive || !bytes || !all) {
        failed = true;
        code = keel_complain(EXIT_FAILED, "out of memory");
        goto out;
    }
    for (size_t q = 0; q < n; q++) {
        send[q] = own;
        receive[q] = &all[q];
        bytes[q] = sizeof *own;
    }
    all[group.rank] = *own;
    const keel_exchange e = { send, bytes, receive, bytes };
    code = group.start(group.context, AGREEMENT, &e, error, sizeof error) < 0 ? lose(error)
                                                                              : wait_for_all();
out:
    free(send);
    free(receive);
    free(bytes);
    return code;
}

/* All tell all how they stand. What a process of a lower rank says is not printed again: before the
 * work an equal error, after it any, since then all have failed for one reason. Returns the code of
 * the first that does not go on, else `code`. */
static int agree(int code, bool after)
{
    const word own = { code, keel_complaints_kind() };
    word *all = calloc((size_t)group.count, sizeof *all);
    bool told = false;
    int agreed = tell_all(&own, all);
    if (agreed < 0) {
        agreed = code;
        for (int q = 0; q < group.rank; q++)
            told = told || (after ? all[q].error != 0 : own.error && all[q].error == own.error);
        if (told)
            keel_complaints_drop();
        else
            keel_complaints_print();
        for (int q = group.count - 1; q >= 0; q--)
            if (all[q].code > 0) agreed = (int)all[q].code;
    }
    free(all);
    return agreed;
}

int keel_processes_signal(int number)
{
    if (!group.size || failed) return number;
    const word own = { number, 0 };
    word *all = calloc((size_t)group.count, sizeof *all);
    if (tell_all(&own, all) < 0)
        for (int q = group.count - 1; q >= 0; q--)
            if (all[q].code > 0) number = (int)all[q].code;
    free(all);
    return number;
}

static void *end_anyway(void *context)
{
    struct timespec t = { .tv_sec = FINALE };
    (void)context;
    while (nanosleep(&t, &t) && errno == EINTR) continue;
    if (!closed) _exit(final_code);
    return NULL;
}

/* All that was to be done is done, and every process knows it. Only the end of MPI is left, and
 * there MPICH before 4.2 may wait for ever: one process in a barrier of its launcher, where it no
 * longer answers the network, another for its answer. */
static void close_group(void)
{
    pthread_t thread;
    fflush(NULL);
    if (!failed && pthread_create(&thread, NULL, end_anyway, NULL) == 0) pthread_detach(thread);
    group.close(group.context, failed);
    closed = true;
    group = (keel_process_group){ 0 };
}

/* In place of the plug-in's own. If no strategy can be made, the group stays until
 * keel_processes_end, where all say why. */
static void close_all(void *context, bool by_failure)
{
    (void)context;
    failed = failed || by_failure;
    if (opening) return;
    if (!failed) final_code = agree(final_code, given);
    close_group();
}

int keel_processes_strategy(keel_strategy **out, const char *devices)
{
    keel_status s;
    if (!group.size) {
        s = keel_strategy_create(out, devices);
        return s < 0 ? keel_complain_status(s) : -1;
    }
    const int code = agree(-1, false);
    if (code >= 0) {
        final_code = code;
        close_group();
        return code;
    }
    keel_process_group shared = group;
    shared.timeout = timeout;
    shared.test = test_with_patience;
    shared.close = close_all;
    opening = true;
    s = keel_strategy_create_group(out, devices, &shared);
    opening = false;
    given = s >= 0;
    return s < 0 ? keel_complain_status(s) : -1;
}

int keel_processes_end(keel_strategy *s, int code)
{
    final_code = code;
    if (!s && group.size) close_all(group.context, false);
    keel_strategy_destroy(s);
    return final_code;
}
