/* See finite.h. */
#include "train/finite.h"
#include "optimizers/move.h"
#include "train/resident.h"
#include "base/memory.h"
#include <inttypes.h>

/* Of the host's store, by the check that devices make of theirs. */
static bool is_finite(const keel_store *s, keel_variable v)
{
    const int64_t count = s->weight[v].count;
    const keel_device_tile all = { .count = count };
    keel_device_vote vote;
    keel_check(&(keel_device_check){ .real = s->real,
                                     .n_tile = 1,
                                     .tile = &all,
                                     .g = keel_store_data(s, v),
                                     .end = count,
                                     .scale = 1,
                                     .vote = &vote });
    return !vote.bad;
}

keel_status keel_finite_begin(keel_trainer *t)
{
    if (!(t->given_bad = keel_calloc((size_t)t->store->n_weight, sizeof *t->given_bad)))
        return KEEL_ENOMEM;
    for (int v = 0; v < t->store->n_weight; v++) t->given_bad[v] = !is_finite(t->store, v);
    return KEEL_OK;
}

/* -1: none. A weight that lives on a device is looked at there. */
static keel_status find_lost(const keel_trainer *t, keel_variable *lost)
{
    bool there;
    *lost = -1;
    const keel_status s = keel_resident_look(t, &there);
    for (int v = 0; *lost < 0 && t->given_bad && v < t->store->n_weight; v++) {
        if (t->given_bad[v]) continue;
        const bool finite = there && keel_resident_has(t, v) ? keel_resident_is_finite(t, v)
                                                             : is_finite(t->store, v);
        if (!finite) *lost = v;
    }
    return s;
}

keel_variable keel_finite_lost(const keel_trainer *t)
{
    keel_variable v;
    (void)find_lost(t, &v); /* what fails is told by keel_finite_check */
    return v;
}

keel_status keel_finite_check(const keel_trainer *t, int64_t epoch, int64_t steps)
{
    keel_variable v;
    KEEL_TRY(find_lost(t, &v));
    if (v < 0) return KEEL_OK;
    return keel_fail(KEEL_ENUMERIC,
                     "epoch %" PRId64 ", %s %" PRId64 ": the weight '%s' is not finite, though "
                     "every gradient was: an update has overflowed. Lower the learning rate or "
                     "change other arguments of the optimizer",
                     epoch + 1, steps ? "after step" : "before step", steps ? steps : 1,
                     t->store->weight[v].info.name);
}
