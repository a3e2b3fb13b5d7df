/* tf.data's rebatch: batches of another size, across the borders of those that come; or of several
 * sizes in turn. */
#include "data/collect.h"
#include "data/stage.h"
#include <stddef.h>

typedef struct rebatch_args {
    keel_reals batch_size;
    bool drop_remainder;
} rebatch_args;

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const keel_reals *size = &((const rebatch_args *)s->args)->batch_size;
    if (!spec->batched) return keel_fail(KEEL_EARG, "its elements are rows: use batch");
    spec->max_rows = 1;
    for (int i = 0; i < size->count; i++) {
        const double n = size->at[i];
        if (!(n >= 1 && n <= 1e9) || n != (double)(int64_t)n)
            return keel_fail(KEEL_EARG, "batch_size is %g; it must be a whole number from 1 on", n);
        if ((int64_t)n > spec->max_rows) spec->max_rows = (int64_t)n;
    }
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

typedef struct rebatch_iter {
    keel_element *batch; /* being taken apart */
    int64_t row;
    keel_collect rows;
    bool ended;
} rebatch_iter;

static int64_t holds(const keel_applied *s) /* batches of the parent, in rows and as they come */
{
    const int64_t rows = s->parent[0]->origin->spec.max_rows;
    return 2 + s->spec->max_rows / (rows > 0 ? rows : 1);
}

static void end(keel_iter *it)
{
    rebatch_iter *w = it->own;
    keel_element_release(w->batch);
    keel_collect_free(&w->rows);
    *w = (rebatch_iter){ 0 };
}

static keel_status next(keel_iter *it, keel_element **out)
{
    const rebatch_args *a = it->applied->args;
    rebatch_iter *w = it->own;
    const int64_t size = (int64_t)a->batch_size.at[it->at.index % a->batch_size.count];
    while (!w->ended && w->rows.n < size) {
        if (w->batch && w->row < w->batch->field[0].shape.dim[0]) {
            keel_element *row;
            KEEL_TRY(keel_element_row(&row, w->batch, w->row, it));
            w->row++;
            KEEL_TRY(keel_collect_add(&w->rows, row));
            continue;
        }
        keel_element_release(w->batch);
        w->batch = NULL;
        const keel_status s = keel_iter_next(it->parent[0], &w->batch);
        if (s < 0) return s;
        w->row = 0;
        w->ended = s == KEEL_END;
    }
    if (w->ended && (!w->rows.n || (a->drop_remainder && w->rows.n < size))) return KEEL_END;
    return keel_collect_batch(&w->rows, it, out);
}

#define T rebatch_args
static const keel_field fields[] = {
    { .key = "batch_size",
      .kind = KEEL_FIELD_REALS,
      .offset = offsetof(T, batch_size),
      .count = 1,
      .help = "rows of a batch, or a list of them, taken in turn" },
    KEEL_BOOL(T, drop_remainder, "false", "leave out a short batch at the end"),
    { .key = NULL },
};

const keel_stage keel_stage_rebatch = {
    .type = { .name = "rebatch",
              .module = "keel.data",
              .help = "Batches of another size.",
              .args_size = sizeof(rebatch_args),
              .fields = fields },
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(rebatch_iter),
    .next = next,
    .end = end,
    .holds = holds,
};
