/* A group of processes that MPI connects. Compiled once for each MPI that is found, since a program
 * of one cannot call another.
 *
 * For each exchange at most one message is under way between two processes in each direction: MPI
 * counts bytes in an int, and short messages are eager (eager.h), so a
 * long message goes in pieces, each begun when the one before it is complete. MPI keeps messages of
 * one sender with one tag in order, so the exchange's number as the tag is enough to tell them
 * apart. All requests lie in tables that are made once: nothing is allocated here in a step.
 *
 * libkeel is not among the libraries that this one names: the program has it already, as the shared
 * library or linked into itself, and must not get a second copy. */
#include "eager.h"
#include "end.h"
#include <keel/mpi.h>
#include <keel/mpi_open.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ALIGN = 16 };

typedef struct message { /* to or from one process */
    char *at;            /* what is not sent or received yet, with the piece under way */
    size_t left;
    int piece, peer;
    bool comes;
} message;

typedef struct exchange {
    int n, open;          /* messages, and those that are not complete */
    message *message;     /* [n]; room for 2 * (count - 1) */
    MPI_Request *request; /* [n]: of the piece under way; MPI_REQUEST_NULL once complete */
} exchange;

typedef struct group {
    MPI_Comm comm;
    int rank, count, piece; /* piece: bytes of the longest, the same in all processes */
    char *host;             /* [count][MPI_MAX_PROCESSOR_NAME] */
    int *done;              /* [2 * (count - 1)], as the next: of one call of MPI_Testsome */
    MPI_Status *status;
    exchange exchange[KEEL_EXCHANGES_MAX];
} group;

/* Whether MPI was begun here, and the groups that need it. It ends with the last of them. */
static bool began, any_failed;
static int groups, longest_piece = KEEL_MPI_PIECE_LONG;

/* ---- errors ---------------------------------------------------------------------------------- */

/* One line: the text, then what MPI says of `code`. Returns -1. */
static int fail(char *error, size_t size, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int fail(char *error, size_t size, int code, const char *format, ...)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    va_list ap;
    int n = 0;
    if (!size) return -1;
    va_start(ap, format);
    vsnprintf(error, size, format, ap);
    va_end(ap);
    if (code != MPI_SUCCESS && MPI_Error_string(code, text, &n) == MPI_SUCCESS) {
        const size_t used = strlen(error);
        snprintf(error + used, size - used, ": %s", text);
    }
    for (char *c = error; *c; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    return -1;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

/* Begin the next piece of message i. Returns MPI's code. */
static int begin_piece(group *g, int number, int i)
{
    exchange *x = &g->exchange[number];
    message *m = &x->message[i];
    m->piece = m->left < (size_t)g->piece ? (int)m->left : g->piece;
    return m->comes
               ? MPI_Irecv(m->at, m->piece, MPI_BYTE, m->peer, number, g->comm, &x->request[i])
               : MPI_Isend(m->at, m->piece, MPI_BYTE, m->peer, number, g->comm, &x->request[i]);
}

static int fail_piece(const message *m, int code, char *error, size_t size)
{
    return fail(error, size, code, m->comes ? "receiving from process %d" : "sending to process %d",
                m->peer);
}

static int add_message(group *g, int number, int peer, void *at, size_t n_bytes, bool comes,
                       char *error, size_t size)
{
    exchange *x = &g->exchange[number];
    if (peer == g->rank || n_bytes == 0) return 0;
    const int i = x->n++;
    x->request[i] = MPI_REQUEST_NULL;
    x->message[i] = (message){ .at = at, .left = n_bytes, .peer = peer, .comes = comes };
    x->open++;
    const int code = begin_piece(g, number, i);
    return code == MPI_SUCCESS ? 0 : fail_piece(&x->message[i], code, error, size);
}

/* The piece under way of message i is complete. */
static int end_piece(group *g, int number, int i, const MPI_Status *status, char *error,
                     size_t size)
{
    exchange *x = &g->exchange[number];
    message *m = &x->message[i];
    int got = m->piece;
    if (m->comes) MPI_Get_count(status, MPI_BYTE, &got);
    if (got != m->piece)
        return fail(error, size, MPI_SUCCESS, "process %d sent %d bytes where %d were expected",
                    m->peer, got, m->piece);
    m->at += m->piece;
    m->left -= (size_t)m->piece;
    if (m->left == 0) {
        x->open--;
        return 0;
    }
    const int code = begin_piece(g, number, i);
    return code == MPI_SUCCESS ? 0 : fail_piece(m, code, error, size);
}

/* Ends what is complete, and begins what follows. Returns how many pieces have ended; -1: failed.
 */
static int advance(group *g, int number, char *error, size_t size)
{
    exchange *x = &g->exchange[number];
    int n = 0, class = MPI_SUCCESS;
    const int code = MPI_Testsome(x->n, x->request, &n, g->done, g->status);
    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &class);
        for (int k = 0; class == MPI_ERR_IN_STATUS && k < n; k++)
            if (g->status[k].MPI_ERROR != MPI_SUCCESS && g->status[k].MPI_ERROR != MPI_ERR_PENDING)
                return fail_piece(&x->message[g->done[k]], g->status[k].MPI_ERROR, error, size);
        return fail(error, size, code, "exchange %d", number);
    }
    for (int k = 0; k < n; k++) /* n may be MPI_UNDEFINED, which is negative */
        if (end_piece(g, number, g->done[k], &g->status[k], error, size) < 0) return -1;
    return n > 0 ? n : 0;
}

