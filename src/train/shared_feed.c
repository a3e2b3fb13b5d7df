/* See shared_feed.h. */
#include "train/shared_feed.h"
#include <string.h>

_Static_assert((int)KEEL_SHARED_NUMBERS <= (int)KEEL_COMM_NUMBERS, "numbers of one agreement");

static void rows_of(const void *context, int64_t rows, int process, int64_t *first, int64_t *end)
{
    keel_lanes_rows(&((const keel_strategy *)context)->lanes, rows, process, first, end);
}

/* As long as any other agreement: a process may come here that leaves (train/together.h). */
static keel_status agree(const void *context, keel_status mine, int64_t *number)
{
    const keel_strategy *s = context;
    KEEL_TRY(keel_comm_agree(s->comm, mine, number, KEEL_SHARED_NUMBERS, NULL));
    memcpy(number, keel_comm_said(s->comm, 0), KEEL_SHARED_NUMBERS * sizeof *number);
    return KEEL_OK;
}

static keel_status broadcast(const void *context, void *data, size_t n_bytes)
{
    return keel_comm_broadcast(((const keel_strategy *)context)->comm, data, n_bytes);
}

static keel_status scatter(const void *context, int64_t rows, void *data, size_t n_bytes)
{
    const keel_strategy *s = context;
    keel_comm *c = s->comm;
    for (int q = 0; q < c->group.count; q++) {
        const bool sends = c->group.rank == 0 && q > 0, receives = c->group.rank > 0 && q == 0;
        int64_t first, end;
        keel_lanes_rows(&s->lanes, rows, receives ? c->group.rank : q, &first, &end);
        c->send[q] = c->receive[q] = (char *)data + (size_t)first * n_bytes;
        c->send_bytes[q] = sends ? (size_t)(end - first) * n_bytes : 0;
        c->receive_bytes[q] = receives ? (size_t)(end - first) * n_bytes : 0;
    }
    return keel_comm_exchange_noted(c);
}

keel_feed_share keel_share_feed(const keel_strategy *s)
{
    return (keel_feed_share){ .context = s,
                              .process = s->lanes.process,
                              .n_process = s->lanes.n_process,
                              .patience = s->comm->timeout,
                              .rows_of = rows_of,
                              .agree = agree,
                              .broadcast = broadcast,
                              .scatter = scatter };
}
