/* Measures what connects processes: see keel_network_measure in keel/simulate.h. Of each kind of
 * connection (between machines, within one) exchanges of some lengths are timed as a step makes
 * them: in pieces of the size of buckets, all processes send and receive at once, what is sent has
 * just been written, and who waits polls. Each length is twice the one before; what a doubling
 * adds gives a rate, of which the median counts, since single lengths may take much longer. What
 * another core has read is written again more slowly than what no other has seen, and a process
 * writes its gradients anew in each step, so within a machine this time counts as one of copies.
 * An exchange of a few bytes gives the latency. Processes find by themselves who takes part, since
 * all know the names of all machines, and agree on each time, so all end with the same numbers. */
#include "base/ascending.h"
#include "base/clock.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "simulate/timeline.h"
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 8, FIRST = 64 << 10, LENGTHS = 8, LONGEST = FIRST << (LENGTHS - 1), TIMES = 9 };
/* Longer exchanges than this tell no more. */
static const double ENOUGH = 0.01;

typedef struct connection {
    keel_comm *comm;
    int n_peer, *peer; /* with whom this process exchanges; 0: it only agrees */
    char *own, *other; /* [LONGEST] */
    const void **send; /* [count], as the next three */
    void **receive;
    size_t *send_bytes, *receive_bytes;
} connection;

typedef struct line {
    double latency;          /* seconds of an exchange of a few bytes */
    double seconds[LENGTHS]; /* [n]: of FIRST << i bytes to all peers together; n >= 2 */
    double own[LENGTHS];     /* [n]: of them in calls that moved bytes */
    double again[LENGTHS]; /* [n]: more for writing what others have read than what they have not */
    int n, peers;          /* peers: the most of any process; 0: there is no such connection */
} line;

/* ---- exchanges ------------------------------------------------------------------------------- */

static keel_status poll_until_done(keel_comm *c, int number)
{
    bool done = false;
    keel_patience patience = keel_patience_begin();
    const double end = keel_seconds() + c->timeout;
    while (!done) {
        KEEL_TRY(keel_comm_test(c, number, &done));
        if (!done) sched_yield();
        if (done || keel_seconds() < end) continue;
        patience.seen = keel_clock_ns();
        KEEL_TRY(keel_comm_patience(c, number, &patience)); /* fails, and says who is silent */
    }
    return KEEL_OK;
}

static keel_status start(connection *x, int number, int64_t at, int64_t bytes)
{
    for (int i = 0; i < x->n_peer; i++) {
        const int q = x->peer[i];
        x->send[q] = x->own + at;
        x->receive[q] = x->other + at + i * (bytes / x->n_peer);
        x->send_bytes[q] = x->receive_bytes[q] = (size_t)(bytes / x->n_peer);
    }
    return keel_comm_start(x->comm, number,
                           &(keel_exchange){ x->send, x->send_bytes, x->receive, x->receive_bytes,
                                             x->peer, x->n_peer });
}

/* As buckets: in pieces of FIRST bytes, or in PIECES of more, that are on their way together. */
static keel_status exchange(connection *x, int64_t bytes, double *seconds)
{
    enum { PIECES = 16 };
    const int n = bytes < FIRST ? 1 : bytes < PIECES * FIRST ? (int)(bytes / FIRST) : PIECES;
    const double begin = keel_seconds();
    for (int k = 0; k < n; k++) KEEL_TRY(start(x, 1 + k, k * (bytes / n), bytes / n));
    for (int k = 0; k < n; k++) KEEL_TRY(poll_until_done(x->comm, 1 + k));
    *seconds = keel_seconds() - begin;
    return KEEL_OK;
}

/* The lower one of two in the middle. */
static double median(double *of, int n)
{
    keel_sort_ascending(of, n);
    return of[(n - 1) / 2];
}

/* As a kernel that has just written it. */
static double write_own(connection *x, int value, int64_t bytes)
{
    const double begin = keel_seconds();
    memset(x->own, value, (size_t)bytes);
    return keel_seconds() - begin;
}

