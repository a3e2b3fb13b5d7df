/* What is under way between processes while something else is waited for or computed; and what the
 * time of it is said to be. */
#include "graph/buckets.h"
#include "sharded_works.h"

/* ---- while one exchange is waited for, another moves ----------------------------------------- */

/* The exchange ends when `move` has found something often enough. */
typedef struct pair {
    int left, moved; /* times that it has still to find something; calls of it */
} pair;

static int pair_start(void *context, int number, const keel_exchange *e, char *error, size_t size)
{
    (void)context, (void)number, (void)e, (void)error, (void)size;
    return 0;
}

static int pair_test(void *context, int number, char *error, size_t size)
{
    const pair *x = context;
    (void)number, (void)error, (void)size;
    return x->left == 0;
}

static void pair_close(void *context, bool failed)
{
    (void)context, (void)failed;
}

static const char *pair_host(void *context, int rank)
{
    (void)context, (void)rank;
    return "here";
}

static int pair_awaited(void *context, int number)
{
    (void)context, (void)number;
    return 1;
}

static bool move(void *context)
{
    pair *x = context;
    x->moved++;
    if (x->left > 0 && x->moved % 3 == 0) x->left--; /* not each call finds something */
    return x->moved % 3 == 0;
}

static void what_else_is_under_way_moves_while_one_is_awaited(void **unused)
{
    enum { MOVES = 40 };
    pair x = { .left = MOVES };
    const void *const from[2] = { 0 };
    void *const to[2] = { 0 };
    const size_t none[2] = { 0 };
    const keel_process_group g = { KEEL_PROCESS_GROUP,  .count = 2,
                                   .context = &x,       .host = pair_host,
                                   .start = pair_start, .test = pair_test,
                                   .timeout = 60,       .awaited = pair_awaited,
                                   .close = pair_close };
    keel_comm *c;
    (void)unused;
    must(keel_comm_create(&c, &g));
    c->meanwhile = move;
    c->meanwhile_context = &x;
    must(keel_comm_exchange(c, &(keel_exchange){ from, none, to, none }));
    assert_int_equal(x.moved, 3 * MOVES);
    keel_comm_destroy(c);
}

/* ---- gradients leave while statistics travel ------------------------------------------------- */

/* In front of a group: statistics that backward waits for come late, as on a slow network, until
 * gradients have left or TESTS were made. */
typedef struct slow {
    keel_process_group real;
    bool open;      /* statistics are on their way */
    int tests;      /* of them */
    int left_since; /* buckets that have left since they started */
    int with, all;  /* exchanges of statistics with gradients behind them; and all */
} slow;

enum { STATISTICS = KEEL_EXCHANGE_RECORDS, TESTS = 2000 };

static int slow_start(void *context, int number, const keel_exchange *e, char *error, size_t size)
{
    slow *x = context;
    if (number == STATISTICS) {
        x->open = true;
        x->tests = x->left_since = 0;
        x->all++;
    } else if (x->open && number >= KEEL_EXCHANGE_BUCKETS &&
               number < KEEL_EXCHANGE_BUCKETS + KEEL_BUCKETS_MAX)
        x->left_since++;
    return x->real.start(x->real.context, number, e, error, size);
}

static int slow_test(void *context, int number, char *error, size_t size)
{
    slow *x = context;
    if (number == STATISTICS && x->left_since == 0 && ++x->tests < TESTS) return 0;
    const int got = x->real.test(x->real.context, number, error, size);
    if (number == STATISTICS && got > 0) {
        x->with += x->left_since > 0;
        x->open = false;
    }
    return got;
}

static int slow_awaited(void *context, int number)
{
    const slow *x = context;
    return x->real.awaited(x->real.context, number);
}

static const char *slow_host(void *context, int rank)
{
    const slow *x = context;
    return x->real.host(x->real.context, rank);
}

static void slow_close(void *context, bool failed)
{
    const slow *x = context;
    x->real.close(x->real.context, failed);
}

