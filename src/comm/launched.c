/* See keel/launcher.h: the exchanges of comm.h, for programs, with more patience than a step has.
 */
#include "base/memory.h"
#include "comm/comm.h"
#include "keel/launcher.h"
#include <string.h>

enum { PATIENCE = 1800 }; /* seconds; others may read their data, or evaluate */

struct keel_launched {
    keel_launch launch;
    keel_comm *comm;
};

keel_status keel_launched_open(keel_launched **out, const keel_launch *launch, double patience)
{
    keel_process_group group = { 0 };
    keel_launched *l = keel_calloc(1, sizeof *l);
    if (!l) return KEEL_ENOMEM;
    l->launch = *launch;
    keel_status s = keel_launch_connect(&group, launch, false);
    if (s >= 0) {
        group.timeout = patience > 0 ? patience : PATIENCE;
        s = keel_comm_create(&l->comm, &group);
    }
    if (s < 0) {
        keel_free(l);
        return s;
    }
    *out = l;
    return KEEL_OK;
}

int keel_launched_count(const keel_launched *l)
{
    return l->comm->group.count;
}

int keel_launched_rank(const keel_launched *l)
{
    return l->comm->group.rank;
}

const char *keel_launched_host(const keel_launched *l, int rank)
{
    return l->comm->group.host(l->comm->group.context, rank);
}

keel_status keel_launched_agree(keel_launched *l, keel_status mine)
{
    return keel_comm_agree(l->comm, mine < 0 ? mine : KEEL_OK, NULL, 0, NULL);
}

keel_status keel_launched_gather(keel_launched *l, const void *own, void *all, size_t bytes)
{
    memcpy((char *)all + (size_t)keel_launched_rank(l) * bytes, own, bytes);
    return keel_comm_all_gather_equal(l->comm, all, bytes);
}

/* In each round those that have the bytes send them to as many others. */
keel_status keel_launched_broadcast(keel_launched *l, void *data, size_t bytes)
{
    keel_comm *c = l->comm;
    const int rank = c->group.rank, count = c->group.count;
    memset(c->send_bytes, 0, (size_t)count * sizeof *c->send_bytes);
    memset(c->receive_bytes, 0, (size_t)count * sizeof *c->receive_bytes);
    for (int have = 1; have < count; have *= 2) {
        const bool sends = rank < have && rank + have < count, receives = rank / have == 1;
        const int other = sends ? rank + have : rank - have;
        if (!sends && !receives) continue;
        c->send[other] = c->receive[other] = data;
        c->send_bytes[other] = sends ? bytes : 0;
        c->receive_bytes[other] = receives ? bytes : 0;
        const keel_exchange e = { c->send, c->send_bytes, c->receive, c->receive_bytes, &other, 1 };
        KEEL_TRY(keel_comm_exchange(c, &e));
        c->send_bytes[other] = c->receive_bytes[other] = 0;
    }
    return KEEL_OK;
}

keel_status keel_launched_group(const keel_launched *l, keel_process_group *out)
{
    return keel_launch_connect(out, &l->launch, false);
}

void keel_launched_close(keel_launched *l, bool failed)
{
    if (!l) return;
    l->comm->lost = l->comm->lost || failed;
    keel_comm_destroy(l->comm);
    keel_free(l);
}
