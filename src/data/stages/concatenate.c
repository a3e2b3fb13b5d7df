/* tf.data's concatenate, of any number of datasets: one after another. */
#include "data/iter.h"
#include "data/stage.h"

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    for (int i = 1; i < s->n_parent; i++) {
        const keel_data_spec b = keel_stage_spec(s->parent[i]);
        KEEL_TRY(keel_stage_check_same(spec, &b, s->parent[i]));
        if (spec->endless) continue;
        spec->one_shot |= b.one_shot;
        if (b.max_rows > spec->max_rows) spec->max_rows = b.max_rows;
        if (b.endless) {
            spec->endless = true;
            spec->rows = s->by_index ? KEEL_ENDLESS_ROWS : -1;
        } else if (spec->rows >= 0) {
            spec->rows = b.rows < 0 ? -1 : spec->rows + b.rows;
        }
    }
    return KEEL_OK;
}

static int where(const keel_applied *s, keel_position *at)
{
    int k = 0;
    while (k < s->n_parent - 1 && !s->parent[k]->origin->spec.endless &&
           at->index >= s->parent[k]->rows)
        at->index -= s->parent[k++]->rows;
    return k;
}

typedef struct concatenate_iter {
    int k; /* the parent that is read */
    bool in_pass;
} concatenate_iter;

static keel_status begin(keel_iter *it)
{
    *(concatenate_iter *)it->own = (concatenate_iter){ 0 };
    return KEEL_OK;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    concatenate_iter *w = it->own;
    while (w->k < it->n_parent) {
        if (!w->in_pass) KEEL_TRY(keel_iter_begin(it->parent[w->k], it->at.pass));
        w->in_pass = true;
        const keel_status s = keel_iter_next(it->parent[w->k], out);
        if (s != KEEL_END) return s;
        w->in_pass = false;
        w->k++;
    }
    return KEEL_END;
}

const keel_stage keel_stage_concatenate = {
    .type = { .name = "concatenate", .module = "keel.data", .help = "Datasets one after another." },
    .n_parent = -1,
    .infer = infer,
    .where = where,
    .iter_size = sizeof(concatenate_iter),
    .begin = begin,
    .next = next,
};
