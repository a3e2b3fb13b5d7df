/* Processes of one machine that act as one: who follows whom, the devices of all, and how those
 * that follow learn the end. Processes are threads here; tests/test_follow.sh has real ones. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "base/memory.h"
#include "train/machines.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>
#include <cmocka.h>
#include "thread_processes.h"

/* ---- the devices of all ---------------------------------------------------------------------- */

typedef struct set_of_cores {
    int n, core[8];
} set_of_cores;

static const struct {
    const char *name;
    int n;
    set_of_cores process[4], all;
    const char *devices, *want; /* want NULL: each stays by itself */
} joined[] = {
    { "each process has a core", 2, { { 1, { 0 } }, { 1, { 1 } } }, { 2, { 0, 1 } }, "cpu", "cpu" },
    { "cores are counted in the process that has them all",
      2,
      { { 2, { 4, 6 } }, { 2, { 0, 2 } } },
      { 4, { 0, 2, 4, 6 } },
      "cpu:0-1",
      "cpu:2,cpu:3,cpu:0,cpu:1" },
    { "one process has more cores than the other",
      2,
      { { 3, { 0, 1, 2 } }, { 1, { 3 } } },
      { 4, { 0, 1, 2, 3 } },
      "cpu:0",
      "cpu:0,cpu:3" },
    { "devices of several cores stay such",
      2,
      { { 2, { 0, 1 } }, { 2, { 2, 3 } } },
      { 4, { 0, 1, 2, 3 } },
      "cpu:0+1",
      "cpu:0+1,cpu:2+3" },
    { "all processes may use all cores",
      3,
      { { 2, { 0, 1 } }, { 2, { 0, 1 } }, { 2, { 0, 1 } } },
      { 2, { 0, 1 } },
      "cpu",
      "cpu" },
    { "all use all cores, by their names: as many devices as they have together",
      3,
      { { 2, { 0, 1 } }, { 2, { 0, 1 } }, { 2, { 0, 1 } } },
      { 2, { 0, 1 } },
      "cpu:0-1",
      "cpu:0-5" },
    { "more devices than cores in each",
      2,
      { { 1, { 0 } }, { 1, { 1 } } },
      { 2, { 0, 1 } },
      "cpu:0-2",
      "cpu:0-5" },
    { "one core of several, the same for all: it would be another core for each",
      2,
      { { 2, { 0, 1 } }, { 2, { 0, 1 } } },
      { 2, { 0, 1 } },
      "cpu:0",
      NULL },
    { "devices of two cores that overlap",
      2,
      { { 2, { 0, 1 } }, { 2, { 0, 1 } } },
      { 2, { 0, 1 } },
      "cpu:0+1",
      NULL },
    { "one core of each, of its own",
      2,
      { { 2, { 0, 1 } }, { 2, { 2, 3 } } },
      { 4, { 0, 1, 2, 3 } },
      "cpu:1",
      "cpu:1,cpu:3" },
    { "two hardware threads of one core, which counts once",
      2,
      { { 1, { 0 } }, { 1, { 2 } } },
      { 1, { 0 } },
      "cpu",
      NULL },
    { "GPUs that all see: each is used once",
      2,
      { { 1, { 0 } }, { 1, { 1 } } },
      { 2, { 0, 1 } },
      "cuda:0-1",
      "cuda:0-1" },
    { "GPUs, beside the cores of all",
      2,
      { { 2, { 0, 1 } }, { 2, { 2, 3 } } },
      { 4, { 0, 1, 2, 3 } },
      "cuda,cpu:0-1",
      "cuda,cpu:0,cpu:1,cpu:2,cpu:3" },
    { "GPUs, and cores that cannot be those of one",
      2,
      { { 2, { 0, 1 } }, { 2, { 0, 1 } } },
      { 2, { 0, 1 } },
      "cuda,cpu:0",
      NULL },
    { "text that names no GPU",
      2,
      { { 1, { 0 } }, { 1, { 1 } } },
      { 2, { 0, 1 } },
      "cuda:x",
      NULL },
    { "text that is not devices", 2, { { 1, { 0 } }, { 1, { 1 } } }, { 2, { 0, 1 } }, "tpu", NULL },
    { "more than 256 devices",
      2,
      { { 1, { 0 } }, { 1, { 1 } } },
      { 2, { 0, 1 } },
      "cpu:0-199",
      NULL },
};

static void devices_of_several_processes_are_those_of_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof joined / sizeof *joined; i++) {
        keel_neighbour one[4] = { 0 };
        const keel_neighbour *of[4];
        keel_cores all = { .n = joined[i].all.n };
        memcpy(all.os, joined[i].all.core, sizeof joined[i].all.core);
        for (int q = 0; q < joined[i].n; q++) {
            of[q] = &one[q];
            one[q].n_core = joined[i].process[q].n;
            for (int c = 0; c < one[q].n_core; c++)
                one[q].core[c] = (uint16_t)joined[i].process[q].core[c];
        }
        char *got = keel_neighbours_devices(of, joined[i].n, joined[i].devices, &all);
        if (!joined[i].want != !got || (got && strcmp(got, joined[i].want)))
            fail_msg("%s: %s instead of %s", joined[i].name, got ? got : "none",
                     joined[i].want ? joined[i].want : "none");
        keel_free(got);
    }
}

/* ---- joined ---------------------------------------------------------------------------------- */

typedef struct process {
    keel_process_group group;
    uint64_t alike;
    int core; /* this one of the machine's; -1: all */
    int together, count, rank, number, n_device, code;
    char devices[256];
    keel_status status;
} process;

