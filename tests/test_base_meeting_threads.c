/* Workers meet: nobody leaves before all have come, whatever the number of cores. */
#include "base/meeting.h"
#include "base/memory.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

enum { MOST = 6 };

typedef struct crowd {
    keel_meeting *meeting;
    int n, rounds;
    int64_t slot[MOST]; /* plain on purpose: only the meeting orders the accesses */
    int64_t wrong[MOST];
} crowd;

typedef struct worker {
    crowd *c;
    int me;
} worker;

static void *work(void *p)
{
    const worker *w = p;
    crowd *c = w->c;
    for (int r = 1; r <= c->rounds; r++) {
        c->slot[w->me] = r;
        if (r % 500 == 0 && w->me == r / 500 % c->n) usleep(300); /* let the others fall asleep */
        keel_meeting_wait(c->meeting);
        for (int i = 0; i < c->n; i++) c->wrong[w->me] += c->slot[i] != r;
        keel_meeting_wait(c->meeting);
    }
    return NULL;
}

static void meet(int n, int spins, int rounds)
{
    crowd c = { .n = n, .rounds = rounds };
    worker w[MOST];
    pthread_t t[MOST];
    assert_int_equal(keel_meeting_create(&c.meeting, n, spins), KEEL_OK);
    for (int i = 0; i < n; i++) {
        w[i] = (worker){ &c, i };
        assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < n; i++) assert_int_equal(c.wrong[i], 0);
    keel_meeting_destroy(c.meeting);
}

static void all_see_what_each_wrote_before_when_they_sleep_at_once(void **state)
{
    for (int n = 2; n <= MOST; n++) meet(n, 0, 2000);
}

static void all_see_what_each_wrote_before_when_they_spin_a_little(void **state)
{
    for (int n = 2; n <= MOST; n++) meet(n, 50, 2000);
}

static void two_may_spin_for_long(void **state)
{
    meet(2, 2000, 5000);
}

static void one_alone_does_not_wait(void **state)
{
    meet(1, 0, 100000);
}

static void a_meeting_of_nobody_or_without_memory_is_refused(void **state)
{
    const int64_t live = keel_memory_live();
    keel_meeting *m = NULL;
    assert_int_equal(keel_meeting_create(&m, 0, 0), KEEL_EARG);
    keel_memory_fail_at(0);
    assert_int_equal(keel_meeting_create(&m, 2, 0), KEEL_ENOMEM);
    assert_null(m);
    keel_meeting_destroy(NULL);
    assert_int_equal(keel_memory_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_see_what_each_wrote_before_when_they_sleep_at_once),
        cmocka_unit_test(all_see_what_each_wrote_before_when_they_spin_a_little),
        cmocka_unit_test(two_may_spin_for_long),
        cmocka_unit_test(one_alone_does_not_wait),
        cmocka_unit_test(a_meeting_of_nobody_or_without_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