/* Medians of some exchanges of so many bytes with all peers together, each of the process where it
 * is longest. */
static keel_status time_exchanges(connection *x, int64_t bytes, double *seconds, double *own,
                                  double *again)
{
    enum { VALUES = 3 };
    double took[TIMES] = { 0 }, busy[TIMES] = { 0 }, more[TIMES] = { 0 }, ignored;
    int64_t all[VALUES * KEEL_PROCESSES_MAX], most[VALUES] = { 0 };
    for (int i = -1; i < TIMES && x->n_peer; i++) { /* the first one warms up */
        const double seen = write_own(x, i, bytes), unseen = write_own(x, i, bytes);
        KEEL_TRY(exchange(x, (int64_t)SHORT * x->n_peer, &ignored)); /* all begin together */
        const int64_t before = x->comm->busy;
        KEEL_TRY(exchange(x, bytes, i < 0 ? &ignored : &took[i]));
        if (i < 0) continue;
        busy[i] = (double)(x->comm->busy - before);
        more[i] = fmax(seen - unseen, 0);
    }
    const int64_t ns[VALUES] = { (int64_t)(1e9 * median(took, TIMES)), (int64_t)median(busy, TIMES),
                                 (int64_t)(1e9 * median(more, TIMES)) };
    KEEL_TRY(keel_comm_agree(x->comm, KEEL_OK, ns, VALUES, all));
    for (int i = 0; i < VALUES * x->comm->group.count; i++)
        if (all[i] > most[i % VALUES]) most[i % VALUES] = all[i];
    *seconds = 1e-9 * (double)most[0];
    *own = 1e-9 * (double)most[1];
    *again = 1e-9 * (double)most[2];
    return KEEL_OK;
}

static int64_t bytes_of(int i)
{
    return (int64_t)FIRST << i;
}

static keel_status measure(connection *x, line *out)
{
    line l = { 0 };
    double ignored;
    const int64_t own = x->n_peer;
    int64_t all[KEEL_PROCESSES_MAX];
    KEEL_TRY(keel_comm_agree(x->comm, KEEL_OK, &own, 1, all));
    for (int q = 0; q < x->comm->group.count; q++)
        if (all[q] > l.peers) l.peers = (int)all[q];
    if (l.peers) {
        KEEL_TRY(time_exchanges(x, (int64_t)SHORT * x->n_peer, &l.latency, &ignored, &ignored));
        do KEEL_TRY(time_exchanges(x, bytes_of(l.n), &l.seconds[l.n], &l.own[l.n], &l.again[l.n]));
        while (++l.n < 2 || (l.n < LENGTHS && l.seconds[l.n - 1] < ENOUGH));
    }
    *out = l;
    return KEEL_OK;
}

/* ---- who takes part -------------------------------------------------------------------------- */

static bool together(const keel_process_group *g, int a, int b)
{
    return !strcmp(g->host(g->context, a), g->host(g->context, b));
}

static bool is_first(const keel_process_group *g, int rank)
{
    for (int q = 0; q < rank; q++)
        if (together(g, q, rank)) return false;
    return true;
}

/* Within a machine all of its processes, between machines the first of each. */
static void find_peers(connection *x, bool within)
{
    const keel_process_group *g = &x->comm->group;
    for (int i = 0; i < x->n_peer; i++)
        x->send_bytes[x->peer[i]] = x->receive_bytes[x->peer[i]] = 0;
    x->n_peer = 0;
    if (!within && !is_first(g, g->rank)) return;
    for (int q = 0; q < g->count; q++)
        if (q != g->rank && (within ? together(g, q, g->rank) : is_first(g, q)))
            x->peer[x->n_peer++] = q;
}

