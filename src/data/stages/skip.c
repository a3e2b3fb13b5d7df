/* tf.data's skip: all but the first `count` elements. */
#include "data/iter.h"
#include "data/stage.h"

typedef struct skip_args {
    int64_t count;
} skip_args;

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const int64_t n = ((const skip_args *)s->args)->count;
    if (spec->rows >= 0 && !spec->endless)
        spec->rows = n < 0 || n > spec->rows ? 0 : spec->rows - n;
    if (n < 0) {
        spec->rows = 0;
        spec->endless = false;
    }
    return KEEL_OK;
}

static int where(const keel_applied *s, keel_position *at)
{
    at->index += ((const skip_args *)s->args)->count;
    return 0;
}

typedef struct skip_iter {
    bool skipped;
    int64_t done;
} skip_iter;

static keel_status begin(keel_iter *it)
{
    *(skip_iter *)it->own = (skip_iter){ 0 };
    return keel_iter_begin(it->parent[0], it->at.pass);
}

static keel_status next(keel_iter *it, keel_element **out)
{
    skip_iter *w = it->own;
    const int64_t n = ((const skip_args *)it->applied->args)->count;
    if (n < 0) return KEEL_END;
    for (; w->done < n; w->done++) {
        keel_element *e;
        const keel_status s = keel_iter_next(it->parent[0], &e);
        if (s != KEEL_OK) return s;
        keel_element_release(e);
    }
    return keel_iter_next(it->parent[0], out);
}

#define T skip_args
static const keel_field fields[] = {
    KEEL_INT(T, count, NULL, -1, 1e15, "number of elements; -1: all"),
    { .key = NULL },
};

const keel_stage keel_stage_skip = {
    .type = { .name = "skip",
              .module = "keel.data",
              .help = "All but the first elements.",
              .args_size = sizeof(skip_args),
              .fields = fields },
    .n_parent = 1,
    .infer = infer,
    .where = where,
    .iter_size = sizeof(skip_iter),
    .begin = begin,
    .next = next,
};
