/* Exchanges between processes: a group that makes no sense is refused, who does not answer is named
 * once and for all, and what is collected is the same in all processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/memory.h"
#include "comm/comm.h"
#include "thread_processes.h"

/* ---- a group that does as it is told --------------------------------------------------------- */

typedef struct told {
    int start, test, awaited; /* what these functions give; test: of each exchange but PRESENT */
    int present;              /* what the test of PRESENT gives, and who is awaited in it */
    int present_awaited;
    int there; /* processes that say in it that they are there, as bits */
    int starts, tests, stops, closes;
    bool closed_as_failed;
    const char *host;
    int number_from; /* number of process 0 */
} told;

static const char *told_host(void *context, int rank)
{
    (void)rank;
    return ((told *)context)->host;
}

static int told_start(void *context, int number, const keel_exchange *e, char *error, size_t size)
{
    told *t = context;
    t->starts++;
    for (int q = 0; number == KEEL_EXCHANGE_PRESENT && q < 4; q++)
        if (t->there >> q & 1) *(char *)e->receive[q] = *(const char *)e->send[q];
    snprintf(error, size, "no\1way");
    return t->start;
}

static int told_test(void *context, int number, char *error, size_t size)
{
    told *t = context;
    t->tests++;
    snprintf(error, size, "gone\1");
    return number == KEEL_EXCHANGE_PRESENT ? t->present : t->test;
}

static int told_awaited(void *context, int number)
{
    const told *t = context;
    return number == KEEL_EXCHANGE_PRESENT ? t->present_awaited : t->awaited;
}

static void told_close(void *context, bool failed)
{
    told *t = context;
    t->closes++;
    t->closed_as_failed = failed;
}

static int told_number(void *context, int rank)
{
    return ((told *)context)->number_from + rank;
}

static void told_stop(void *context)
{
    ((told *)context)->stops++;
}

static keel_process_group group_of(told *t)
{
    return (keel_process_group){ KEEL_PROCESS_GROUP,  .rank = 1,
                                 .count = 4,          .context = t,
                                 .host = told_host,   .start = told_start,
                                 .test = told_test,   .awaited = told_awaited,
                                 .close = told_close, .number = told_number,
                                 .stop = told_stop,   .timeout = 0.05 };
}

static keel_comm *comm_of(told *t)
{
    const keel_process_group g = group_of(t);
    keel_comm *c = NULL;
    assert_int_equal(keel_comm_create(&c, &g), KEEL_OK);
    return c;
}

