/* See keel/machines.h. Two exchanges between all processes decide: in the first each says where it
 * is and what it was started with; in the second the first process of each machine says whether it
 * may use the cores of the others. After that only those first ones use the group, through a view
 * that knows them by new ranks, until each tells its followers how it has ended. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "train/machines.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "train/gpus_apart.h"
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FOLLOW = KEEL_EXCHANGE_FOLLOW }; /* in which followers learn the end */
enum { BEGINNING = 10 };                /* timeouts that processes may take to begin */

/* An exchange of the view, as the group of all wants it. */
typedef struct arrays {
    const void **send; /* [count of all], as the next four */
    void **receive;
    size_t *send_bytes, *receive_bytes;
    int *with; /* [n_with] whose entries are those of the last exchange; all others are 0 */
    int n_with;
} arrays;

struct keel_machines {
    keel_process_group all;
    char *own, *devices; /* of this process, and of all that act as it; NULL: as it has */
    int *followed;       /* [all.count] the process that each follows, or itself */
    int *first;          /* [n_first] of all that do not follow, by their rank in the view */
    int n_first, rank, together;         /* rank: of this process in the view */
    arrays exchange[KEEL_EXCHANGES_MAX]; /* made when a number is used for the first time */
    bool failed;

    int64_t pid;  /* of the process that this one follows */
    int64_t word; /* its code */
    int64_t stopped_since;
};

/* ---- who is where ---------------------------------------------------------------------------- */

/* 0: this process cannot tell which others it can see. */
static uint64_t machine_of(const keel_process_group *g)
{
    static const char *const space[] = { "/proc/self/ns/pid", "/proc/self/ns/mnt" };
    char text[512] = "", link[128];
    FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!boot) return 0;
    const bool read = fgets(text, 64, boot);
    fclose(boot);
    if (!read) return 0;
    for (size_t i = 0; i < sizeof space / sizeof *space; i++) {
        const ssize_t n = readlink(space[i], link, sizeof link - 1);
        if (n < 0) return 0;
        link[n] = 0;
        strcat(text, link);
    }
    const char *host = g->host(g->context, g->rank);
    const uint64_t both[2] = { keel_fingerprint(text, strlen(text)),
                               host ? keel_fingerprint(host, strlen(host)) : 0 };
    return keel_fingerprint(both, sizeof both);
}

static void set_of(cpu_set_t *out, const uint64_t mask[KEEL_MASK_WORDS])
{
    CPU_ZERO(out);
    for (int i = 0; i < KEEL_CORES_MAX && i < CPU_SETSIZE; i++)
        if (mask[i / 64] >> (i % 64) & 1) CPU_SET(i, out);
}

static void introduce(keel_neighbour *own, const keel_machines *m, uint64_t alike)
{
    cpu_set_t set;
    keel_cores cores;
    const uint64_t what[] = { alike, keel_fingerprint(m->own, strlen(m->own)),
                              keel_gpus_named(m->own) ? keel_gpus_seen() : 0 };
    own->pid = getpid();
    own->alike = keel_fingerprint(what, sizeof what);
    if (keel_cores_find(&cores) < 0 || sched_getaffinity(0, sizeof set, &set)) return;
    for (int i = 0; i < cores.n; i++) {
        if (cores.os[i] >= KEEL_CORES_MAX || cores.os[i] >= CPU_SETSIZE) return;
        if (CPU_ISSET(cores.os[i], &set)) own->core[own->n_core++] = (uint16_t)cores.os[i];
    }
    for (int i = 0; i < KEEL_CORES_MAX && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set)) own->mask[i / 64] |= (uint64_t)1 << (i % 64);
    own->machine = machine_of(&m->all);
}

static void find_followed(keel_machines *m, const keel_neighbour *all)
{
    for (int q = 0; q < m->all.count; q++) {
        int p = 0;
        while (p < q && (!all[q].machine || all[p].machine != all[q].machine ||
                         all[p].alike != all[q].alike))
            p++;
        m->followed[q] = p;
    }
}

/* ---- the cores of all ------------------------------------------------------------------------ */

/* Let this thread, and those it will start, run on the processors of all. False: the operating
 * system does not allow it, at least not on each of them. */
