/* tf.data's filter: the elements for which a callback of the program says so. How many stay is
 * known only when all were looked at, so the result is a stream; elements are looked at ahead, by
 * several threads. */
#include "data/sources/called.h"
#include "data/stage.h"
#include "data/window.h"
#include "keel/pipeline.h"

typedef struct filter_args {
    keel_filter f;
} filter_args;

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    (void)s;
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

typedef struct filter_iter {
    keel_window *window;
} filter_iter;

/* *out is the element, or stays NULL. */
static keel_status make(keel_iter *it, keel_position at, keel_element *e, keel_element **out,
                        keel_scratch *scratch)
{
    (void)scratch;
    const keel_filter *f = &((const filter_args *)it->applied->args)->f;
    const keel_chance c = keel_stage_chance(it->applied, &at);
    const keel_element_place place = { at.seed, at.pass, at.index, c.stream };
    const unsigned texts = keel_error_count();
    keel_tensor in[KEEL_FIELDS_MAX];
    bool keep = false;
    for (int i = 0; i < it->spec->n_field; i++)
        in[i] = (keel_tensor){ it->spec->field[i].dtype, e->field[i].shape, e->field[i].data };
    const keel_status s = f->call(f->context, in, &keep, &place);
    if (s != KEEL_OK) return keel_callback_failed(texts, s, "%s:", f->name);
    *out = keep ? keel_element_share(e) : NULL;
    return KEEL_OK;
}

static keel_status begin(keel_iter *it)
{
    filter_iter *w = it->own;
    KEEL_TRY(keel_iter_begin(it->parent[0], it->at.pass));
    return keel_window_create(&w->window, it, NULL, make, false);
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
    return ((const filter_args *)s->args)->f.name;
}

static void release_args(void *args)
{
    filter_args *a = args;
    if (a->f.release) a->f.release(a->f.context);
}

const keel_stage keel_stage_filter = {
    .type = { .name = "filter",
              .module = "keel.data",
              .help = "The elements that a function keeps; only from C, by keel_dataset_filter.",
              .args_size = sizeof(filter_args),
              .release = release_args },
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(filter_iter),
    .begin = begin,
    .next = next,
    .end = end,
    .pass = pass,
    .label = label,
};

keel_status keel_dataset_filter(keel_dataset **out, keel_dataset *d, const keel_filter *filter)
{
    filter_args a = { 0 };
    if (!out || !d || !filter)
        return keel_fail(KEEL_EARG, "filter: out, d and filter must not be NULL");
    if (filter->size < sizeof a.f)
        return keel_fail(KEEL_EARG, "filter: size must be sizeof(keel_filter)");
    a.f = *filter;
    if (!a.f.name) a.f.name = "filter";
    if (!a.f.call) return keel_fail(KEEL_EARG, "%s: call is NULL", a.f.name);
    a.f.release = NULL; /* after a failure the caller still owns the context */
    KEEL_TRY(keel_stage_apply_args(out, &keel_stage_filter, &a, &d, 1));
    ((filter_args *)(*out)->origin->applied->args)->f.release = filter->release;
    return KEEL_OK;
}
