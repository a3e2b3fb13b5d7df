/* See comm.h. Who waits polls for 50 us and then sleeps between polls, longer and longer up to a
 * fifth of a millisecond: a process that waits for another may share its core. Bytes move while an
 * exchange is tested, mostly by copies that the test makes itself; so a test that takes longer than
 * others do has moved some, and after it polling begins anew. */
#include "comm/comm.h"
#include "base/clock.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SPIN_NS = 50000, NAP_FIRST_NS = 10000, NAP_MOST_NS = 200000, GAP_MOST_NS = 50000000 };
/* A test that moved bytes is so much longer than the shortest one. */
enum { MOVED_NS = 3000, MOVED_TIMES = 4 };
enum { EXCUSES = 10 }; /* timeouts */

/* ---- made and ended -------------------------------------------------------------------------- */

static keel_status check(const keel_process_group *g)
{
    if (g->size != sizeof *g)
        return keel_fail(KEEL_EARG,
                         "a group of processes of another version of Keel (%zu bytes, "
                         "not %zu)",
                         g->size, sizeof *g);
    if (g->count < 1 || g->count > KEEL_PROCESSES_MAX)
        return keel_fail(KEEL_EARG, "a group of %d processes; 1 to %d are possible", g->count,
                         KEEL_PROCESSES_MAX);
    if (g->rank < 0 || g->rank >= g->count)
        return keel_fail(KEEL_EARG, "process %d of a group of %d", g->rank, g->count);
    if (!g->host || !g->start || !g->test || !g->awaited || !g->close)
        return keel_fail(KEEL_EARG, "a group of processes lacks a function");
    return KEEL_OK;
}

keel_status keel_comm_create(keel_comm **out, const keel_process_group *group)
{
    const keel_status bad = check(group);
    if (bad < 0) return bad; /* nothing of it can be called */
    const size_t n = (size_t)group->count;
    keel_comm *c = keel_calloc(1, sizeof *c);
    if (!c) {
        group->close(group->context, true);
        return KEEL_ENOMEM;
    }
    c->group = *group;
    c->timeout = group->timeout > 0 ? group->timeout : 60;
    c->send = keel_calloc(n, sizeof *c->send);
    c->receive = keel_calloc(n, sizeof *c->receive);
    c->send_bytes = keel_calloc(n, sizeof *c->send_bytes);
    c->receive_bytes = keel_calloc(n, sizeof *c->receive_bytes);
    c->call = keel_calloc(n, sizeof *c->call);
    c->answer = keel_calloc(n, sizeof *c->answer);
    c->call_bytes = keel_calloc(n, sizeof *c->call_bytes);
    c->heard = keel_calloc(n, sizeof *c->heard);
    c->text = keel_calloc(n, KEEL_ERROR_MAX);
    c->said = keel_calloc(n, (1 + KEEL_COMM_NUMBERS) * sizeof *c->said);
    if (!c->send || !c->receive || !c->send_bytes || !c->receive_bytes || !c->call || !c->answer ||
        !c->call_bytes || !c->heard || !c->text || !c->said) {
        c->lost = true;
        keel_comm_destroy(c);
        return KEEL_ENOMEM;
    }
    *out = c;
    return KEEL_OK;
}

void keel_comm_destroy(keel_comm *c)
{
    if (!c) return;
    c->group.close(c->group.context, c->lost);
    keel_free(c->send);
    keel_free(c->receive);
    keel_free(c->send_bytes);
    keel_free(c->receive_bytes);
    keel_free(c->call);
    keel_free(c->answer);
    keel_free(c->call_bytes);
    keel_free(c->heard);
    keel_free(c->text);
    keel_free(c->said);
    keel_free(c);
}