static bool widen(const uint64_t mask[KEEL_MASK_WORDS])
{
    cpu_set_t wanted, got;
    set_of(&wanted, mask);
    return !sched_setaffinity(0, sizeof wanted, &wanted) &&
           !sched_getaffinity(0, sizeof got, &got) && CPU_EQUAL(&got, &wanted);
}

/* Opens the cores of those that follow this process, and makes the text of the devices of all.
 * False: they had better stay by themselves. */
static bool take(keel_machines *m, const keel_neighbour *all)
{
    const int me = m->all.rank;
    const keel_neighbour **of = keel_calloc((size_t)m->all.count, sizeof *of);
    uint64_t mask[KEEL_MASK_WORDS] = { 0 };
    cpu_set_t before;
    keel_cores cores;
    int n = 0;
    for (int q = me; of && q < m->all.count; q++) {
        if (m->followed[q] != me) continue;
        of[n++] = &all[q];
        for (int i = 0; i < KEEL_MASK_WORDS; i++) mask[i] |= all[q].mask[i];
    }
    if (n > 1 && !sched_getaffinity(0, sizeof before, &before)) {
        if (widen(mask) && keel_cores_find(&cores) >= 0)
            m->devices = keel_neighbours_devices(of, n, m->own, &cores);
        if (!m->devices) sched_setaffinity(0, sizeof before, &before);
    }
    keel_free(of);
    return m->devices;
}

/* ---- the group of the first ones ------------------------------------------------------------- */

static const char *view_host(void *context, int rank)
{
    const keel_machines *m = context;
    return m->all.host(m->all.context, m->first[rank]);
}

static int view_number(void *context, int rank)
{
    const keel_machines *m = context;
    return m->first[rank];
}

static bool make_arrays(arrays *x, int count)
{
    const size_t n = (size_t)count;
    if (!x->send) x->send = keel_calloc(n, sizeof *x->send);
    if (!x->receive) x->receive = keel_calloc(n, sizeof *x->receive);
    if (!x->send_bytes) x->send_bytes = keel_calloc(n, sizeof *x->send_bytes);
    if (!x->receive_bytes) x->receive_bytes = keel_calloc(n, sizeof *x->receive_bytes);
    if (!x->with) x->with = keel_calloc(n, sizeof *x->with);
    return x->send && x->receive && x->send_bytes && x->receive_bytes && x->with;
}

static int start(keel_machines *m, int number, char *error, size_t size)
{
    const arrays *x = &m->exchange[number];
    const keel_exchange e = { x->send,          x->send_bytes, x->receive,
                              x->receive_bytes, x->with,       x->n_with };
    return m->all.start(m->all.context, number, &e, error, size);
}

static int view_start(void *context, int number, const keel_exchange *e, char *error, size_t size)
{
    keel_machines *m = context;
    if (number < 0 || number >= KEEL_EXCHANGES_MAX || number == FOLLOW ||
        !make_arrays(&m->exchange[number], m->all.count)) {
        snprintf(error, size, "no room for an exchange between machines");
        return -1;
    }
    arrays *x = &m->exchange[number];
    for (int i = 0; i < x->n_with; i++)
        x->send_bytes[x->with[i]] = x->receive_bytes[x->with[i]] = 0;
    x->n_with = e->with ? e->n_with : m->n_first;
    for (int k = 0; k < x->n_with; k++) {
        /* not all send to the same one first */
        const int i = e->with ? e->with[k] : (m->rank + 1 + k) % m->n_first, q = m->first[i];
        x->with[k] = q;
        x->send[q] = e->send[i];
        x->send_bytes[q] = q == m->all.rank ? 0 : e->send_bytes[i];
        x->receive[q] = e->receive[i];
        x->receive_bytes[q] = q == m->all.rank ? 0 : e->receive_bytes[i];
    }
    return start(m, number, error, size);
}

static int view_test(void *context, int number, char *error, size_t size)
{
    const keel_machines *m = context;
    return m->all.test(m->all.context, number, error, size);
}

static int view_awaited(void *context, int number)
{
    const keel_machines *m = context;
    const int q = m->all.awaited(m->all.context, number);
    for (int i = 0; i < m->n_first; i++)
        if (m->first[i] == q) return i;
    return -1;
}

