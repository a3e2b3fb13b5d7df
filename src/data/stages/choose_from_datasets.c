/* tf.data's choose_from_datasets: the last dataset has numbers, and number k gives the next element
 * of dataset k. */
#include "data/iter.h"
#include "data/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

enum { IN_VAIN = 1 << 24 }; /* numbers in succession; of those without end, more would be a hang */

typedef struct choose_args {
    bool stop_on_empty_dataset;
} choose_args;

static bool is_number(const keel_data_spec *spec)
{
    const keel_data_field *f = &spec->field[0];
    return !spec->batched && f->dtype != KEEL_STRING && !keel_dtype_is_real(f->dtype) &&
           !keel_shape_is_open(&f->shape) && keel_shape_count(&f->shape) == 1;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const int last = s->n_parent - 1;
    const keel_data_spec choice = keel_stage_spec(s->parent[last]);
    if (!is_number(&choice))
        return keel_fail(KEEL_EARG,
                         "the rows of the last dataset, %s, choose among the others: they must be "
                         "whole numbers from 0 to %d",
                         keel_dataset_name(s->parent[last]), last - 1);
    spec->endless = choice.endless;
    for (int i = 0; i < last; i++) {
        const keel_data_spec b = keel_stage_spec(s->parent[i]);
        KEEL_TRY(keel_stage_check_same(spec, &b, s->parent[i]));
        if (b.max_rows > spec->max_rows) spec->max_rows = b.max_rows;
        spec->one_shot |= b.one_shot;
        spec->endless &= b.endless;
    }
    spec->one_shot |= choice.one_shot;
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

static bool leaves_early(const keel_applied *s)
{
    return !s->spec->endless;
}

typedef struct choose_iter {
    int64_t chosen;  /* its element is still to come; -1: none */
    int64_t taken;   /* numbers */
    int64_t in_vain; /* since the last element */
    int left;        /* datasets that have not ended */
    bool choosing;   /* the failure is one of the numbers */
    bool ended[KEEL_PARENTS_MAX];
} choose_iter;

static keel_status begin(keel_iter *it)
{
    *(choose_iter *)it->own = (choose_iter){ .chosen = -1, .left = it->n_parent - 1 };
    for (int i = 0; i < it->n_parent; i++) KEEL_TRY(keel_iter_begin(it->parent[i], it->at.pass));
    return KEEL_OK;
}

static keel_status choose(keel_iter *it, choose_iter *w)
{
    const int last = it->n_parent - 1;
    keel_iter *from = it->parent[last];
    keel_element *e;
    int64_t k = -1;
    w->choosing = true;
    const keel_status s = keel_iter_next(from, &e);
    if (s != KEEL_OK) return s;
    const bool fits =
        keel_convert(&k, KEEL_INT64, e->field[0].data, from->spec->field[0].dtype, 1) == 1;
    keel_element_release(e);
    w->taken++;
    if (!fits || k < 0 || k >= last)
        return keel_fail(
            KEEL_EDATA, "choose_from_datasets: row %lld of %s is %lld; there are datasets 0 to %d",
            (long long)w->taken - 1, keel_dataset_name(from->dataset), (long long)k, last - 1);
    w->chosen = k;
    w->choosing = false;
    return KEEL_OK;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    choose_iter *w = it->own;
    const choose_args *a = it->applied->args;
    while (w->left) {
        if (w->chosen < 0) {
            const keel_status s = choose(it, w);
            if (s != KEEL_OK) return s;
        }
        if (w->ended[w->chosen]) {
            if (++w->in_vain >= IN_VAIN && it->parent[it->n_parent - 1]->spec->endless)
                return keel_fail(KEEL_EDATA,
                                 "choose_from_datasets: %d numbers in succession chose datasets "
                                 "that have ended, and there is no end of numbers",
                                 (int)IN_VAIN);
            w->chosen = -1;
            continue;
        }
        const keel_status s = keel_iter_next(it->parent[w->chosen], out);
        if (s < 0) return s;
        if (s == KEEL_END) {
            w->ended[w->chosen] = true;
            w->left = a->stop_on_empty_dataset ? 0 : w->left - 1;
        }
        w->chosen = -1;
        w->in_vain = 0;
        if (s == KEEL_OK) return s;
    }
    return KEEL_END;
}

static void pass(keel_iter *it)
{
    choose_iter *w = it->own;
    keel_iter_pass(it->parent[w->choosing || w->chosen < 0 ? it->n_parent - 1 : w->chosen]);
}

#define T choose_args
static const keel_field fields[] = {
    KEEL_BOOL(T, stop_on_empty_dataset, "true",
              "the first dataset that has ended ends all; false: what chooses it is passed over"),
    { .key = NULL },
};

const keel_stage keel_stage_choose_from_datasets = {
    .type = { .name = "choose_from_datasets",
              .module = "keel.data",
              .help = "Elements of several datasets, chosen by the numbers in the last one.",
              .args_size = sizeof(choose_args),
              .fields = fields },
    .n_parent = -1,
    .leaves_early = leaves_early,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(choose_iter),
    .begin = begin,
    .next = next,
    .pass = pass,
};