static keel_status allocate(connection *x, int count)
{
    const size_t n = (size_t)count;
    x->peer = keel_calloc(n, sizeof *x->peer);
    x->send = keel_calloc(n, sizeof *x->send);
    x->receive = keel_calloc(n, sizeof *x->receive);
    x->send_bytes = keel_calloc(n, sizeof *x->send_bytes);
    x->receive_bytes = keel_calloc(n, sizeof *x->receive_bytes);
    x->own = keel_aligned_calloc(LONGEST, 1);
    x->other = keel_aligned_calloc(LONGEST, 1);
    return x->peer && x->send && x->receive && x->send_bytes && x->receive_bytes && x->own &&
                   x->other
               ? KEEL_OK
               : KEEL_ENOMEM;
}

static void release(connection *x)
{
    keel_free(x->peer);
    keel_free(x->send);
    keel_free(x->receive);
    keel_free(x->send_bytes);
    keel_free(x->receive_bytes);
    keel_free(x->own);
    keel_free(x->other);
}

/* ---- what it says ---------------------------------------------------------------------------- */

/* Seconds of a byte beyond length i - 1. Where length i takes none, something else has disturbed
 * them, and all of the time counts as that of bytes. */
static double slope(const line *l, int i)
{
    const double more = l->seconds[i] - l->seconds[i - 1];
    return more > 0 ? more / (double)bytes_of(i - 1)
                    : fmax(l->seconds[i], 1e-9) / (double)bytes_of(i);
}

static double seconds_of_byte(const line *l)
{
    double each[LENGTHS];
    for (int i = 1; i < l->n; i++) each[i - 1] = slope(l, i);
    return median(each, l->n - 1);
}

static double less_messages(const keel_network *n, const line *l)
{
    return fmax(l->latency - 2 * l->peers * n->message, 0);
}

/* Long messages ask first, where the line does not end in the latency of short ones. */
static void note_far(keel_network *n, const line *l)
{
    enum { NEVER = 1 << 30 };
    double each[LENGTHS];
    const double byte = seconds_of_byte(l);
    for (int i = 0; i < l->n; i++) each[i] = l->seconds[i] - byte * (double)bytes_of(i);
    const double before = median(each, l->n);
    n->latency = less_messages(n, l);
    n->bytes_per_second = 1 / byte;
    if (before < 2 * n->latency) n->eager = NEVER;
    for (int i = 0; i < l->n; i++) each[i] = l->own[i] / (double)bytes_of(i) / 2; /* out and in */
    n->own_bytes_per_second = 1 / fmax(median(each, l->n), 1e-15);
}

/* In and out are counted together. */
static void note_near(keel_network *n, const line *l)
{
    double again[LENGTHS];
    for (int i = 0; i < l->n; i++) again[i] = l->again[i] / (double)bytes_of(i);
    n->local_latency = less_messages(n, l);
    n->local_bytes_per_second = 2 / (seconds_of_byte(l) + median(again, l->n));
}

static void stay_open(void *context, bool failed)
{
    (void)context, (void)failed;
}

keel_status keel_network_measure(keel_network *out, const keel_process_group *group)
{
    if (!out || !group || out->size != sizeof *out)
        return keel_fail(KEEL_EARG, "network: out and group must be given, and out begins with "
                                    "KEEL_NETWORK");
    if (group->count < 2)
        return keel_fail(KEEL_EARG, "network: one process has no connection; start several");
    connection x = { 0 };
    line far = { 0 }, near = { 0 };
    keel_process_group kept = *group;
    keel_network found = *out;
    if (group->close) kept.close = stay_open;
    KEEL_TRY(keel_comm_create(&x.comm, &kept));
    keel_status s = allocate(&x, group->count);
    s = keel_comm_agree(x.comm, s, NULL, 0, NULL);
    if (s >= 0) find_peers(&x, true);
    if (s >= 0) s = measure(&x, &near);
    if (s >= 0) find_peers(&x, false);
    if (s >= 0) s = measure(&x, &far);
    if (s >= 0 && far.peers) note_far(&found, &far);
    if (s >= 0 && near.peers) note_near(&found, &near);
    if (s >= 0) s = keel_network_check(&found);
    release(&x);
    keel_comm_destroy(x.comm);
    if (s >= 0) *out = found;
    return s;
}