static void view_stop(void *context)
{
    const keel_machines *m = context;
    if (m->all.stop) m->all.stop(m->all.context);
}

/* keel_machines_end closes the group of all. */
static void view_close(void *context, bool failed)
{
    keel_machines *m = context;
    m->failed = m->failed || failed;
}

keel_process_group keel_machines_group(keel_machines *m)
{
    return (keel_process_group){
        KEEL_PROCESS_GROUP,        .rank = m->rank,       .count = m->n_first,
        .timeout = m->all.timeout, .context = m,          .host = view_host,
        .start = view_start,       .test = view_test,     .awaited = view_awaited,
        .close = view_close,       .number = view_number, .stop = view_stop
    };
}

/* ---- joined ---------------------------------------------------------------------------------- */

static void close_later(void *context, bool failed)
{
    (void)context, (void)failed;
}

/* One that follows waits for the word of the other from now on. */
static keel_status await_word(keel_machines *m)
{
    char error[KEEL_ERROR_MAX / 2] = "", clean[KEEL_ERROR_MAX / 2];
    arrays *x = &m->exchange[FOLLOW];
    if (!make_arrays(x, m->all.count)) return KEEL_ENOMEM;
    const int of = m->followed[m->all.rank];
    x->receive[of] = &m->word;
    x->receive_bytes[of] = sizeof m->word;
    x->with[0] = of;
    x->n_with = 1;
    if (start(m, FOLLOW, error, sizeof error) == 0) return KEEL_OK;
    return keel_fail(KEEL_EREMOTE, "process %d cannot be reached: %s", of,
                     keel_printable(clean, sizeof clean, error));
}

static keel_status join(keel_machines *m, keel_comm *c, keel_neighbour *all, uint64_t alike)
{
    const int me = m->all.rank;
    int64_t taken, takes[KEEL_PROCESSES_MAX];
    introduce(&all[me], m, alike);
    KEEL_TRY(keel_comm_all_gather_equal(c, all, sizeof *all));
    find_followed(m, all);
    taken = m->followed[me] == me && take(m, all);
    KEEL_TRY(keel_comm_agree(c, KEEL_OK, &taken, 1, takes));
    for (int q = 0; q < m->all.count; q++) {
        if (!takes[m->followed[q]]) m->followed[q] = q;
        if (m->followed[q] == q && q < me) m->rank++;
        if (m->followed[q] == q) m->first[m->n_first++] = q;
        m->together += m->followed[q] == me;
    }
    m->pid = all[m->followed[me]].pid;
    return m->together ? KEEL_OK : await_word(m);
}

keel_status keel_machines_join(keel_machines **out, const keel_process_group *group,
                               const char *devices, uint64_t alike)
{
    keel_process_group lent = *group;
    keel_comm *c = NULL;
    lent.close = close_later;
    lent.timeout = BEGINNING * (lent.timeout > 0 ? lent.timeout : 60);
    keel_status s = keel_comm_create(&c, &lent);
    if (s == KEEL_EARG) return s; /* nothing of it can be called */
    if (s < 0) {
        group->close(group->context, true);
        return s;
    }
    const size_t n = (size_t)group->count;
    keel_machines *m = keel_calloc(1, sizeof *m);
    keel_neighbour *all = keel_calloc(n, sizeof *all);
    s = KEEL_ENOMEM;
    if (m) {
        m->all = *group;
        m->followed = keel_calloc(n, sizeof *m->followed);
        m->first = keel_calloc(n, sizeof *m->first);
        m->own = keel_strdup(devices ? devices : "cpu");
        s = all && m->followed && m->first && m->own ? KEEL_OK : KEEL_ENOMEM;
    }
    s = keel_comm_agree(c, s, NULL, 0, NULL);
    if (s >= 0) s = join(m, c, all, alike);
    const bool lost = c->lost;
    keel_comm_destroy(c);
    keel_free(all);
    if (s < 0 && m)
        keel_machines_end(m, 0, true);
    else if (s < 0)
        group->close(group->context, lost);
    else
        *out = m;
    return s;
}

int keel_machines_together(const keel_machines *m)
{
    return m->together;
}

