/* See telling.h. */
#include "command.h"
#include "progress.h"
#include "telling.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUMBER = KEEL_EXCHANGES_MAX - 1 };
/* A process may read for long before it trains, or save for long afterwards, while others wait. */
enum { PATIENCE = 10 };

static int lose(const keel_process_group *g, const char *error)
{
    char safe[512];
    const int rank = g->awaited(g->context, NUMBER);
    const char *host = rank >= 0 ? g->host(g->context, rank) : NULL;
    const int number = rank >= 0 && g->number ? g->number(g->context, rank) : rank;
    if (g->stop) g->stop(g->context);
    keel_printable(safe, sizeof safe, error);
    if (rank < 0)
        return keel_complain(EXIT_FAILED, "the other processes cannot be reached: %s", safe);
    return keel_complain(EXIT_FAILED, "process %d (%s) does not answer%s%s", number,
                         host ? host : "?", *error ? ": " : "", safe);
}

static int wait_for_all(const keel_process_group *g)
{
    char error[512] = "";
    const double end = keel_now() + PATIENCE * g->timeout;
    for (;;) {
        const int got = g->test(g->context, NUMBER, error, sizeof error);
        if (got > 0) return -1;
        if (got < 0 || keel_now() > end) return lose(g, error);
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    }
}

/* Process q is sent sent[q] bytes of `own`, and what comes from it is `comes[q]` bytes; these lie
 * one after another in `all`. */
static int exchange(const keel_process_group *g, const void *own, const size_t *sent, char *all,
                    const size_t *comes)
{
    const size_t n = (size_t)g->count;
    const void **send = calloc(n, sizeof *send);
    void **receive = calloc(n, sizeof *receive);
    char error[512] = "";
    int code;
    if (!send || !receive) {
        code = keel_complain(EXIT_FAILED, "out of memory");
        goto out;
    }
    for (size_t q = 0; q < n; q++) {
        send[q] = own;
        receive[q] = all;
        all += comes[q];
    }
    const keel_exchange e = { send, sent, receive, comes };
    const int started = g->start(g->context, NUMBER, &e, error, sizeof error);
    code = started < 0 ? lose(g, error) : wait_for_all(g);
out:
    free(send);
    free(receive);
    return code;
}

int keel_tell_all(const keel_process_group *g, const void *own, void *all, size_t bytes)
{
    size_t *each = calloc((size_t)g->count, sizeof *each);
    if (!each || !all) {
        free(each);
        return keel_complain(EXIT_FAILED, "out of memory");
    }
    for (int q = 0; q < g->count; q++) each[q] = bytes;
    memcpy((char *)all + (size_t)g->rank * bytes, own, bytes);
    const int code = exchange(g, own, each, all, each);
    free(each);
    return code;
}

int keel_tell_from_first(const keel_process_group *g, void *data, size_t bytes)
{
    size_t *sent = calloc(2 * (size_t)g->count, sizeof *sent);
    if (!sent) return keel_complain(EXIT_FAILED, "out of memory");
    size_t *comes = sent + g->count;
    for (int q = 1; q < g->count && g->rank == 0; q++) sent[q] = bytes;
    if (g->rank > 0) comes[0] = bytes;
    const int code = exchange(g, data, sent, data, comes);
    free(sent);
    return code;
}
