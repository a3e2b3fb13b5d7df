/* Rounds in which processes join their nodes of a step's tree: whatever the processes, lanes and
 * rows, who is expected sends, all end with the root, and it has the additions of the tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/memory.h"
#include "graph/rounds.h"
#include "must.h"
#include "thread_processes.h"

enum { MOST = KEEL_PROCESSES_MAX };

/* n processes; process q has 1 + q % uneven lanes. */
static keel_lanes lanes_of(int n, int process, int uneven, int shards, int before[MOST + 1])
{
    keel_lanes l = { .shards = shards };
    before[0] = 0;
    for (int q = 0; q < n; q++) before[q + 1] = before[q] + 1 + q % uneven;
    keel_lanes_join(&l, process, n, before, n);
    return l;
}

static const int64_t some_rows[] = { 1, 2, 3, 7, 8, 31, 75, 1000, 8192 };

static bool lists(const int *list, int n, int wanted)
{
    for (int i = 0; i < n; i++)
        if (list[i] == wanted) return true;
    return false;
}

static int most_rounds(int n)
{
    int rounds = 0;
    for (int joined = 1; joined < n; joined *= KEEL_ROUND_BLOCKS) rounds++;
    return rounds;
}

/* The k-th round from the end is the same for all that take part in it. */
static const keel_round *from_the_end(const keel_rounds *r, int k)
{
    return k < r->n ? &r->round[r->n - 1 - k] : NULL;
}

static void check_round(const keel_rounds *all, int n, int q, int k)
{
    const keel_round *r = from_the_end(&all[q], k);
    if (!r) return;
    assert_int_equal(r->from[r->own], q);
    for (int i = 0; i < r->n_block; i++) {
        const keel_round *its = from_the_end(&all[r->from[i]], k);
        assert_true(r->from[i] >= 0 && r->from[i] < n && its);
        assert_int_equal(its->own, i);
        assert_int_equal(its->nodes[i], r->nodes[i]);
        if (i == r->own) continue;
        assert_true(lists(its->to, its->n_to, q));
        assert_true(lists(r->with, r->n_with, r->from[i]));
    }
    for (int i = 0; i < r->n_to; i++) {
        const keel_round *its = from_the_end(&all[r->to[i]], k);
        assert_true(its && its->own != r->own);
        assert_int_equal(its->from[r->own], q);
        assert_false(lists(r->to, i, r->to[i])); /* once */
        assert_true(lists(r->with, r->n_with, r->to[i]));
    }
    for (int i = 0; i < r->n_with; i++) {
        assert_false(lists(r->with, i, r->with[i]));
        assert_true(r->with[i] != q);
    }
}

static void who_is_expected_sends(void **unused)
{
    static keel_rounds all[MOST];
    static int before[MOST + 1];
    static const int counts[] = { 100, 255, 1000, 1023, 1024 };
    (void)unused;
    for (int c = 2; c < 40 + 5; c++) {
        const int n = c < 40 ? c : counts[c - 40];
        const int64_t rows = some_rows[c % 9];
        for (int q = 0; q < n; q++) {
            const keel_lanes l = lanes_of(n, q, 1 + c % 3, 0, before);
            keel_rounds_plan(&all[q], &l, rows);
            assert_true(all[q].n >= 1 && all[q].n <= most_rounds(n));
        }
        assert_int_equal(all[0].n, most_rounds(n));
        for (int q = 0; q < n; q++)
            for (int k = 0; k < KEEL_ROUNDS_MAX; k++) check_round(all, n, q, k);
    }
}

static void what_is_sent_grows_with_the_logarithm(void **unused)
{
    static const struct {
        const char *what;
        int processes, rounds, sent;
    } cases[] = {
        { "alone", 1, 0, 0 },
        { "two tell each other", 2, 1, 1 },
        { "up to eight at once", 8, 1, 7 },
        { "four and four", 16, 2, 6 },
        { "eight and eight", 64, 2, 14 },
        { "eight, eight and eight", 512, 3, 21 },
        { "as many as there can be", 1024, 4, 20 },
    };
    static int before[MOST + 1];
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int n = cases[i].processes;
        const keel_lanes l = lanes_of(n, n / 3, 1, 0, before);
        keel_rounds r;
        keel_rounds_plan(&r, &l, 8 * n);
        if (r.n != cases[i].rounds || keel_rounds_sent(&r) != cases[i].sent)
            fail_msg("%s: %d rounds, %d nodes", cases[i].what, r.n, (int)keel_rounds_sent(&r));
    }
}

/* ---- run ------------------------------------------------------------------------------------- */