/* The kernel behind BatchNormalization has nine tiles, so some of its gradient fills buckets before
 * the statistics that the gradient before it needs are here. */
static void gradients_leave_while_statistics_travel(void **unused)
{
    enum { N = 2 };
    const work *w = &works[0];
    const int64_t batch = 48, steps = (ROWS + batch - 1) / batch;
    thread_group group;
    sender x[N];
    slow first;
    (void)unused;
    thread_group_begin(&group, N);
    for (int i = 0; i < N; i++)
        x[i] = (sender){ .of = { .recipe = &w->recipe,
                                 .group = thread_group_of(&group, i),
                                 .data = rows_of(&w->recipe),
                                 .outcome.model = model_with(w) },
                         .batch = batch,
                         .epochs = 1 };
    first = (slow){ .real = x[0].of.group };
    x[0].of.group.context = &first;
    x[0].of.group.start = slow_start;
    x[0].of.group.test = slow_test;
    x[0].of.group.awaited = slow_awaited;
    x[0].of.group.host = slow_host;
    x[0].of.group.close = slow_close;
    live_together(send_all, x, sizeof *x, N);
    for (int i = 0; i < N; i++) {
        if (x[i].of.status < 0) fail_msg("process %d: %s", i, x[i].of.error);
        forget(&x[i].of.outcome);
        keel_dataset_destroy(x[i].of.data);
    }
    thread_group_end(&group);
    if (first.with != steps)
        fail_msg("%d of %d exchanges of statistics had gradients behind them in %d steps",
                 first.with, first.all, (int)steps);
}

/* ---- what the time was spent on ---------------------------------------------------------------
 */

static keel_status fit_profiled(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    (void)callbacks;
    return keel_fit(p->outcome.model, s, p->data,
                    &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 48, .profile = true },
                    &p->outcome.history);
}

static keel_model *flat_model(void)
{
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = dense(m, must_call(m, "Flatten", NULL, x), 600, "linear");
    x = dense(m, x, CLASSES, "softmax");
    must(keel_model_outputs(m, &x, 1));
    must(keel_model_compile(m,
                            &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" },
                                             .loss = { { "sparse_categorical_crossentropy" } } }));
    return m;
}

/* The first layer has no input gradient. Owners make that of its weights, tile by tile, while they
 * fold buckets. */
static void gradients_made_for_others_are_time_of_their_layer(void **unused)
{
    enum { N = 2 };
    thread_group group;
    process x[N];
    (void)unused;
    thread_group_begin(&group, N);
    for (int i = 0; i < N; i++)
        x[i] = (process){ .recipe = &works[0].recipe,
                          .group = thread_group_of(&group, i),
                          .data = rows_of(&works[0].recipe),
                          .outcome.model = flat_model(),
                          .run = fit_profiled,
                          .lanes = 1,
                          .workers = 1,
                          .timeout = PATIENT };
    run_all(x, N);
    for (int i = 0; i < N; i++) {
        if (x[i].status < 0) fail_msg("process %d: %s", i, x[i].error);
        const keel_profile *p = x[i].outcome.history.profile;
        const keel_profile_row *row = p->row;
        while (strcmp(row->layer, "dense")) assert_true(++row < p->row + p->count);
        if (row->backward_seconds < row->forward_seconds / 4)
            fail_msg("forward %g s, backward %g s, and reduce %g s", row->forward_seconds,
                     row->backward_seconds, p->reduce_seconds[0]);
        forget(&x[i].outcome);
        keel_dataset_destroy(x[i].data);
    }
    thread_group_end(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_else_is_under_way_moves_while_one_is_awaited),
        cmocka_unit_test(gradients_leave_while_statistics_travel),
        cmocka_unit_test(gradients_made_for_others_are_time_of_their_layer),
    };
    return cmocka_run_group_tests(tests, start_apart, NULL);
}