/* Moves exchange `number` on as far as it goes without waiting. */
static int test(void *context, int number, char *error, size_t size)
{
    group *g = context;
    if (number < 0 || number >= KEEL_EXCHANGES_MAX)
        return fail(error, size, MPI_SUCCESS, "there is no exchange %d", number);
    while (g->exchange[number].open) {
        const int n = advance(g, number, error, size);
        if (n <= 0) return n;
    }
    return 1;
}

static int start(void *context, int number, const keel_exchange *e, char *error, size_t size)
{
    group *g = context;
    if (number < 0 || number >= KEEL_EXCHANGES_MAX)
        return fail(error, size, MPI_SUCCESS, "exchange %d: numbers are 0 to %d", number,
                    KEEL_EXCHANGES_MAX - 1);
    exchange *x = &g->exchange[number];
    if (x->open)
        return fail(error, size, MPI_SUCCESS, "exchange %d is started before it has ended", number);
    x->n = 0;
    const int n = e->with ? e->n_with : g->count - 1;
    /* what is expected before what is sent: a message that finds its place is not copied */
    for (int d = 0; d < n; d++) {
        const int q = e->with ? e->with[d] : (g->rank + g->count - 1 - d) % g->count;
        if (add_message(g, number, q, e->receive[q], e->receive_bytes[q], true, error, size) < 0)
            return -1;
    }
    /* each begins with the process after itself, so that not all send to the same one first */
    for (int d = 0; d < n; d++) {
        const int q = e->with ? e->with[d] : (g->rank + 1 + d) % g->count;
        if (add_message(g, number, q, (void *)e->send[q], e->send_bytes[q], false, error, size) < 0)
            return -1;
    }
    bool more = false; /* pieces, of which some may leave at once */
    for (int i = 0; i < x->n; i++) more = more || x->message[i].left > (size_t)x->message[i].piece;
    return more && test(g, number, error, size) < 0 ? -1 : 0;
}

/* If all has come, a process that has not taken what it is sent. */
static int awaited(void *context, int number)
{
    const group *g = context;
    int rank = -1;
    if (number < 0 || number >= KEEL_EXCHANGES_MAX) return -1;
    const exchange *x = &g->exchange[number];
    for (int i = x->open ? x->n - 1 : -1; i >= 0; i--) /* what comes is first in the list */
        if (x->message[i].left) rank = x->message[i].peer;
    return rank;
}