static void *live(void *context)
{
    process *p = context;
    keel_machines *m = NULL;
    keel_cores cores;
    p->status = keel_cores_find(&cores);
    if (p->status >= 0 && p->core >= 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cores.os[p->core % cores.n], &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    if (p->status >= 0) p->status = keel_machines_join(&m, &p->group, "cpu", p->alike);
    if (p->status < 0) return NULL;
    p->together = keel_machines_together(m);
    if (p->together) {
        const keel_process_group g = keel_machines_group(m);
        p->count = g.count;
        p->rank = g.rank;
        p->number = g.number(g.context, g.rank);
        snprintf(p->devices, sizeof p->devices, "%s", keel_machines_devices(m));
        keel_strategy *s = NULL;
        p->status = keel_strategy_create_group(&s, p->devices, &g);
        if (s) p->n_device = keel_strategy_devices(s);
        keel_strategy_destroy(s);
        p->code = 40 + p->rank;
    } else
        while (keel_machines_test(m, &p->code) == 0)
            nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    keel_machines_end(m, p->code, false);
    return NULL;
}

static void run_all(process *p, int n)
{
    live_together(live, p, sizeof *p, n);
}

static const struct {
    const char *name;
    int n;
    const char *host[THREADS_MAX];
    uint64_t alike[THREADS_MAX];
    int together[THREADS_MAX], code[THREADS_MAX];
} grouped[] = {
    { "alone", 1, { "a" }, { 1 }, { 1 }, { 40 } },
    { "all on one machine", 3, { "a", "a", "a" }, { 1, 1, 1 }, { 3, 0, 0 }, { 40, 40, 40 } },
    { "each on its own", 3, { "a", "b", "c" }, { 1, 1, 1 }, { 1, 1, 1 }, { 40, 41, 42 } },
    { "ranks go round the machines",
      5,
      { "a", "b", "a", "b", "a" },
      { 1, 1, 1, 1, 1 },
      { 3, 2, 0, 0, 0 },
      { 40, 41, 40, 41, 40 } },
    { "who was started with something else stays apart",
      4,
      { "a", "a", "a", "b" },
      { 1, 2, 1, 1 },
      { 2, 1, 0, 1 },
      { 40, 41, 40, 42 } },
};

static void processes_of_a_machine_act_as_one_if_they_are_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof grouped / sizeof *grouped; i++) {
        thread_group group;
        process p[THREADS_MAX] = { 0 };
        const int n = grouped[i].n;
        int firsts = 0;
        thread_group_begin(&group, n);
        for (int q = 0; q < n; q++) {
            group.member[q].host = grouped[i].host[q];
            p[q] = (process){ .group = thread_group_of(&group, q),
                              .alike = grouped[i].alike[q],
                              .core = -1 };
            firsts += grouped[i].together[q] > 0;
        }
        run_all(p, n);
        for (int q = 0; q < n; q++) {
            if (p[q].status < 0 || p[q].together != grouped[i].together[q] ||
                p[q].code != grouped[i].code[q] || !group.member[q].closed)
                fail_msg("%s, process %d: status %d, acts as %d, code %d", grouped[i].name, q,
                         p[q].status, p[q].together, p[q].code);
            if (p[q].together && (p[q].count != firsts || p[q].number != q))
                fail_msg("%s, process %d: it is number %d of %d", grouped[i].name, q, p[q].number,
                         p[q].count);
        }
        thread_group_end(&group);
    }
}

/* The first process gets the core of the second, which launchers bind it to. */
static void the_first_process_gets_the_cores_of_the_others(void **state)
{
    thread_group group;
    process p[2];
    keel_cores cores;
    (void)state;
    assert_int_equal(keel_cores_find(&cores), KEEL_OK);
    if (cores.n < 2) skip();
    thread_group_begin(&group, 2);
    for (int q = 0; q < 2; q++)
        p[q] = (process){ .group = thread_group_of(&group, q), .alike = 1, .core = 1 - q };
    run_all(p, 2);
    assert_int_equal(p[0].together, 2);
    assert_string_equal(p[0].devices, "cpu");
    assert_int_equal(p[0].n_device, cores.n); /* of the process, whose threads may use all */
    assert_int_equal(p[1].code, 40);
    thread_group_end(&group);
}

static void out_of_memory_at_each_allocation_leaves_nothing(void **state)
{
    (void)state;
    bool done = false;
    for (int64_t at = 0; !done; at++) {
        const int64_t live_before = keel_memory_live();
        thread_group group;
        keel_machines *m = NULL;
        thread_group_begin(&group, 1);
        const keel_process_group g = thread_group_of(&group, 0);
        keel_memory_fail_at(at);
        const keel_status s = keel_machines_join(&m, &g, "cpu", 1);
        keel_memory_fail_at(-1);
        done = s == KEEL_OK;
        if (s != KEEL_OK) assert_int_equal(s, KEEL_ENOMEM);
        keel_machines_end(m, 0, false);
        assert_true(group.member[0].closed);
        assert_int_equal(keel_memory_live(), live_before);
        thread_group_end(&group);
        assert_true(at < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_of_several_processes_are_those_of_one),
        cmocka_unit_test(processes_of_a_machine_act_as_one_if_they_are_alike),
        cmocka_unit_test(the_first_process_gets_the_cores_of_the_others),
        cmocka_unit_test(out_of_memory_at_each_allocation_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
