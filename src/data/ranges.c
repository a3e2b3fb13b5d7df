/* See ranges.h. */
#include "data/ranges.h"
#include "data/pool.h"

enum { LEAST = 1 << 16 /* elements that are worth a thread, whose start takes 50 us */, MOST = 16 };

typedef struct range {
    keel_task task; /* first, so that a task is its range */
    keel_range_run *run;
    void *context;
    int64_t begin, end;
} range;

static void run_range(keel_task *task, struct keel_scratch *scratch)
{
    const range *r = (const range *)(void *)task;
    (void)scratch;
    r->run(r->context, r->begin, r->end);
}

keel_status keel_ranges(int64_t n, keel_range_run *run, void *context)
{
    const int64_t worth = n / LEAST, has = keel_reading_threads();
    const int threads = (int)(worth < has ? worth : has < MOST ? has : MOST);
    keel_pool *pool = NULL;
    range r[MOST];
    if (threads < 2) {
        run(context, 0, n);
        return KEEL_OK;
    }
    KEEL_TRY(keel_pool_create(&pool, threads - 1, true, NULL, NULL));
    for (int i = 0; i < threads; i++) {
        r[i] =
            (range){ { .run = run_range }, run, context, n / threads * i, n / threads * (i + 1) };
        if (i == threads - 1) r[i].end = n;
        keel_pool_add(pool, &r[i].task);
    }
    for (int i = 0; i < threads; i++) keel_pool_wait(pool, &r[i].task, NULL);
    keel_pool_destroy(pool);
    return KEEL_OK;
}
