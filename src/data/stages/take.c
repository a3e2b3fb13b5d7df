/* tf.data's take: the first `count` elements, counted once whatever the number of devices. */
#include "data/iter.h"
#include "data/stage.h"

typedef struct take_args {
    int64_t count;
} take_args;

static int64_t count_of(const keel_applied *s)
{
    const int64_t n = ((const take_args *)s->args)->count;
    return n == -1 ? INT64_MAX : n;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const int64_t n = count_of(s);
    if (spec->endless && n < INT64_MAX) spec->rows = n;
    if (spec->rows > n) spec->rows = n;
    if (n < INT64_MAX) spec->endless = false;
    return KEEL_OK;
}

static bool leaves_early(const keel_applied *s)
{
    return count_of(s) < INT64_MAX;
}

static int where(const keel_applied *s, keel_position *at)
{
    (void)s;
    (void)at;
    return 0;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    if (it->at.index >= count_of(it->applied)) return KEEL_END;
    return keel_iter_next(it->parent[0], out);
}

#define T take_args
static const keel_field fields[] = {
    KEEL_INT(T, count, NULL, -1, 1e18, "number of elements; -1: all"),
    { .key = NULL },
};

const keel_stage keel_stage_take = {
    .type = { .name = "take",
              .module = "keel.data",
              .help = "The first elements.",
              .args_size = sizeof(take_args),
              .fields = fields },
    .n_parent = 1,
    .leaves_early = leaves_early,
    .infer = infer,
    .where = where,
    .next = next,
};
