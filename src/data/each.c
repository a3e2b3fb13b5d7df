/* See each.h. */
#include "data/each.h"
#include "data/iter.h"
#include "data/window.h"

typedef struct each_iter {
    keel_window *window;
} each_iter;

_Static_assert(sizeof(each_iter) == KEEL_EACH_ITER_SIZE, "the size in each.h");

static keel_status make(keel_iter *it, keel_position at, keel_element *e, keel_element **out,
                        keel_scratch *scratch)
{
    const keel_applied *s = it->applied;
    KEEL_TRY(s->stage->make(s, it->run->account, at, e, out, scratch));
    (*out)->place = e->place;
    return KEEL_OK;
}

keel_status keel_each_begin(keel_iter *it)
{
    each_iter *w = it->own;
    KEEL_TRY(keel_iter_begin(it->parent[0], it->at.pass));
    return keel_window_create(&w->window, it, NULL, make, false);
}

keel_status keel_each_next(keel_iter *it, keel_element **out)
{
    return keel_window_next(((each_iter *)it->own)->window, out);
}

/* What failed is an element of this stage, or of one before it. */
void keel_each_pass(keel_iter *it)
{
    if (!keel_window_pass(((each_iter *)it->own)->window)) keel_iter_pass(it->parent[0]);
}

void keel_each_end(keel_iter *it)
{
    each_iter *w = it->own;
    keel_window_destroy(w->window);
    w->window = NULL;
}
