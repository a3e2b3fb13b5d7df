/* What processes send in a fit. */
#ifndef KEEL_TESTS_SENT_BYTES_H
#define KEEL_TESTS_SENT_BYTES_H
#include "process_works.h"
#include "comm/comm.h"

/* A fit alone, and the bytes that the process has sent. */
typedef struct sender {
    process of;
    int shards; /* 0: an ordinary step */
    keel_compress how;
    bool shard_optimizer;
    int64_t batch, epochs, bytes;
} sender;

static void *send_all(void *context)
{
    sender *x = context;
    process *p = &x->of;
    keel_strategy *s = NULL;
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = x->batch, .epochs = x->epochs };
    p->group.timeout = PATIENT;
    p->status = open_lanes(&s, &p->group, 1, 1);
    if (s) s->comm->bucket_bytes = KEEL_BUCKET_LEAST; /* as the plan, which knows no connection */
    if (p->status >= 0 && x->shards) p->status = keel_strategy_reproducible(s, x->shards);
    if (p->status >= 0) p->status = keel_strategy_compress(s, x->how);
    if (p->status >= 0) p->status = keel_strategy_shard_optimizer(s, x->shard_optimizer);
    if (p->status >= 0) p->status = keel_fit(p->outcome.model, s, p->data, &o, &p->outcome.history);
    if (p->status < 0) snprintf(p->error, sizeof p->error, "%s", keel_error());
    if (s) x->bytes = s->comm->bytes;
    keel_strategy_destroy(s);
    return NULL;
}

/* n processes as `like`; x[i].bytes is of each. */
static inline void send_together(sender x[THREADS_MAX], int n, const recipe *r, const sender *like)
{
    thread_group group;
    thread_group_begin(&group, n);
    for (int i = 0; i < n; i++) {
        x[i] = *like;
        x[i].of = (process){ .recipe = r,
                             .group = thread_group_of(&group, i),
                             .data = rows_of(r),
                             .outcome.model = model_of(r) };
    }
    live_together(send_all, x, sizeof *x, n);
    for (int i = 0; i < n; i++) {
        if (x[i].of.status < 0) fail_msg("process %d: %s", i, x[i].of.error);
        forget(&x[i].of.outcome);
        keel_dataset_destroy(x[i].of.data);
    }
    thread_group_end(&group);
}

#endif
