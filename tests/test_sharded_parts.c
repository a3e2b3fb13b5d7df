/* How large the parts of the optimizer's state are that processes keep, and what travels between
 * them. Processes are threads here. */
#include "sharded_works.h"

/* ---- how large a part is --------------------------------------------------------------------- */

typedef struct share {
    int64_t bytes, held; /* of the optimizer's state in the process, and what it has allocated */
    bool stateless;      /* the model has none */
} share;

static share shares[THREADS_MAX];
static int64_t bucket_bytes;

static keel_status look(void *context, const keel_moment *at)
{
    const process *p = context;
    share *s = &shares[p->group.rank];
    const keel_trainer *t = at->model->live->trainer;
    const keel_updater *u = &t->mover[0].update;
    s->bytes = u->bytes;
    s->held = 0;
    for (int k = 0; k <= KEEL_SLOTS_MAX; k++) s->held += u->held[k];
    s->stateless = true;
    for (int i = 0; i < at->model->compiled.n_state; i++)
        s->stateless = s->stateless && !at->model->compiled.state[i].data;
    return KEEL_OK;
}

static keel_status fit_and_look(process *p, keel_strategy *s, const keel_callback *const *ignored)
{
    const keel_callback c = { KEEL_CALLBACK, .on_train_batch_end = look, .context = p };
    (void)ignored;
    s->comm->bucket_bytes = bucket_bytes;
    return fit_work(p, s, KEEL_CALLBACKS(&c));
}

/* Each process has at most an equal part of the state, and that of `more` weights. */
static void has_its_part(int64_t more)
{
    const work *w = &works[2]; /* three slots of each weight */
    int64_t count = 0;
    keel_model *m = model_with(w);
    for (int i = 0; i < m->n_weight; i++)
        if (m->weight[i].trainable) count += keel_shape_count(&m->weight[i].info.spec.shape);
    keel_model_destroy(m);
    for (int n = 2; n <= 8; n += 2) {
        job j;
        int64_t all = 0;
        begin_job(&j, w, n, NULL, 1);
        for (int i = 0; i < n; i++) j.x[i].of.run = fit_and_look;
        run_job(&j);
        all_went_well(&j);
        for (int i = 0; i < n; i++) {
            all += shares[i].bytes;
            assert_int_equal(shares[i].bytes, shares[i].held);
            assert_true(shares[i].stateless);
            const int64_t most = 3 * (int64_t)sizeof(float) * (count / n + more);
            if (shares[i].bytes > most)
                fail_msg("process %d of %d has %lld bytes of state, %lld at most", i, n,
                         (long long)shares[i].bytes, (long long)most);
        }
        assert_int_equal(all, 3 * (int64_t)sizeof(float) * count);
        end_job(&j);
    }
}

/* Parts are of whole tiles: half a one at each end of a bucket. */
static void a_process_has_its_part_of_the_state_alone(void **unused)
{
    (void)unused;
    bucket_bytes = KEEL_BUCKET_MOST;
    has_its_part(KEEL_TILE);
}

static void buckets_of_one_tile_go_to_all_processes(void **unused)
{
    (void)unused;
    bucket_bytes = KEEL_BUCKET_LEAST;
    has_its_part(KEEL_TILE + KEEL_TILE / 8); /* small weights have a tile each, too */
}

/* ---- what travels ---------------------------------------------------------------------------- */

static void what_travels_is_what_was_planned(void **unused)
{
    enum { BATCH = 25, AT_THE_END = 2 * 9 * sizeof(int64_t) };
    (void)unused;
    for (int k = 0; k < 4; k++) {
        const int n = 2 + k % 2;
        const recipe r = recipes[k < 2 ? 0 : 7];
        sender x[THREADS_MAX];
        int64_t sent[2];
        for (int e = 0; e < 2; e++) {
            const sender of = {
                .shards = r.shards, .batch = BATCH, .epochs = 1 + e, .shard_optimizer = true
            };
            send_together(x, n, &r, &of);
            sent[e] = x[0].bytes;
        }
        keel_plan p[2];
        keel_strategy *s;
        keel_model *m = model_of(&r);
        must(keel_strategy_create(&s, "cpu:0"));
        must(keel_strategy_reproducible(s, r.shards));
        for (int i = 0; i < 2; i++) {
            must(keel_strategy_shard_optimizer(s, i == 0));
            must(keel_plan_processes(&p[i], m, s, n, ROWS, BATCH, KEEL_KEEP, NULL));
        }
        const int64_t step = p[0].sent_gradients + p[0].sent_statistics + p[0].sent_others;
        assert_int_equal(sent[1] - sent[0], ROWS / BATCH * step + (n - 1) * AT_THE_END);
        assert_int_equal(p[0].sent_gradients, p[1].sent_gradients); /* weights for sums */
        assert_true(p[0].moment_bytes < p[1].moment_bytes * 3 / 4);
        assert_true(p[0].exchanges >= p[1].exchanges + 2);
        for (int i = 0; i < 2; i++) keel_plan_free(&p[i]);
        keel_strategy_destroy(s);
        keel_model_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_has_its_part_of_the_state_alone),
        cmocka_unit_test(buckets_of_one_tile_go_to_all_processes),
        cmocka_unit_test(what_travels_is_what_was_planned),
    };
    return cmocka_run_group_tests(tests, start_apart, NULL);
}