static void a_group_that_makes_no_sense_is_refused(void **unused)
{
    static const struct {
        int size, rank, count, lacks; /* size: added to it */
        const char *says;             /* NULL: it makes sense */
    } cases[] = {
        { 0, 0, 1, 0, NULL },
        { 0, 1023, 1024, 0, NULL },
        { 8, 0, 1, 0, "another version of Keel" },
        { 0, 0, 0, 0, "a group of 0 processes; 1 to 1024" },
        { 0, 0, 1025, 0, "a group of 1025 processes" },
        { 0, -1, 2, 0, "process -1 of a group of 2" },
        { 0, 2, 2, 0, "process 2 of a group of 2" },
        { 0, 0, 2, 1, "lacks a function" },
        { 0, 0, 2, 2, "lacks a function" },
        { 0, 0, 2, 3, "lacks a function" },
        { 0, 0, 2, 4, "lacks a function" },
        { 0, 0, 2, 5, "lacks a function" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        told t = { 0 };
        keel_process_group g = group_of(&t);
        keel_comm *c = NULL;
        g.size += (size_t)cases[i].size;
        g.rank = cases[i].rank;
        g.count = cases[i].count;
        if (cases[i].lacks == 1) g.host = NULL;
        if (cases[i].lacks == 2) g.start = NULL;
        if (cases[i].lacks == 3) g.test = NULL;
        if (cases[i].lacks == 4) g.awaited = NULL;
        if (cases[i].lacks == 5) g.close = NULL;
        const keel_status s = keel_comm_create(&c, &g);
        assert_int_equal(s, cases[i].says ? KEEL_EARG : KEEL_OK);
        if (cases[i].says && !strstr(keel_error(), cases[i].says)) fail_msg("%s", keel_error());
        assert_true(!c == !!cases[i].says);
        keel_comm_destroy(c);
        assert_int_equal(t.closes, cases[i].says ? 0 : 1);
        assert_false(t.closed_as_failed);
    }
}

static void without_memory_the_group_is_closed_as_failed(void **unused)
{
    keel_status s = KEEL_ENOMEM;
    (void)unused;
    for (int64_t k = 0; s < 0; k++) {
        told t = { 0 };
        const keel_process_group g = group_of(&t);
        keel_comm *c = NULL;
        const int64_t live = keel_memory_live();
        keel_memory_fail_at(k);
        s = keel_comm_create(&c, &g);
        keel_memory_fail_at(-1);
        assert_int_equal(t.closes, s < 0);
        assert_int_equal(t.closed_as_failed, s < 0);
        keel_comm_destroy(c);
        assert_int_equal(keel_memory_live(), live);
    }
    assert_int_equal(s, KEEL_OK);
}

static void a_process_is_named_by_its_number_and_machine(void **unused)
{
    static const struct {
        const char *host;
        int from, rank;
        const char *name;
    } cases[] = {
        { "node7", 0, 3, "process 3 (node7)" },
        { "node7", 10, 3, "process 13 (node7)" },
        { NULL, 0, 0, "process 0 (?)" },
        { "a\1b", 0, 2, "process 2 (a?b)" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        told t = { .host = cases[i].host, .number_from = cases[i].from };
        keel_comm *c = comm_of(&t);
        char name[KEEL_COMM_NAME_MAX];
        assert_string_equal(keel_comm_name(c, cases[i].rank, name), cases[i].name);
        keel_comm_destroy(c);
    }
}

/* In all of them process 1 starts an exchange and waits for its end. */
static void who_does_not_answer_is_named_once_and_for_all(void **unused)
{
    static const struct {
        const char *what;
        told t;
        int lost_rank;
        const char *says; /* NULL: it ends well */
    } cases[] = {
        { "an exchange that ends", { .test = 1, .awaited = -1 }, 0, NULL },
        { "one that cannot start",
          { .start = -1, .awaited = 2 },
          -1,
          "the other processes cannot be reached: no?way" },
        { "a process that is gone",
          { .test = -1, .awaited = 2 },
          2,
          "process 2 (h) does not answer: gone?" },
        { "it cannot be said who is gone",
          { .test = -1, .awaited = -1 },
          -1,
          "a process does not answer: gone?" },
        { "one is silent",
          { .awaited = 3, .present_awaited = 3 },
          3,
          "process 3 (h) has not answered for" },
        { "the awaited waits itself, for another",
          { .awaited = 3, .there = 9, .present_awaited = 2 },
          2,
          "process 2 (h) has not answered" },
        { "the awaited waits itself, for the first",
          { .awaited = 3, .there = 8, .present_awaited = 0 },
          0,
          "process 0 (h) has not answered" },
        { "the awaited waits itself, for nobody",
          { .awaited = 3, .there = 13, .present_awaited = -1 },
          3,
          "process 3 (h) has not answered" },
        { "neither is there",
          { .awaited = 3, .there = 1, .present_awaited = 2 },
          3,
          "process 3 (h) has not answered" },
        { "who is awaited cannot be asked",
          { .awaited = 0, .present = -1, .present_awaited = 2 },
          0,
          "process 0 (h) has not answered" },
        { "all are there, but one still owes its part",
          { .awaited = -1, .present = 1, .present_awaited = 2 },
          -1,
          "a process has not answered" },
        { "nobody is awaited, and one is silent",
          { .awaited = -1, .present_awaited = 2 },
          2,
          "process 2 (h) has not answered" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        told t = cases[i].t;
        t.host = "h";
        keel_comm *c = comm_of(&t);
        const size_t none[4] = { 0 };
        const void *from[4] = { 0 };
        void *to[4] = { 0 };
        const keel_exchange e = { from, none, to, none };
        const keel_status s = keel_comm_exchange(c, &e);
        assert_in_range(c->busy, 0, 100000000000); /* ns: a length of time, not one of day */
        if (!cases[i].says) {
            assert_int_equal(s, KEEL_OK);
            assert_int_equal(t.stops, 0);
        } else {
            const int starts = t.starts, tests = t.tests;
            char first[KEEL_ERROR_MAX];
            bool done = true;
            snprintf(first, sizeof first, "%s", keel_error());
            if (s != KEEL_EREMOTE || !strstr(first, cases[i].says))
                fail_msg("%s: %s", cases[i].what, first);
            assert_int_equal(c->lost_rank, cases[i].lost_rank);
            assert_int_equal(t.stops, 1);
            assert_int_equal(keel_comm_exchange(c, &e), KEEL_EREMOTE); /* without asking anybody */
            assert_string_equal(keel_error(), first);
            assert_int_equal(keel_comm_test(c, 0, &done), KEEL_EREMOTE);
            assert_false(done);
            assert_int_equal(t.starts, starts);
            assert_int_equal(t.tests, tests);
        }
        keel_comm_destroy(c);
        assert_int_equal(t.closes, 1);
        assert_int_equal(t.closed_as_failed, cases[i].says != NULL);
    }
}

static void what_is_sent_to_others_is_counted(void **unused)
{
    static const int two[] = { 1, 3 };
    const size_t bytes[4] = { 5, 7, 11, 13 };
    const void *from[4] = { 0 };
    void *to[4] = { 0 };
    keel_exchange e = { from, bytes, to, bytes };
    told t = { .test = 1 };
    (void)unused;
    keel_comm *c = comm_of(&t); /* process 1 of 4 */
    assert_int_equal(keel_comm_start(c, 5, &e), KEEL_OK);
    assert_int_equal(c->bytes, 5 + 11 + 13);
    e.with = two;
    e.n_with = 2;
    assert_int_equal(keel_comm_start(c, 6, &e), KEEL_OK);
    assert_int_equal(c->bytes, 5 + 11 + 13 + 13);
    keel_comm_destroy(c);
}

/* ns of an exchange of few bytes and of one of 256 KiB. */
static void buckets_cost_a_tenth_more_than_their_bytes(void **unused)
{
    static const struct {
        const char *what;
        int64_t small, large, want;
    } cases[] = {
        { "1 byte a ns, and 0.1 ms of other cost", 100000, 100000 + (256 << 10), 1000000 },
        { "2 bytes a ns", 100000, 100000 + (128 << 10), 2000000 },
        { "so little other cost that the least bucket is enough", 1000, 1000 + (256 << 10),
          KEEL_BUCKET_LEAST },
        { "so much that even the largest is not", 10000000, 10000000 + (256 << 10),
          KEEL_BUCKET_MOST },
        { "bytes cost nothing", 5000, 5000, KEEL_BUCKET_MOST },
        { "more bytes were faster", 5000, 4000, KEEL_BUCKET_MOST },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (keel_comm_bucket(cases[i].small, cases[i].large) != cases[i].want)
            fail_msg("%s: %lld", cases[i].what,
                     (long long)keel_comm_bucket(cases[i].small, cases[i].large));
}

/* ---- several processes ----------------------------------------------------------------------- */

enum { MEMBERS = 4 };

typedef struct member {
    keel_process_group group;
    keel_comm *comm;
    int fails; /* processes that fail, as bits */
    bool told;
    keel_status agreed, gathered, sent;
    char error[KEEL_ERROR_MAX];
    int64_t number[MEMBERS][KEEL_COMM_NUMBERS], bucket_bytes;
    char all[16], word[8];
} member;

/* Agree, and once more without a failure; collect what has 1 + rank bytes; get a word of process 0;
 * measure. */
static void *exchange(void *context)
{
    static const size_t at[MEMBERS] = { 0, 1, 3, 6 }, bytes[MEMBERS] = { 1, 2, 3, 4 };
    member *m = context;
    const int rank = m->group.rank;
    int64_t mine[KEEL_COMM_NUMBERS], all[MEMBERS * KEEL_COMM_NUMBERS];
    keel_comm *c;
    if ((m->agreed = keel_comm_create(&c, &m->group)) < 0) return NULL;
    for (int i = 0; i < KEEL_COMM_NUMBERS; i++) mine[i] = 100 * rank + i;
    const bool fails = m->fails >> rank & 1;
    m->agreed =
        keel_comm_agree(c, fails ? keel_fail(KEEL_EDATA, "row %d is broken", rank) : KEEL_OK, mine,
                        KEEL_COMM_NUMBERS, all);
    m->told = c->told;
    if (m->agreed < 0) snprintf(m->error, sizeof m->error, "%s", keel_error());
    if (m->agreed >= 0) memcpy(m->number, all, sizeof all);
    if (keel_comm_agree(c, KEEL_OK, NULL, 0, NULL) < 0 || c->told) m->told = !m->told;
    memset(m->all + at[rank], 'a' + rank, bytes[rank]);
    m->gathered = keel_comm_all_gather(c, m->all, at, bytes);
    snprintf(m->word, sizeof m->word, "rank%d", rank);
    m->sent = keel_comm_broadcast(c, m->word, sizeof m->word);
    if (m->sent >= 0) m->sent = keel_comm_measure(c);
    m->bucket_bytes = c->bucket_bytes;
    keel_comm_destroy(c);
    return NULL;
}

static void all_agree_and_have_the_same(void **unused)
{
    static const struct {
        int fails, first; /* the first of those that fail; -1: none does */
    } cases[] = { { 0, -1 }, { 1 << 3, 3 }, { 1 << 0, 0 }, { 1 << 1 | 1 << 2, 1 }, { 15, 0 } };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thread_group group;
        member m[MEMBERS] = { 0 };
        char want[64];
        thread_group_begin(&group, MEMBERS);
        for (int q = 0; q < MEMBERS; q++) {
            m[q].group = thread_group_of(&group, q);
            m[q].group.timeout = PATIENT;
            m[q].fails = cases[i].fails;
        }
        live_together(exchange, m, sizeof *m, MEMBERS);
        const int first = cases[i].first;
        snprintf(want, sizeof want, "process %d (here): row %d is broken", first, first);
        for (int q = 0; q < MEMBERS; q++) {
            assert_int_equal(m[q].agreed, first < 0 ? KEEL_OK : KEEL_EDATA);
            assert_int_equal(m[q].told, first >= 0);
            if (first >= 0) assert_string_equal(m[q].error, want);
            for (int p = 0; p < MEMBERS && first < 0; p++)
                for (int k = 0; k < KEEL_COMM_NUMBERS; k++)
                    assert_int_equal(m[q].number[p][k], 100 * p + k);
            assert_int_equal(m[q].gathered, KEEL_OK);
            assert_string_equal(m[q].all, "abbcccdddd");
            assert_int_equal(m[q].sent, KEEL_OK);
            assert_string_equal(m[q].word, "rank0");
            assert_int_equal(m[q].bucket_bytes, m[0].bucket_bytes);
            assert_in_range(m[q].bucket_bytes, KEEL_BUCKET_LEAST, KEEL_BUCKET_MOST);
        }
        thread_group_end(&group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_that_makes_no_sense_is_refused),
        cmocka_unit_test(without_memory_the_group_is_closed_as_failed),
        cmocka_unit_test(a_process_is_named_by_its_number_and_machine),
        cmocka_unit_test(who_does_not_answer_is_named_once_and_for_all),
        cmocka_unit_test(what_is_sent_to_others_is_counted),
        cmocka_unit_test(buckets_cost_a_tenth_more_than_their_bytes),
        cmocka_unit_test(all_agree_and_have_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
