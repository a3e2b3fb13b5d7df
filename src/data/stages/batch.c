/* tf.data's batch: the elements are then batches, and each is one step. */
#include "base/memory.h"
#include "base/plural.h"
#include "data/collect.h"
#include "data/stage.h"

typedef struct batch_args {
    int64_t batch_size;
    int end;
    bool drop_remainder; /* tf.data's word for one of them */
} batch_args;

enum { KEEP, DROP, WRAP, REFUSE };

static keel_status ready(void *args)
{
    batch_args *a = args;
    if (a->end < 0) a->end = a->drop_remainder ? DROP : KEEP;
    if (a->drop_remainder && a->end != DROP)
        return keel_fail(KEEL_EARG, "drop_remainder leaves out the rows at the end, and `end` says "
                                    "otherwise: give one of them");
    return KEEL_OK;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const batch_args *a = s->args;
    const int64_t n = spec->rows, size = a->batch_size;
    if (spec->batched)
        return keel_fail(KEEL_EUNSUP, "its elements are batches already: unbatch them first");
    spec->batched = true;
    spec->max_rows = size;
    spec->yields = -1;
    if (a->end == WRAP && spec->one_shot && !spec->endless && (n < 0 || n % size))
        return keel_fail(KEEL_EDATA,
                         "%s has no reset, so its last batch cannot be filled from the start: give "
                         "it one",
                         keel_dataset_name(s->parent[0]));
    if (spec->endless) {
        if (s->by_index) spec->rows = KEEL_ENDLESS_ROWS / size;
        return KEEL_OK;
    }
    if (n < 0) return KEEL_OK;
    if (a->end == REFUSE && n % size)
        return keel_fail(KEEL_EDATA,
                         "%lld rows leave a last batch of %lld (batch_size %lld), and the end of "
                         "the data is set to be an error",
                         (long long)n, (long long)(n % size), (long long)size);
    spec->rows = a->end == DROP ? n / size : n / size + (n % size != 0);
    return KEEL_OK;
}

static int64_t batch_rows(const keel_applied *s, keel_position at)
{
    const batch_args *a = s->args;
    const int64_t left = s->parent[0]->rows - at.index * a->batch_size;
    if (s->parent[0]->origin->spec.endless || a->end == WRAP) return a->batch_size;
    return left < a->batch_size ? left : a->batch_size;
}

static keel_position batch_row(const keel_applied *s, keel_position at, int64_t i)
{
    keel_position p = keel_stage_into(s, 0, &at);
    p.index = at.index * ((const batch_args *)s->args)->batch_size + i;
    if (!s->parent[0]->origin->spec.endless) p.index %= s->parent[0]->rows;
    return p;
}

static bool leaves_early(const keel_applied *s)
{
    return ((const batch_args *)s->args)->end == WRAP;
}

/* ---- streams --------------------------------------------------------------------------------- */

typedef struct batch_iter {
    keel_collect rows;
    bool ended;   /* the parent has; with `wrap` its rows are read again */
    bool refused; /* what is in rows, at the end */
} batch_iter;

static keel_status begin(keel_iter *it)
{
    *(batch_iter *)it->own = (batch_iter){ 0 };
    return keel_iter_begin(it->parent[0], it->at.pass);
}

static keel_status at_end(keel_iter *it, batch_iter *w)
{
    const batch_args *a = it->applied->args;
    if (!w->rows.n) return KEEL_END;
    if (a->end == DROP) {
        keel_collect_clear(&w->rows);
        return KEEL_END;
    }
    w->refused = a->end == REFUSE;
    if (w->refused)
        return keel_fail(KEEL_EDATA,
                         "batch: the last batch has %lld row%s of %lld, and the end of the data is "
                         "set to be an error",
                         (long long)w->rows.n, keel_s(w->rows.n), (long long)a->batch_size);
    w->ended = true;
    if (a->end != WRAP) return KEEL_OK;
    return keel_iter_begin(it->parent[0], it->at.pass); /* the same rows again */
}

static keel_status next(keel_iter *it, keel_element **out)
{
    const batch_args *a = it->applied->args;
    batch_iter *w = it->own;
    if (w->ended && !w->rows.n) return KEEL_END;
    while (w->rows.n < a->batch_size) {
        keel_element *e;
        const keel_status s = keel_iter_next(it->parent[0], &e);
        if (s < 0) return s;
        if (s == KEEL_END && w->ended) { /* fewer rows than a batch: go round once more */
            KEEL_TRY(keel_iter_begin(it->parent[0], it->at.pass));
            continue;
        }
        if (s == KEEL_END) {
            const keel_status end = at_end(it, w);
            if (end != KEEL_OK) return end;
            if (a->end != WRAP) break;
            continue;
        }
        const keel_status kept = keel_collect_add(&w->rows, e);
        if (kept < 0) return kept;
    }
    return keel_collect_batch(&w->rows, it, out);
}

static void pass(keel_iter *it)
{
    batch_iter *w = it->own;
    if (w->refused)
        keel_collect_clear(&w->rows);
    else
        keel_iter_pass(it->parent[0]);
}

static int64_t holds(const keel_applied *s)
{
    return ((const batch_args *)s->args)->batch_size;
}

static void end(keel_iter *it)
{
    keel_collect_free(&((batch_iter *)it->own)->rows);
}

#define T batch_args
static const keel_field fields[] = {
    KEEL_INT(T, batch_size, NULL, 1, 1e9, "rows of a batch"),
    KEEL_CHOICE_OR_NULL(T, end, "null", "keep|drop|wrap|error",
                        "the rows at the end that fill no batch: a short batch, left out, filled "
                        "with rows from the start, or refused; null: keep, unless drop_remainder"),
    KEEL_BOOL(T, drop_remainder, "false", "the same as `end` drop"),
    { .key = NULL },
};

const keel_stage keel_stage_batch = {
    .type = { .name = "batch",
              .module = "keel.data",
              .help = "Batches of rows; each is one step.",
              .args_size = sizeof(batch_args),
              .fields = fields,
              .ready = ready },
    .n_parent = 1,
    .leaves_early = leaves_early,
    .infer = infer,
    .batch_rows = batch_rows,
    .batch_row = batch_row,
    .iter_size = sizeof(batch_iter),
    .begin = begin,
    .next = next,
    .end = end,
    .pass = pass,
    .holds = holds,
};
