/* Processes that are threads of one program, with the devices of each. */
#ifndef KEEL_TESTS_THREAD_PROCESSES_H
#define KEEL_TESTS_THREAD_PROCESSES_H
#include "thread_group.h"
#include "device/discover.h"
#include "train/strategy.h"

/* Seconds, where silence is not what is tested: on a busy machine a thread may not run for long. */
enum { PATIENT = 120 };

/* Devices of a process, which so many workers run. A group of no processes: it is alone. */
static inline keel_status open_lanes(keel_strategy **out, const keel_process_group *group,
                                     int lanes, int workers)
{
    keel_cores real, cores = { .n = workers };
    char devices[32];
    const keel_status s = keel_cores_find(&real);
    for (int i = 0; i < workers && s >= 0; i++) cores.os[i] = real.os[i % real.n];
    snprintf(devices, sizeof devices, lanes == 1 ? "cpu:0" : "cpu:0-%d", lanes - 1);
    return s < 0          ? s
           : group->count ? keel_strategy_create_group_on(out, devices, group, &cores)
                          : keel_strategy_create_on(out, devices, &cores);
}

/* Runs live of each of the n processes, which lie so many bytes apart, until all have ended. */
static inline void live_together(void *(*live)(void *), void *first, size_t apart, int n)
{
    pthread_t thread[THREADS_MAX];
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, live, (char *)first + (size_t)i * apart),
                         0);
    for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
}

#endif
