/* tf.data's ignore_errors: elements that cannot be made are left out, up to `most` of them in a
 * pass, and their number is said. */
#include "data/iter.h"
#include "data/stage.h"

typedef struct ignore_args {
    int64_t most;
} ignore_args;

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    (void)s;
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

typedef struct ignore_iter {
    int64_t left_out;
} ignore_iter;

static keel_status begin(keel_iter *it)
{
    ((ignore_iter *)it->own)->left_out = 0;
    return keel_iter_begin(it->parent[0], it->at.pass);
}

static keel_status next(keel_iter *it, keel_element **out)
{
    ignore_iter *w = it->own;
    const int64_t most = ((const ignore_args *)it->applied->args)->most;
    for (;;) {
        const keel_status s = keel_iter_next(it->parent[0], out);
        if (s >= 0 || !keel_stage_may_pass(s)) return s;
        if (w->left_out == most)
            return keel_fail_within(s, "ignore_errors: the failure after %lld that were left out",
                                    (long long)most);
        w->left_out++;
        if (!it->run->left_out++) keel_failure_take(&it->run->first, s);
        keel_iter_pass(it->parent[0]);
    }
}

#define T ignore_args
static const keel_field fields[] = {
    KEEL_INT(T, most, NULL, 1, 1e15, "elements that may be left out in a pass; one more fails"),
    { .key = NULL },
};

const keel_stage keel_stage_ignore_errors = {
    .type = { .name = "ignore_errors",
              .module = "keel.data",
              .help = "Leaves out elements that cannot be made.",
              .args_size = sizeof(ignore_args),
              .fields = fields },
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(ignore_iter),
    .begin = begin,
    .next = next,
};
