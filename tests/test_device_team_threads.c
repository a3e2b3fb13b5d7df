/* A team's life: workers that are sent home before they came, and work that reaches all of them. */
#include "device/team.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WORKERS = 3 };

static void a_team_that_never_worked_ends(void **state)
{
    const int core[WORKERS] = { 0, 0, 0 };
    for (int i = 0; i < 300; i++) { /* often a worker has not got to its place yet */
        keel_team *t = NULL;
        assert_int_equal(keel_team_create(&t, core, WORKERS), KEEL_OK);
        keel_team_destroy(t);
    }
}

static void count(void *context, int worker)
{
    ((int *)context)[worker]++;
}

static void work_reaches_every_worker_once(void **state)
{
    const int core[WORKERS] = { 0, 0, 0 };
    int done[WORKERS] = { 0 };
    keel_team *t = NULL;
    assert_int_equal(keel_team_create(&t, core, WORKERS), KEEL_OK);
    keel_team_enter(t);
    for (int i = 0; i < 50; i++) keel_team_run(t, count, done);
    keel_team_leave(t);
    keel_team_destroy(t);
    for (int i = 0; i < WORKERS; i++) assert_int_equal(done[i], 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_team_that_never_worked_ends),
        cmocka_unit_test(work_reaches_every_worker_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
