/* For tests with cmocka: what the doubles of CUDA's libraries say of wrong calls. */
#ifndef CUDA_DOUBLE_MISUSES_SAID_H
#define CUDA_DOUBLE_MISUSES_SAID_H
#include "cuda_double.h"
#include "emulator.h"
#include <string.h>

/* Each misuse is reported in its own words, and what is none in no words. */
static inline void check_misuses(const cuda_misuse *m)
{
    for (; m->what; m++) {
        cuda_double_fail_at(0);
        m->run();
        cuda_double_fail_at(0);
        cuda_runtime_fail_at(0, false);
        const char *report = emu_report();
        if (!m->says && report) fail_msg("%s: %s", m->what, report);
        if (m->says && (!report || !strstr(report, m->says)))
            fail_msg("%s: '%s' does not say '%s'", m->what, report ? report : "", m->says);
        emu_release_all();
    }
}

#endif
