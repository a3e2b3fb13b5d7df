/* tf.data's interleave, over datasets that are given: block_length elements of each in turn; one
 * that has ended is left out. */
#include "data/iter.h"
#include "data/stage.h"

typedef struct interleave_args {
    int64_t block_length;
} interleave_args;

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    int64_t sum = 0;
    bool endless = false;
    for (int i = 0; i < s->n_parent; i++) {
        const keel_data_spec b = keel_stage_spec(s->parent[i]);
        KEEL_TRY(keel_stage_check_same(spec, &b, s->parent[i]));
        if (b.max_rows > spec->max_rows) spec->max_rows = b.max_rows;
        spec->one_shot |= b.one_shot;
        endless |= b.endless;
        sum = sum < 0 || b.rows < 0 ? -1 : sum + b.rows;
    }
    spec->endless = endless;
    spec->rows = endless ? -1 : sum;
    spec->yields = -1;
    return KEEL_OK;
}

typedef struct interleave_iter {
    int k;
    int64_t given; /* of its block */
    int left;      /* parents that have not ended */
    bool ended[KEEL_PARENTS_MAX];
} interleave_iter;

static keel_status begin(keel_iter *it)
{
    *(interleave_iter *)it->own = (interleave_iter){ .left = it->n_parent };
    for (int i = 0; i < it->n_parent; i++) KEEL_TRY(keel_iter_begin(it->parent[i], it->at.pass));
    return KEEL_OK;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    interleave_iter *w = it->own;
    const int64_t block = ((const interleave_args *)it->applied->args)->block_length;
    while (w->left) {
        if (w->given == block || w->ended[w->k]) {
            w->k = (w->k + 1) % it->n_parent;
            w->given = 0;
            continue;
        }
        const keel_status s = keel_iter_next(it->parent[w->k], out);
        if (s < 0) return s;
        if (s == KEEL_OK) {
            w->given++;
            return KEEL_OK;
        }
        w->ended[w->k] = true;
        w->left--;
    }
    return KEEL_END;
}

#define T interleave_args
static const keel_field fields[] = {
    KEEL_INT(T, block_length, "1", 1, 1e12, "elements of each dataset in turn"),
    { .key = NULL },
};

const keel_stage keel_stage_interleave = {
    .type = { .name = "interleave",
              .module = "keel.data",
              .help = "Elements of several datasets in turn.",
              .args_size = sizeof(interleave_args),
              .fields = fields },
    .n_parent = -1,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(interleave_iter),
    .begin = begin,
    .next = next,
};
