/* tf.data's shard: element i, i + num_shards, ... from `index` on. */
#include "data/iter.h"
#include "data/stage.h"

typedef struct shard_args {
    int64_t num_shards, index;
} shard_args;

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const shard_args *a = s->args;
    if (a->index >= a->num_shards)
        return keel_fail(KEEL_EARG, "index %lld of %lld shards: the last is %lld",
                         (long long)a->index, (long long)a->num_shards,
                         (long long)a->num_shards - 1);
    if (spec->rows < 0 || spec->endless) return KEEL_OK;
    spec->rows = spec->rows > a->index ? (spec->rows - a->index - 1) / a->num_shards + 1 : 0;
    return KEEL_OK;
}

static int where(const keel_applied *s, keel_position *at)
{
    const shard_args *a = s->args;
    at->index = at->index * a->num_shards + a->index;
    return 0;
}

typedef struct shard_iter {
    int64_t read; /* of the parent */
} shard_iter;

static keel_status begin(keel_iter *it)
{
    ((shard_iter *)it->own)->read = 0;
    return keel_iter_begin(it->parent[0], it->at.pass);
}

static keel_status next(keel_iter *it, keel_element **out)
{
    const shard_args *a = it->applied->args;
    shard_iter *w = it->own;
    for (;;) {
        const keel_status s = keel_iter_next(it->parent[0], out);
        if (s != KEEL_OK) return s;
        if (w->read++ % a->num_shards == a->index) return KEEL_OK;
        keel_element_release(*out);
    }
}

#define T shard_args
static const keel_field fields[] = {
    KEEL_INT(T, num_shards, NULL, 1, 1e6, "number of shards"),
    KEEL_INT(T, index, NULL, 0, 1e6, "which of them, from 0"),
    { .key = NULL },
};

const keel_stage keel_stage_shard = {
    .type = { .name = "shard",
              .module = "keel.data",
              .help = "Every num_shards-th element, from `index` on.",
              .args_size = sizeof(shard_args),
              .fields = fields },
    .n_parent = 1,
    .infer = infer,
    .where = where,
    .iter_size = sizeof(shard_iter),
    .begin = begin,
    .next = next,
};
