/* Threads share turns as they come: each turn once, phases one behind the other, whoever is there.
 */
#include "base/crew.h"
#include "base/memory.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

enum { MOST = 6, PHASES = 5, TURNS = 40 };

static const int turns[PHASES] = { 1, TURNS, 3, 1, 17 };

typedef struct crowd {
    keel_crew *crew;
    int places, late;            /* late: this thread comes when the others have begun */
    int64_t done[PHASES][TURNS]; /* plain on purpose: only the crew orders the accesses */
    _Atomic int busy[MOST];
    _Atomic int wrong;
} crowd;

static void take_turn(void *context, int phase, int turn, int place)
{
    crowd *c = context;
    if (place < 0 || place >= c->places || atomic_exchange(&c->busy[place], 1)) c->wrong++;
    for (int i = 0; phase > 0 && i < turns[phase - 1]; i++) c->wrong += c->done[phase - 1][i] != 1;
    c->done[phase][turn]++;
    if (turn % 16 == 5) usleep(50); /* let the others fall asleep */
    atomic_store(&c->busy[place], 0);
}

typedef struct worker {
    crowd *c;
    int me;
} worker;

static void *work(void *p)
{
    const worker *w = p;
    if (w->me == w->c->late) usleep(100);
    keel_crew_work(w->c->crew, take_turn, w->c);
    for (int i = 0; i < PHASES; i++)
        for (int k = 0; k < turns[i]; k++) w->c->wrong += w->c->done[i][k] != 1;
    return NULL;
}

static void share(int n, int places, int spins, int rounds)
{
    keel_crew *crew;
    assert_int_equal(keel_crew_create(&crew, places, spins), KEEL_OK);
    for (int r = 0; r < rounds; r++) {
        crowd c = { .crew = crew, .places = places, .late = r % (n + 1) };
        worker w[MOST];
        pthread_t t[MOST];
        keel_crew_begin(crew, turns, PHASES);
        for (int i = 0; i < n; i++) {
            w[i] = (worker){ &c, i };
            assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
        }
        for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
        assert_int_equal(c.wrong, 0);
    }
    keel_crew_destroy(crew);
}

static void each_turn_is_taken_once_when_they_sleep_at_once(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST; n++) share(n, n, 0, 60);
}

static void each_turn_is_taken_once_when_they_spin(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST; n++) share(n, n, 500, 60);
}

static void who_finds_no_place_waits(void **state)
{
    (void)state;
    share(MOST, 2, 50, 60);
}

static void a_crew_without_memory_is_an_error(void **state)
{
    const int64_t live = keel_memory_live();
    keel_crew *c = NULL;
    (void)state;
    keel_memory_fail_at(0);
    assert_int_equal(keel_crew_create(&c, 2, 0), KEEL_ENOMEM);
    keel_memory_fail_at(-1);
    assert_null(c);
    keel_crew_destroy(NULL);
    assert_int_equal(keel_memory_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_turn_is_taken_once_when_they_sleep_at_once),
        cmocka_unit_test(each_turn_is_taken_once_when_they_spin),
        cmocka_unit_test(who_finds_no_place_waits),
        cmocka_unit_test(a_crew_without_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
