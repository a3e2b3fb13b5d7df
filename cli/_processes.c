/* See processes.h. How they are connected: keel/launcher.h; how they tell each other something:
 * telling.h. */
#include "processes.h"
#include "follow.h"
#include "process_options.h"
#include "progress.h"
#include "signals.h"
#include "telling.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FINALE = 5 }; /* seconds that MPI may take to end */

/* What each process tells all others at the beginning and at the end. */
typedef struct word {
    int64_t code;    /* -1: goes on */
    uint64_t error;  /* of the text of its first error; 0: none */
    int64_t number;  /* of keel_processes_agree */
    int64_t common;  /* whether it asks for the instructions that all have */
    int64_t of_name; /* see keel_processes_number */
} word;

static keel_launch launch;
static const char *running = "";
static bool silent;
static keel_process_group group; /* size 0: this process is alone */
static int (*plain_test)(void *context, int number, char *error, size_t size); /* of it */
static keel_machines *machines; /* whose group it then is; NULL: --apart */
static bool connected;          /* there was a group */
static bool opening, given;     /* a strategy is being made of it; it was */
static bool failed;             /* it ended, or has to end, without waiting for others */
static bool common;             /* --instructions common, of any process */
static int of_name = 1;         /* see keel_processes_number */
static double timeout = 60;
static bool trains;             /* this is a fit, */
static const char *checkpoints; /* which writes checkpoints there; NULL: none */
static int final_code;
static int lost = -1;      /* once the group is closed: the process that did not answer */
static bool spoke;         /* it has saved in place of the first process, and said so */
static bool repeats;       /* another process of this machine has said what this one would */
static bool ends_first;    /* if this process ends by a failure, so does the first one */
static atomic_bool closed; /* the group, if there was one */

bool keel_processes_first(void)
{
    return launch.rank == 0;
}

bool keel_processes_several(void)
{
    return group.size && group.count > 1;
}

const keel_process_group *keel_processes_group(void)
{
    return group.size ? &group : NULL;
}