/* A node has its rows, and a number that depends on all additions and their order. */
enum { LENGTH = 3 };

static double mixed(double left, double right)
{
    const uint64_t x = (uint64_t)left * 0x9e3779b97f4a7c15u + (uint64_t)right * 3 + 1;
    return (double)(x >> 12); /* exact in a double */
}

static void join(const void *context, double *left, const double *right)
{
    assert_int_equal(*(const int *)context, 7);
    left[0] += right[0];
    left[1] = mixed(left[1], right[1]);
    assert_true(left[2] + left[0] - right[0] == right[2]); /* neighbours, in order */
}

static void node_of(int64_t n, int64_t first, int64_t next, double out[LENGTH])
{
    int64_t middle = first;
    out[0] = (double)(next - first), out[1] = (double)first * 17 + 5, out[2] = (double)first;
    if (next - first == 1) return;
    double right[LENGTH]; /* the left child is the largest node that begins here and ends before */
    middle = keel_tree_next(n, first, next - 1);
    node_of(n, first, middle, out);
    node_of(n, middle, next, right);
    join(&(int){ 7 }, out, right);
}

typedef struct member {
    keel_process_group group;
    keel_lanes lanes;
    int64_t rows;
    double node[KEEL_ROUND_BLOCKS * 64 * LENGTH];
    keel_status status;
} member;

static void *live(void *context)
{
    member *m = context;
    keel_comm *c = NULL;
    keel_round_tables tables = { 0 };
    keel_rounds r;
    int64_t at, end;
    double *node = m->node;
    keel_lanes_rows(&m->lanes, m->rows, m->lanes.process, &at, &end);
    for (int64_t next; at < end; at = next, node += LENGTH) {
        next = keel_tree_next(m->rows, at, end);
        node_of(m->rows, at, next, node);
    }
    keel_rounds_plan(&r, &m->lanes, m->rows);
    m->status = keel_comm_create(&c, &m->group);
    if (m->status >= 0) m->status = keel_round_tables_make(&tables, m->lanes.n_process);
    if (m->status >= 0 && m->rows % 2)
        m->status = keel_rounds_run(&r, c, &tables, m->node, LENGTH, join, &(int){ 7 });
    else if (m->status >= 0) { /* by who does something else meanwhile */
        keel_rounds_way w = { &r, c, &tables, m->node, LENGTH, join, &(int){ 7 } };
        m->status = keel_rounds_begin(&w);
        while (w.rounds && m->status >= 0) m->status = keel_rounds_look(&w);
    }
    for (int q = 0; q < m->lanes.n_process && m->status >= 0; q++) /* the tables are as before */
        assert_int_equal(tables.send_bytes[q] + tables.receive_bytes[q], 0);
    keel_round_tables_free(&tables);
    keel_comm_destroy(c);
    return NULL;
}

static void all_end_with_the_root(void **unused)
{
    static member m[THREADS_MAX];
    static int before[MOST + 1];
    (void)unused;
    for (int n = 2; n <= THREADS_MAX; n++)
        for (size_t i = n % 2; i < sizeof some_rows / sizeof *some_rows; i += 2) {
            thread_group group;
            double want[LENGTH];
            const int64_t rows = some_rows[i];
            thread_group_begin(&group, n);
            for (int q = 0; q < n; q++)
                m[q] = (member){ .group = thread_group_of(&group, q),
                                 .lanes = lanes_of(n, q, 1 + n % 4, i % 3 ? 0 : 40, before),
                                 .rows = rows };
            live_together(live, m, sizeof *m, n);
            node_of(rows, 0, rows, want);
            for (int q = 0; q < n; q++) {
                must(m[q].status);
                if (memcmp(m[q].node, want, sizeof want))
                    fail_msg("process %d of %d has another root of %d rows", q, n, (int)rows);
            }
            thread_group_end(&group);
        }
}

static void tables_fail_without_a_leak(void **unused)
{
    const int64_t live_blocks = keel_memory_live();
    (void)unused;
    for (int k = 0, failed = 1; failed; k++) {
        keel_round_tables t = { 0 };
        keel_memory_fail_at(k);
        failed = keel_round_tables_make(&t, 5) == KEEL_ENOMEM;
        keel_memory_fail_at(-1);
        keel_round_tables_free(&t);
        assert_int_equal(keel_memory_live(), live_blocks);
        assert_true(k < 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_expected_sends),
        cmocka_unit_test(what_is_sent_grows_with_the_logarithm),
        cmocka_unit_test(all_end_with_the_root),
        cmocka_unit_test(tables_fail_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
