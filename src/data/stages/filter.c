/* tf.data's filter: the elements for which a callback of the program says so. How many stay is
 * known only when all were looked at, so the result is a stream; elements are looked at ahead, by
 * several threads unless the callback is sequential. */
#include "data/predicate.h"
#include "data/window.h"

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    (void)s;
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

typedef struct filter_iter {
    keel_window *window;
} filter_iter;

static keel_status begin(keel_iter *it)
{
    filter_iter *w = it->own;
    KEEL_TRY(keel_iter_begin(it->parent[0], it->at.pass));
    return keel_window_create(&w->window, it, NULL, keel_predicate_make,
                              keel_predicate_is_sequential(it->applied));
}

static keel_status next(keel_iter *it, keel_element **out)
{
    filter_iter *w = it->own;
    for (;;) {
        const keel_status s = keel_window_next(w->window, out);
        if (s != KEEL_OK || *out) return s;
    }
}

/* What failed is an element of this stage, or of one before it. */
static void pass(keel_iter *it)
{
    filter_iter *w = it->own;
    if (!keel_window_pass(w->window)) keel_iter_pass(it->parent[0]);
}

static void end(keel_iter *it)
{
    filter_iter *w = it->own;
    keel_window_destroy(w->window);
    w->window = NULL;
}

static const char *label(const keel_applied *s)
{
    return ((const keel_filter *)s->args)->name;
}

const keel_stage keel_stage_filter = {
    .type = { .name = "filter",
              .module = "keel.data",
              .help = "The elements that a function keeps; only from C, by keel_dataset_filter.",
              .args_size = sizeof(keel_filter),
              .release = keel_predicate_release },
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .is_random = keel_predicate_is_random,
    .is_sequential = keel_predicate_is_sequential,
    .iter_size = sizeof(filter_iter),
    .begin = begin,
    .next = next,
    .end = end,
    .pass = pass,
    .label = label,
};

keel_status keel_dataset_filter(keel_dataset **out, keel_dataset *d, const keel_filter *filter)
{
    return keel_predicate_apply(out, &keel_stage_filter, d, filter);
}
