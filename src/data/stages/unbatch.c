/* tf.data's unbatch: the rows of batches one after another. */
#include "data/iter.h"
#include "data/stage.h"

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    (void)s;
    if (!spec->batched) return keel_fail(KEEL_EARG, "its elements are rows already");
    spec->batched = false;
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

typedef struct unbatch_iter {
    keel_element *batch;
    int64_t row;
} unbatch_iter;

static void end(keel_iter *it)
{
    unbatch_iter *w = it->own;
    keel_element_release(w->batch);
    *w = (unbatch_iter){ 0 };
}

static keel_status next(keel_iter *it, keel_element **out)
{
    unbatch_iter *w = it->own;
    while (!w->batch || w->row >= w->batch->field[0].shape.dim[0]) {
        end(it);
        const keel_status s = keel_iter_next(it->parent[0], &w->batch);
        if (s != KEEL_OK) return s;
    }
    const keel_status s = keel_element_row(out, w->batch, w->row, it);
    if (s < 0) return s;
    w->row++;
    return KEEL_OK;
}

const keel_stage keel_stage_unbatch = {
    .type = { .name = "unbatch", .module = "keel.data", .help = "The rows of batches." },
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(unbatch_iter),
    .next = next,
    .end = end,
};
