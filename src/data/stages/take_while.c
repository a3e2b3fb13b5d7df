/* tf.data's take_while: the elements before the first one for which a callback of the program says
 * no. The callback sees no element behind that one by contract only: elements are looked at ahead.
 */
#include "data/predicate.h"
#include "data/window.h"
#include "keel/pipeline_calls.h"

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    (void)s;
    spec->rows = spec->yields = -1;
    spec->endless = false;
    return KEEL_OK;
}

static bool leaves_early(const keel_applied *s)
{
    (void)s;
    return true;
}

typedef struct while_iter {
    keel_window *window;
    bool ended;
} while_iter;

static keel_status begin(keel_iter *it)
{
    while_iter *w = it->own;
    w->ended = false;
    KEEL_TRY(keel_iter_begin(it->parent[0], it->at.pass));
    /* What comes before the end of a pass decides the next pass, unless passes are by number. */
    return keel_window_create(&w->window, it, NULL, keel_predicate_make, !it->spec->by_pass);
}

static keel_status next(keel_iter *it, keel_element **out)
{
    while_iter *w = it->own;
    if (w->ended) return KEEL_END;
    const keel_status s = keel_window_next(w->window, out);
    if (s != KEEL_OK) return s;
    w->ended = !*out;
    return w->ended ? KEEL_END : KEEL_OK;
}

static void pass(keel_iter *it)
{
    while_iter *w = it->own;
    if (!keel_window_pass(w->window)) keel_iter_pass(it->parent[0]);
}

static void end(keel_iter *it)
{
    while_iter *w = it->own;
    keel_window_destroy(w->window);
    w->window = NULL;
}

const keel_stage keel_stage_take_while = {
    .type = { .name = "take_while",
              .module = "keel.data",
              .help = "The elements before the first that a function refuses; only from C, by "
                      "keel_dataset_take_while.",
              .args_size = sizeof(keel_filter),
              .release = keel_predicate_release },
    .n_parent = 1,
    .leaves_early = leaves_early,
    .no_index = true,
    .infer = infer,
    .is_random = keel_predicate_is_random,
    .is_sequential = keel_predicate_is_sequential,
    .iter_size = sizeof(while_iter),
    .begin = begin,
    .next = next,
    .end = end,
    .pass = pass,
};

keel_status keel_dataset_take_while(keel_dataset **out, keel_dataset *d, const keel_filter *keep)
{
    return keel_predicate_apply(out, &keel_stage_take_while, d, keep);
}