int keel_processes_started(void)
{
    return connected ? launch.size : 1;
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

bool keel_processes_apart(const keel_strategy *s)
{
    return machines && keel_strategy_processes(s) > keel_processes_machines();
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
    if (spoke) linger(1);
    if (!silent || !keel_complaints_kept()) return;
    if (!connected && launch.local > 0) return; /* wrong usage: the first on this machine says it */
    const bool waits = failed && ends_first;
    /* another process may have the same error, and its launcher then ends all */
    linger(waits || repeats ? 5 : 1);
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

/* ---- one group of all, and its end ------------------------------------------------------------
 */

static int open_group(bool asked)
{
    const keel_status s = keel_launch_connect(&group, &launch, asked);
    if (s < 0) {
        const int code = keel_complain_status(s);
        /* srun tells all of its processes apart, so one of them says it for all */
        if (s == KEEL_EARG && launch.rank > 0) keel_complaints_drop();
        return code;
    }
    launch.rank = group.rank;
    launch.size = group.count;
    be_silent();
    connected = true;
    /* the launcher of MPICH ends only those on the machine of the one that failed */
    ends_first = !launch.mpi || strcmp(launch.mpi, "mpich") ||
                 !strcmp(group.host(group.context, 0), group.host(group.context, group.rank));
    return -1;
}

/* In place of the plug-in's own. Who is asked to end does not wait for long: Open MPI ends all
 * processes a second after SIGTERM, which it sends when one of them is gone, and by then the model
 * shall be saved. After Ctrl-C there is more time, for a long step of another process, unless it
 * comes twice; also after SIGTERM of Slurm, which waits for 30 s, its KillWait. */
static int test_with_patience(void *context, int number, char *error, size_t size)
{
    static double since;
    const int got = plain_test(context, number, error, size);
    const int asked = keel_signal_got();
    if (got != 0 || !asked) {
        since = 0;
        return got;
    }
    const bool mild = asked != SIGTERM || launch.slurm;
    const double now = keel_now(), most = keel_signal_again() ? 0 : mild ? 10 : 0.5;
    if (since == 0) since = now;
    if (now - since < most) return 0;
    snprintf(error, size, "this process is asked to end and has waited for %.1f s", now - since);
    since = 0;
    return -1;
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
static void end_in_any_case(int code)
{
    pthread_t thread;
    final_code = code;
    fflush(NULL);
    if (!failed && pthread_create(&thread, NULL, end_anyway, NULL) == 0) pthread_detach(thread);
}

static void close_group(int code)
{
    end_in_any_case(code);
    group.close(group.context, failed);
    group = (keel_process_group){ 0 };
    keel_machines_end(machines, code, failed);
    machines = NULL;
    closed = true;
}

static int join_machines(const char *devices)
{
    const keel_status s = keel_machines_join(&machines, &group, devices, keel_started_with());
    group = (keel_process_group){ 0 };
    failed = s < 0;
    if (s < 0) return keel_complain_status(s);
    if (keel_machines_together(machines)) {
        group = keel_machines_group(machines);
        return -1;
    }
    int code = keel_follow(machines);
    const bool gone = code < 0;
    failed = gone && keel_machines_group(machines).count > 1; /* other machines save */
    if (gone && !failed && trains) {
        char text[512], left[PATH_MAX + 256];
        snprintf(text, sizeof text, "%s", keel_error());
        keel_follow_left(left, sizeof left, checkpoints);
        code = keel_complain(EXIT_FAILED, "%s; %s", text, left);
        repeats = keel_machines_place(machines) > 0;
        if (!repeats) keel_complaints_print(); /* while there is time */
    } else if (gone) {
        code = keel_complain_status(KEEL_EREMOTE);
    }
    end_in_any_case(code);
    keel_machines_end(machines, code, gone);
    machines = NULL;
    closed = true;
    return code;
}

void keel_processes_train(const char *folder)
{
    trains = true;
    checkpoints = folder;
}

int keel_processes_begin(const keel_processes_options *o, const char *devices)
{
    const bool several = launch.name && launch.size != 1;
    const int wrong = keel_processes_check(o, &launch, running, devices);
    if (wrong >= 0) return wrong;
    if (!isnan(o->timeout)) timeout = o->timeout;
    common = keel_processes_limit(o);
    if (!several && !o->mpi) return -1;
    int code = open_group(o->mpi);
    group.timeout = timeout;
    if (code < 0 && !o->apart) code = join_machines(devices);
    plain_test = group.test;
    if (group.size) group.test = test_with_patience;
    return code;
}

/* ---- in place of the first process ----------------------------------------------------------- */

void keel_processes_number(int least)
{
    if (least > of_name) of_name = least;
}

int keel_processes_number_agreed(void)
{
    return connected ? of_name : 0;
}

/* A process that an exchange waits for, since it was given up; -1: none. */
static int find_lost(void)
{
    int rank = -1;
    for (int i = 0; group.size && rank < 0 && i < KEEL_EXCHANGES_MAX; i++)
        rank = group.awaited(group.context, i);
    return rank;
}

double keel_processes_turn(void)
{
    const int rank = group.size ? find_lost() : lost;
    if (launch.rank == 0 || rank < 0) return -1;
    return keel_claim_turn(launch.rank, rank, timeout, keel_signal_got() != 0);
}

bool keel_processes_first_lost(void)
{
    return launch.rank > 0 && lost == 0;
}

/* The launcher may end the others when this one ends, and the first one may be there after all. */
void keel_processes_speak(void)
{
    keel_complaints_print();
    spoke = true;
}

void keel_processes_told(void)
{
    keel_complaints_drop();
    linger(1); /* until the one that saved has said so */
}

/* ---- agreements ------------------------------------------------------------------------------ */

/* Every process gets the words of all, all[count]. Returns -1, or an exit code after an error was
 * printed. */
static int tell_all(const word *own, word *all)
{
    const int code = keel_tell_all(&group, own, all, sizeof *own);
    failed = failed || code >= 0;
    return code;
}

/* All tell all how they stand. What a process of a lower rank says is not printed again: before the
 * work an equal error, after it any, since then all have failed for one reason. Returns the code of
 * the first that does not go on, else `code`. */
static int agree(int code, bool after, int64_t *number)
{
    const word own = { code, keel_complaints_kind(), number ? *number : 0, common, of_name };
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
        for (int q = group.count - 1; q >= 0; q--) {
            if (all[q].code > 0) agreed = (int)all[q].code;
            common = common || all[q].common;
            if (all[q].of_name > of_name && all[q].of_name < 1000) of_name = (int)all[q].of_name;
        }
        if (number) *number = all[0].number;
    }
    free(all);
    return agreed;
}

int keel_processes_agree(int64_t *number)
{
    if (!group.size) return -1;
    const int code = agree(-1, false, number);
    if (code >= 0) close_group(code);
    return code;
}

int keel_processes_broadcast(void *data, size_t n_bytes)
{
    if (!group.size) return -1;
    const int code = keel_tell_from_first(&group, data, n_bytes);
    failed = failed || code >= 0;
    return code;
}

int keel_processes_signal(int got)
{
    if (!group.size || failed) return got;
    const word own = { .code = got };
    word *all = calloc((size_t)group.count, sizeof *all);
    if (tell_all(&own, all) < 0)
        for (int q = group.count - 1; q >= 0; q--)
            if (all[q].code > 0) got = (int)all[q].code;
    free(all);
    return got;
}

/* In place of the plug-in's own. If no strategy can be made, the group stays until
 * keel_processes_end, where all say why. */
static void close_all(void *context, bool by_failure)
{
    (void)context;
    failed = failed || by_failure;
    if (opening) return;
    if (!failed) final_code = agree(final_code, given, NULL);
    if (failed) lost = find_lost();
    close_group(final_code);
}

int keel_processes_strategy(keel_strategy **out, const char *devices)
{
    keel_status s;
    if (!group.size) {
        s = keel_strategy_create(out, devices);
        if (s >= 0) s = keel_strategy_timeout(*out, timeout);
        return s < 0 ? keel_complain_status(s) : -1;
    }
    const int code = keel_processes_agree(&(int64_t){ 0 });
    if (code >= 0) return code;
    keel_process_group shared = group;
    shared.close = close_all;
    opening = true;
    s = common ? keel_instructions_common(&shared) : KEEL_OK;
    if (s < 0)
        close_all(shared.context, true);
    else
        s = keel_strategy_create_group(out, machines ? keel_machines_devices(machines) : devices,
                                       &shared);
    if (s >= 0) s = keel_strategy_timeout(*out, timeout);
    opening = false;
    given = s >= 0;
    return s < 0 ? keel_complain_status(s) : -1;
}

int keel_processes_end(keel_strategy *s, int code)
{
    final_code = code;
    keel_strategy_destroy(s); /* closes a group of several */
    if (group.size) close_all(group.context, false);
    return final_code;
}
