/* See run_memory.h. The programs of a run are known before its first step, but what a step writes
 * is not in memory yet, so the system does not count it, and would kill the process for it later.
 */
#include "train/run_memory.h"
#include "keel/input.h"
#include <stdio.h>

/* What kernels, threads and the C library take besides all that is planned. */
enum { LIBRARIES = 2 << 20, TEXT = 200 };

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* "5 for what a step computes, at least 3 for the input". */
static void list_parts(char text[TEXT], const keel_run_memory *m, int64_t steps, int64_t input)
{
    int n = snprintf(text, TEXT, "%lld for what a step computes", (long long)steps);
    if (m->copies)
        n += snprintf(text + n, (size_t)(TEXT - n), ", %lld for copies of the model",
                      (long long)m->copies);
    if (m->outputs)
        n += snprintf(text + n, (size_t)(TEXT - n), ", %lld for the rows that come out",
                      (long long)m->outputs);
    if (m->input[0].feed)
        snprintf(text + n, (size_t)(TEXT - n), ", at least %lld for the input", (long long)input);
}

keel_status keel_run_memory_check(const keel_run_memory *m)
{
    int64_t limit, left;
    const char *group;
    char parts[TEXT];
    if (!keel_input_group_limit(&limit, &left, &group)) return KEEL_OK;
    const int64_t steps = plus(m->steps, LIBRARIES);
    const int64_t rest = plus(plus(steps, m->copies), m->outputs);
    const int64_t input = plus(m->input[0].least, m->input[1].least);
    if (plus(rest, input) > left) {
        list_parts(parts, m, steps, input);
        return keel_fail(
            KEEL_EARG,
            "the control group %s leaves %lld bytes of its %lld, and this %s needs "
            "%lld more: %s: allow more, %s%s%suse smaller batches%s",
            group, (long long)left, (long long)limit, m->what, (long long)plus(rest, input), parts,
            m->keeps ? "keep fewer values (--recompute), " : "",
            m->whole ? "compute fewer rows at a time (--micro-batch), " : "",
            m->outputs ? "" : "or ", m->outputs ? ", or have the rows written to files" : "");
    }
    if (m->asked || !m->input[0].feed) return KEEL_OK;
    const int64_t least = m->input[1].least;
    int64_t room = left - rest;
    if (m->grows) room = room / 2 > input ? room / 2 : input;
    const int64_t quarter = room / 4 <= room - m->input[0].least ? room / 4 : least;
    const int64_t validation = quarter < least ? least : quarter;
    if (m->input[1].feed) keel_feed_limit(m->input[1].feed, validation);
    keel_feed_limit(m->input[0].feed, m->input[1].feed ? room - validation : room);
    return KEEL_OK;
}

keel_status keel_run_memory_more(int64_t bytes)
{
    int64_t limit, left;
    const char *group;
    if (!keel_input_group_limit(&limit, &left, &group) || bytes <= left) return KEEL_OK;
    return keel_fail(KEEL_ENOMEM,
                     "the control group %s leaves %lld bytes of its %lld, and the rows that come "
                     "out need %lld more: allow more, or have the rows written to files",
                     group, (long long)left, (long long)limit, (long long)bytes);
}
