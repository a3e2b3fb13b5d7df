/* tf.data's prefetch: how many elements are ready ahead of the step that runs. Every pipeline reads
 * ahead by itself, so this is a bound and not a switch, and stands last: what is ahead within a
 * pipeline follows from it. The elements and their random numbers stay the same. */
#include "data/iter.h"
#include "data/stage.h"

typedef struct prefetch_args {
    int64_t buffer_size;
} prefetch_args;

static int64_t ahead(const keel_applied *s)
{
    const int64_t n = ((const prefetch_args *)s->args)->buffer_size;
    return n == KEEL_INT_NULL || n == -1 ? 0 : n;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    (void)spec;
    if (((const prefetch_args *)s->args)->buffer_size == 0)
        return keel_fail(KEEL_EARG, "buffer_size is 0: give a number from 1 on, or null for one "
                                    "that is found while the run goes on");
    return KEEL_OK;
}

static int where(const keel_applied *s, keel_position *at)
{
    (void)s;
    (void)at;
    return 0;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    return keel_iter_next(it->parent[0], out);
}

#define T prefetch_args
static const keel_field fields[] = {
    KEEL_INT(T, buffer_size, "null", -1, 1e9,
             "elements that are ready; null or -1: found while the run goes on"),
    { .key = NULL },
};

const keel_stage keel_stage_prefetch = {
    .type = { .name = "prefetch",
              .module = "keel.data",
              .help = "How many elements are ready ahead of the step; the last stage.",
              .args_size = sizeof(prefetch_args),
              .fields = fields },
    .n_parent = 1,
    .infer = infer,
    .where = where,
    .next = next,
    .ahead = ahead,
};