const char *keel_machines_devices(const keel_machines *m)
{
    return m->devices ? m->devices : m->own;
}

int64_t keel_machines_followed(const keel_machines *m)
{
    return m->pid;
}

int keel_machines_place(const keel_machines *m)
{
    int n = 0;
    for (int q = 0; q < m->all.rank; q++)
        n += m->followed[q] != q && m->followed[q] == m->followed[m->all.rank];
    return n;
}

/* ---- following ------------------------------------------------------------------------------- */

/* The state of a process: 'R', 'S', 'T' for stopped, 'Z' for ended; 0: there is none. */
static char state_of(int64_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    const bool read = fgets(text, sizeof text, f);
    fclose(f);
    const char *behind = read ? strrchr(text, ')') : NULL; /* its name may have any characters */
    return behind && behind[1] ? behind[2] : 0;
}

/* Seconds for which it has been seen stopped. */
static double stopped_for(keel_machines *m, char state)
{
    if (state != 'T')
        m->stopped_since = 0;
    else if (m->stopped_since == 0)
        m->stopped_since = keel_clock_ns();
    return state == 'T' ? 1e-9 * (double)(keel_clock_ns() - m->stopped_since) : 0;
}

int keel_machines_test(keel_machines *m, int *code)
{
    char error[KEEL_ERROR_MAX / 2] = "", clean[KEEL_ERROR_MAX / 2], host[64];
    const int of = m->followed[m->all.rank];
    const double timeout = m->all.timeout > 0 ? m->all.timeout : 60;
    const char *name = m->all.host(m->all.context, of);
    keel_printable(host, sizeof host, name ? name : "?");
    const char state = state_of(m->pid); /* first, since its last word comes before its end */
    const int got = m->all.test(m->all.context, FOLLOW, error, sizeof error);
    if (got > 0) {
        *code = (int)m->word;
        return 1;
    }
    if (got < 0)
        keel_fail(KEEL_EREMOTE, "process %d (%s) does not answer: %s", of, host,
                  keel_printable(clean, sizeof clean, error));
    else if (state == 0 || state == 'Z' || state == 'X')
        keel_fail(KEEL_EREMOTE, "process %d (%s), which ran the devices of this one, was killed",
                  of, host);
    else if (stopped_for(m, state) > timeout)
        keel_fail(KEEL_EREMOTE, "process %d (%s) has been stopped (SIGSTOP) for %.0f s", of, host,
                  timeout);
    else
        return 0;
    m->failed = true;
    return -1;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Who follows gets the code. It needs no answer, but messages must have left before the group is
 * closed; a process that is gone is not waited for. */
static void tell_followers(keel_machines *m, int code)
{
    const int64_t most = keel_clock_ns() + (m->failed ? 1000000000 : 5000000000);
    char error[KEEL_ERROR_MAX];
    arrays *x = &m->exchange[FOLLOW];
    int got = 0;
    m->word = code;
    if (!make_arrays(x, m->all.count)) return;
    for (int q = 0; q < m->all.count; q++)
        if (q != m->all.rank && m->followed[q] == m->all.rank) {
            x->with[x->n_with++] = q;
            x->send[q] = &m->word;
            x->send_bytes[q] = sizeof m->word;
        }
    if (start(m, FOLLOW, error, sizeof error) < 0) return;
    while ((got = m->all.test(m->all.context, FOLLOW, error, sizeof error)) == 0 &&
           keel_clock_ns() < most)
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    m->failed = m->failed || got <= 0;
}

void keel_machines_end(keel_machines *m, int code, bool failed)
{
    if (!m) return;
    m->failed = m->failed || failed;
    if (m->together > 1) tell_followers(m, code);
    m->all.close(m->all.context, m->failed);
    for (int i = 0; i < KEEL_EXCHANGES_MAX; i++) {
        keel_free(m->exchange[i].send);
        keel_free(m->exchange[i].receive);
        keel_free(m->exchange[i].send_bytes);
        keel_free(m->exchange[i].receive_bytes);
        keel_free(m->exchange[i].with);
    }
    keel_free(m->own);
    keel_free(m->devices);
    keel_free(m->followed);
    keel_free(m->first);
    keel_free(m);
}