char *keel_comm_name(const keel_comm *c, int rank, char out[KEEL_COMM_NAME_MAX])
{
    char host[KEEL_COMM_NAME_MAX / 2];
    const char *name = c->group.host(c->group.context, rank);
    keel_printable(host, sizeof host, name ? name : "?");
    const int number = c->group.number ? c->group.number(c->group.context, rank) : rank;
    snprintf(out, KEEL_COMM_NAME_MAX, "process %d (%s)", number, host);
    return out;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static keel_status lose(keel_comm *c, int rank, keel_status s)
{
    c->lost = true;
    c->lost_rank = rank;
    keel_failure_take(&c->first, s);
    if (c->group.stop) c->group.stop(c->group.context); /* the caller frees what it lent */
    return s;
}

/* Who is awaited may itself be waiting, for one that is lost (graph/rounds.h). So whoever has
 * waited too long says to all that it is there, and the lost one is who does not. Returns it; if
 * all are there, the one that is awaited. */
static int missing(keel_comm *c, int awaited)
{
    enum { NUMBER = KEEL_EXCHANGE_PRESENT };
    static const char here = 1;
    const double seconds = c->timeout < 8 ? c->timeout / 4 : 2;
    const int64_t end = keel_clock_ns() + (int64_t)(1e9 * seconds);
    char error[KEEL_ERROR_MAX / 2];
    int got;
    for (int q = 0; q < c->group.count; q++) {
        c->call[q] = &here;
        c->answer[q] = &c->heard[q];
        c->call_bytes[q] = q != c->group.rank;
    }
    const keel_exchange e = { c->call, c->call_bytes, c->answer, c->call_bytes };
    if (c->group.start(c->group.context, NUMBER, &e, error, sizeof error) < 0) return awaited;
    while ((got = c->group.test(c->group.context, NUMBER, error, sizeof error)) == 0 &&
           keel_clock_ns() < end)
        nanosleep(&(struct timespec){ .tv_nsec = NAP_MOST_NS }, NULL);
    if (got != 0 || (awaited >= 0 && !c->heard[awaited])) return awaited;
    const int rank = c->group.awaited(c->group.context, NUMBER);
    return rank >= 0 ? rank : awaited;
}

static keel_status silent(keel_comm *c, int number, double seconds)
{
    char name[KEEL_COMM_NAME_MAX] = "a process";
    const int rank = missing(c, c->group.awaited(c->group.context, number));
    if (rank >= 0) keel_comm_name(c, rank, name);
    return lose(c, rank,
                keel_fail(KEEL_EREMOTE,
                          "%s has not answered for %.0f s; it or its network is "
                          "down, or --timeout is too short",
                          name, seconds));
}

keel_patience keel_patience_begin(void)
{
    const int64_t now = keel_clock_ns();
    return (keel_patience){ .start = now, .seen = now, .idle = now, .nap = NAP_FIRST_NS };
}

keel_status keel_comm_patience(keel_comm *c, int number, keel_patience *x)
{
    const int64_t now = keel_clock_ns(), gap = now - x->seen;
    if (gap > GAP_MOST_NS && (double)x->excused * 1e-9 < EXCUSES * c->timeout)
        x->excused += gap - GAP_MOST_NS;
    x->seen = now;
    if ((double)(now - x->start - x->excused) * 1e-9 > c->timeout)
        return silent(c, number, (double)(now - x->start) * 1e-9);
    if (c->moved > x->idle) {
        x->idle = c->moved;
        x->nap = NAP_FIRST_NS;
    }
    if (now - x->idle < SPIN_NS) return KEEL_OK;
    nanosleep(&(struct timespec){ .tv_nsec = x->nap }, NULL);
    x->nap = 2 * x->nap < NAP_MOST_NS ? 2 * x->nap : NAP_MOST_NS;
    return KEEL_OK;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

keel_status keel_comm_start(keel_comm *c, int number, const keel_exchange *e)
{
    char error[KEEL_ERROR_MAX / 2] = "", clean[KEEL_ERROR_MAX / 2];
    if (c->lost) return keel_failure_raise(&c->first);
    const int n = e->with ? e->n_with : c->group.count;
    for (int i = 0; i < n; i++) {
        const int q = e->with ? e->with[i] : i;
        if (q != c->group.rank) c->bytes += (int64_t)e->send_bytes[q];
    }
    const int64_t begin = keel_clock_ns();
    const int got = c->group.start(c->group.context, number, e, error, sizeof error);
    c->busy += keel_clock_ns() - begin;
    if (got == 0) return KEEL_OK;
    return lose(c, -1,
                keel_fail(KEEL_EREMOTE, "the other processes cannot be reached: %s",
                          keel_printable(clean, sizeof clean, error)));
}

/* A test that began at `begin` is over: see whether it has moved bytes. One that ends an exchange
 * has moved some, however short it was. */
static void note_moved(keel_comm *c, int64_t begin, bool done)
{
    const int64_t now = keel_clock_ns(), took = now - begin;
    const bool has_moved = c->shortest && took > MOVED_NS + MOVED_TIMES * c->shortest;
    if (has_moved) c->moved = now;
    if (has_moved || done) c->busy += took;
    if (!done && (!c->shortest || took < c->shortest)) c->shortest = took;
}

keel_status keel_comm_test(keel_comm *c, int number, bool *done)
{
    char error[KEEL_ERROR_MAX / 2] = "", clean[KEEL_ERROR_MAX / 2], name[KEEL_COMM_NAME_MAX];
    *done = false;
    if (c->lost) return keel_failure_raise(&c->first);
    const int64_t begin = keel_clock_ns();
    const int got = c->group.test(c->group.context, number, error, sizeof error);
    if (got >= 0) {
        note_moved(c, begin, got > 0);
        *done = got > 0;
        return KEEL_OK;
    }
    const int rank = c->group.awaited(c->group.context, number);
    return lose(c, rank,
                keel_fail(KEEL_EREMOTE, "%s does not answer: %s",
                          rank < 0 ? "a process" : keel_comm_name(c, rank, name),
                          keel_printable(clean, sizeof clean, error)));
}

keel_status keel_comm_wait(keel_comm *c, int number)
{
    keel_patience x = keel_patience_begin();
    for (bool done = false;;) {
        KEEL_TRY(keel_comm_test(c, number, &done));
        if (done) return KEEL_OK;
        if (c->meanwhile && c->meanwhile(c->meanwhile_context))
            x = keel_patience_begin();
        else
            KEEL_TRY(keel_comm_patience(c, number, &x));
    }
}

keel_status keel_comm_exchange(keel_comm *c, const keel_exchange *e)
{
    if (c->group.count == 1) return KEEL_OK;
    KEEL_TRY(keel_comm_start(c, KEEL_EXCHANGE_ALONE, e));
    return keel_comm_wait(c, KEEL_EXCHANGE_ALONE);
}

keel_status keel_comm_exchange_noted(keel_comm *c)
{
    return keel_comm_exchange(
        c, &(keel_exchange){ c->send, c->send_bytes, c->receive, c->receive_bytes });
}

keel_status keel_comm_all_gather(keel_comm *c, void *all, const size_t *at, const size_t *bytes)
{
    const int rank = c->group.rank;
    for (int q = 0; q < c->group.count; q++) {
        c->send[q] = (char *)all + at[rank];
        c->send_bytes[q] = q == rank ? 0 : bytes[rank];
        c->receive[q] = (char *)all + at[q];
        c->receive_bytes[q] = q == rank ? 0 : bytes[q];
    }
    return keel_comm_exchange_noted(c);
}

keel_status keel_comm_all_gather_equal(keel_comm *c, void *all, size_t bytes)
{
    const int rank = c->group.rank;
    for (int q = 0; q < c->group.count; q++) {
        c->send[q] = (char *)all + (size_t)rank * bytes;
        c->receive[q] = (char *)all + (size_t)q * bytes;
        c->send_bytes[q] = c->receive_bytes[q] = q == rank ? 0 : bytes;
    }
    return keel_comm_exchange_noted(c);
}

keel_status keel_comm_broadcast(keel_comm *c, void *data, size_t bytes)
{
    const bool root = c->group.rank == 0;
    for (int q = 0; q < c->group.count; q++) {
        c->send[q] = c->receive[q] = data;
        c->send_bytes[q] = root && q > 0 ? bytes : 0;
        c->receive_bytes[q] = !root && q == 0 ? bytes : 0;
    }
    return keel_comm_exchange_noted(c);
}

/* ---- agreement ------------------------------------------------------------------------------- */

keel_status keel_comm_agree(keel_comm *c, keel_status mine, const int64_t *number, int n,
                            int64_t *all)
{
    enum { WIDTH = KEEL_COMM_NUMBERS + 1 };
    const int rank = c->group.rank, count = c->group.count;
    int64_t(*say)[WIDTH] = (int64_t(*)[WIDTH])c->said;
    int first = -1;
    char name[KEEL_COMM_NAME_MAX];
    keel_failure f = { 0 };
    c->told = false;
    if (mine < 0) keel_failure_take(&f, mine);
    memset(say[rank], 0, sizeof say[rank]);
    say[rank][0] = mine;
    for (int i = 0; i < n; i++) say[rank][i + 1] = number[i];
    KEEL_TRY(keel_comm_all_gather_equal(c, say, sizeof say[rank]));
    for (int q = count - 1; q >= 0; q--)
        if (say[q][0] < 0) first = q;
    if (first < 0) {
        for (int q = 0; q < count && all; q++)
            memcpy(all + q * n, &say[q][1], (size_t)n * sizeof *all);
        return KEEL_OK;
    }
    memset(c->text + (size_t)rank * KEEL_ERROR_MAX, 0, KEEL_ERROR_MAX);
    if (mine < 0) snprintf(c->text + (size_t)rank * KEEL_ERROR_MAX, KEEL_ERROR_MAX, "%s", f.text);
    KEEL_TRY(keel_comm_all_gather_equal(c, c->text, KEEL_ERROR_MAX));
    c->told = true;
    char *text = c->text + (size_t)first * KEEL_ERROR_MAX;
    text[KEEL_ERROR_MAX - 1] = '\0';
    f.status = (keel_status)say[first][0];
    snprintf(f.text, sizeof f.text, "%s", text);
    return keel_fail_within(keel_failure_raise(&f), "%s", keel_comm_name(c, first, name));
}

/* ---- measured -------------------------------------------------------------------------------- */

/* The fastest of some exchanges of so many bytes with each other process, in ns. Of three, within a
 * machine, the size of buckets that follows was 64 KiB in one fit and 5 MiB in the next; of nine it
 * is 0.2 to 0.45 MiB. */
static keel_status measure(keel_comm *c, void *all, size_t bytes, int64_t *fastest)
{
    enum { TIMES = 9 };
    *fastest = INT64_MAX;
    for (int i = 0; i < TIMES; i++) {
        const int64_t begin = keel_clock_ns();
        KEEL_TRY(keel_comm_all_gather_equal(c, all, bytes));
        const int64_t ns = keel_clock_ns() - begin;
        if (ns < *fastest) *fastest = ns;
    }
    return KEEL_OK;
}

/* Bytes a ns beyond the first ones, times the ns that an exchange costs anyway. */
int64_t keel_comm_bucket(int64_t small_ns, int64_t large_ns)
{
    enum { SHARE = 10 };
    const int64_t least = KEEL_BUCKET_LEAST, most = KEEL_BUCKET_MOST;
    if (large_ns <= small_ns) return most;
    const double own =
        (double)KEEL_COMM_LARGE / (double)(large_ns - small_ns) * SHARE * (double)small_ns;
    return own > (double)most ? most : own < (double)least ? least : (int64_t)own;
}

keel_status keel_comm_measure(keel_comm *c)
{
    int64_t small = 0, large = 0, all[KEEL_PROCESSES_MAX];
    const size_t each = keel_comm_large_each(c->group.count);
    char *data = keel_calloc((size_t)c->group.count, each);
    keel_status s = keel_comm_agree(c, data ? KEEL_OK : KEEL_ENOMEM, NULL, 0, NULL);
    if (s >= 0) s = measure(c, data, KEEL_COMM_SMALL, &small);
    if (s >= 0) s = measure(c, data, each, &large);
    keel_free(data);
    if (s < 0) return s;
    const int64_t own = keel_comm_bucket(small, large);
    KEEL_TRY(keel_comm_agree(c, KEEL_OK, &own, 1, all));
    for (int q = 0; q < c->group.count; q++)
        if (all[q] > c->bucket_bytes) c->bucket_bytes = all[q];
    return KEEL_OK;
}