static const char *host(void *context, int rank)
{
    const group *g = context;
    return rank < 0 || rank >= g->count ? NULL : g->host + (size_t)rank * MPI_MAX_PROCESSOR_NAME;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Message i, which is to be cancelled, has come to its end: if it came after all, as it should. */
static void end_cancelled(exchange *x, int i, MPI_Status *status)
{
    message *m = &x->message[i];
    int cancelled = 0;
    if (MPI_Test_cancelled(status, &cancelled) != MPI_SUCCESS || cancelled) return;
    m->left -= (size_t)m->piece;
    if (m->left == 0) x->open--;
}

/* How many messages that were to come have not come to their end. */
static int look_at_cancelled(group *g)
{
    int n = 0;
    for (int k = 0; k < KEEL_EXCHANGES_MAX; k++) {
        exchange *x = &g->exchange[k];
        for (int i = 0; x->open && i < x->n; i++) {
            int done = 0;
            MPI_Status status;
            if (x->request[i] == MPI_REQUEST_NULL || !x->message[i].comes) continue;
            if (MPI_Test(&x->request[i], &done, &status) == MPI_SUCCESS && done)
                end_cancelled(x, i, &status);
            n += x->request[i] != MPI_REQUEST_NULL;
        }
    }
    return n;
}

/* Memory that is waiting for messages goes back to the caller, so nothing may be written there any
 * more. Any call of MPI may do so, as long as a message is not cancelled, and cancelling one is a
 * call: so all is done while the caller still has the memory. It concerns this process alone; only
 * a long message that is coming right now may need the other one, and gets a moment. */
static void stop(void *context)
{
    enum { LOOKS = 50, NAP_NS = 1000000 };
    group *g = context;
    for (int k = 0; k < KEEL_EXCHANGES_MAX; k++) {
        exchange *x = &g->exchange[k];
        for (int i = 0; x->open && i < x->n; i++)
            if (x->request[i] != MPI_REQUEST_NULL && x->message[i].comes)
                MPI_Cancel(&x->request[i]);
    }
    for (int i = 0; look_at_cancelled(g) > 0 && i < LOOKS; i++)
        nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    for (int k = 0; k < KEEL_EXCHANGES_MAX; k++) {
        exchange *x = &g->exchange[k];
        for (int i = 0; x->open && i < x->n; i++)
            if (x->request[i] != MPI_REQUEST_NULL) MPI_Request_free(&x->request[i]);
    }
}

/* After a failure nothing is called that waits for others: the communicator stays, and MPI does not
 * end. */
static void close_group(void *context, bool failed)
{
    group *g = context;
    int ended = 1;
    if (!g) return;
    if (MPI_Finalized(&ended) == MPI_SUCCESS && !ended) {
        stop(g);
        any_failed = any_failed || failed;
        groups--;
        if (failed) keel_mpi_end_lost();
        if (!failed) MPI_Comm_free(&g->comm);
        if (began && groups == 0 && !any_failed) keel_mpi_end();
    }
    free(g);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Begin MPI, or see whether it can be used. */
static keel_status begin(char *error, size_t size)
{
    int is = 0, level = MPI_THREAD_SINGLE, here = 0;
    MPI_Finalized(&is);
    if (is) {
        fail(error, size, MPI_SUCCESS,
             "MPI has ended in this process, and cannot begin again; call MPI_Finalize later");
        return KEEL_EARG;
    }
    MPI_Initialized(&is);
    if (!is) {
        longest_piece = keel_mpi_eager();
        const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
        if (code != MPI_SUCCESS) {
            fail(error, size, code, "MPI cannot begin");
            return KEEL_EREMOTE;
        }
        began = true;
        /* MPICH asks these, and not the communicator of the messages, what an error in several is
         */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    } else {
        MPI_Query_thread(&level);
    }
    if (level < MPI_THREAD_FUNNELED) {
        fail(error, size, MPI_SUCCESS,
             "MPI was begun for one thread, but Keel has several; call MPI_Init_thread with "
             "MPI_THREAD_FUNNELED or more instead of MPI_Init");
        return KEEL_EARG;
    }
    MPI_Is_thread_main(&here);
    if (level == MPI_THREAD_FUNNELED && !here) {
        fail(error, size, MPI_SUCCESS,
             "MPI was begun with MPI_THREAD_FUNNELED by another thread; call this function there, "
             "or "
             "begin MPI with MPI_THREAD_SERIALIZED");
        return KEEL_EARG;
    }
    return KEEL_OK;
}

static size_t padded(size_t n_bytes)
{
    return (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* One block for all. count is at most KEEL_PROCESSES_MAX, so no size overflows. */
static group *make(int rank, int count)
{
    const size_t n = 2 * (size_t)(count - 1);
    const size_t hosts = padded((size_t)count * MPI_MAX_PROCESSOR_NAME);
    const size_t done = padded(n * sizeof(int)), status = padded(n * sizeof(MPI_Status));
    const size_t messages = padded(n * sizeof(message)), requests = padded(n * sizeof(MPI_Request));
    group *g = calloc(1, padded(sizeof *g) + hosts + done + status +
                             KEEL_EXCHANGES_MAX * (messages + requests));
    if (!g) return NULL;
    char *at = (char *)g + padded(sizeof *g);
    *g = (group){ .comm = MPI_COMM_NULL, .rank = rank, .count = count };
    g->host = at;
    g->done = (void *)(at += hosts);
    g->status = (void *)(at += done);
    at += status;
    for (int k = 0; k < KEEL_EXCHANGES_MAX; k++) {
        g->exchange[k].message = (void *)at;
        g->exchange[k].request = (void *)(at + messages);
        at += messages + requests;
    }
    return g;
}

static int gather_hosts(group *g)
{
    char own[MPI_MAX_PROCESSOR_NAME] = "";
    int n = 0;
    const int code = MPI_Get_processor_name(own, &n);
    if (code != MPI_SUCCESS) return code;
    own[sizeof own - 1] = 0;
    return MPI_Allgather(own, sizeof own, MPI_CHAR, g->host, sizeof own, MPI_CHAR, g->comm);
}

/* All processes there are are here: see whether all of them end MPI by mpi/end.c. */
static int agree_on_end(MPI_Comm comm)
{
    int own = began || keel_mpi_end_is_ours(), all = 0;
    const int code = MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, comm);
    return code == MPI_SUCCESS && all ? keel_mpi_end_together(comm) : code;
}

/* What all processes of comm do together. One that has no memory still takes part until all know
 * it. */
static keel_status connect_all(group **out, MPI_Comm comm, char *error, size_t size)
{
    int rank = 0, count = 0, inter = 0;
    if (comm == MPI_COMM_NULL || MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter) {
        fail(error, size, MPI_SUCCESS, "the communicator is none, or one between two groups");
        return KEEL_EARG;
    }
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &count);
    if (count > KEEL_PROCESSES_MAX) {
        fail(error, size, MPI_SUCCESS, "%d processes; %d are the most", count, KEEL_PROCESSES_MAX);
        return KEEL_EARG;
    }
    group *g = make(rank, count);
    int own[2] = { g != NULL, longest_piece }, all[2] = { 0 }, how = MPI_UNEQUAL;
    MPI_Comm copy = MPI_COMM_NULL;
    int code = MPI_Comm_dup(comm, &copy);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Allreduce(own, all, 2, MPI_INT, MPI_MIN, copy);
    if (code == MPI_SUCCESS && all[0]) {
        g->comm = copy;
        g->piece = all[1];
        code = gather_hosts(g);
    }
    if (code == MPI_SUCCESS && all[0]) code = MPI_Comm_compare(comm, MPI_COMM_WORLD, &how);
    if (code == MPI_SUCCESS && all[0] && how != MPI_UNEQUAL) code = agree_on_end(copy);
    if (code == MPI_SUCCESS && all[0]) {
        *out = g;
        return KEEL_OK;
    }
    free(g);
    if (code != MPI_SUCCESS) {
        fail(error, size, code, "the processes cannot be connected");
        return KEEL_EREMOTE;
    }
    MPI_Comm_free(&copy);
    fail(error, size, MPI_SUCCESS, own[0] ? "another process is out of memory" : "out of memory");
    return own[0] ? KEEL_EREMOTE : KEEL_ENOMEM;
}

static keel_status open_group(keel_process_group *out, const MPI_Comm *comm, char *error,
                              size_t size)
{
    group *g = NULL;
    keel_status s = begin(error, size);
    if (s >= 0) s = connect_all(&g, comm ? *comm : MPI_COMM_WORLD, error, size);
    if (s < 0) return s;
    groups++;
    *out = (keel_process_group){ KEEL_PROCESS_GROUP, .rank = g->rank,    .count = g->count,
                                 .context = g,       .host = host,       .start = start,
                                 .test = test,       .awaited = awaited, .close = close_group,
                                 .stop = stop };
    return KEEL_OK;
}

/* ---- what is seen from outside --------------------------------------------------------------- */

keel_mpi_opener keel_mpi_open;
int keel_mpi_open(keel_process_group *out, int abi, char *error, size_t size)
{
    if (abi != KEEL_MPI_ABI)
        return fail(
            error, size, MPI_SUCCESS,
            "it belongs to another version of Keel (interface %d, not %d); install both from "
            "one build",
            KEEL_MPI_ABI, abi);
    return open_group(out, NULL, error, size) < 0 ? -1 : 0;
}

keel_status keel_strategy_create_mpi(keel_strategy **out, const char *devices, MPI_Comm comm)
{
    keel_process_group g = { 0 };
    char error[512] = "", text[600];
    const keel_status s = open_group(&g, &comm, error, sizeof error);
    if (s >= 0) return keel_strategy_create_group(out, devices, &g);
    snprintf(text, sizeof text, "MPI: %s", error);
    return keel_error_set(s, text);
}
