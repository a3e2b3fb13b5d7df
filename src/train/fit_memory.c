/* Whether a fit fits into the memory that its control group leaves, which is known once its
 * programs are: what a step writes is not in memory before step 1, so the system does not count it
 * yet, and would kill the process for it later. */
#include "train/fit.h"

/* What kernels, threads and the C library take besides all that is planned. */
enum { LIBRARIES = 2 << 20 };

/* The account of a feed keeps its slots and what it needs to read. */
static void shrink(keel_account *a, int64_t limit, int64_t least)
{
    const int64_t kept = a->used + least;
    if (limit < kept) limit = kept;
    if (limit < a->limit) a->limit = limit;
}

keel_status keel_fit_check_memory(keel_fitting *f)
{
    int64_t limit, left;
    const char *group;
    if (!keel_input_group_limit(&limit, &left, &group)) return KEEL_OK;
    const int64_t steps = keel_arenas_bytes(f->trainer->arenas) + LIBRARIES;
    const int64_t input = f->least[0] + f->least[1], room = left - steps;
    if (room < input)
        return keel_fail(KEEL_EARG,
                         "the control group %s leaves %lld bytes of its %lld, and this fit needs "
                         "%lld more: %lld for what a step computes, at least %lld for the input: "
                         "allow more, or use smaller batches",
                         group, (long long)left, (long long)limit, (long long)(steps + input),
                         (long long)steps, (long long)input);
    if (f->o.input_memory) return KEEL_OK;
    const int64_t validation = room / 4 < f->least[1] ? f->least[1] : room / 4;
    shrink(&f->accounts.training, f->least[1] ? room - validation : room, f->least[0]);
    shrink(&f->accounts.validation, validation, f->least[1]);
    return KEEL_OK;
}
