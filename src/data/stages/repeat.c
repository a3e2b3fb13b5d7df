/* tf.data's repeat: the data `count` times, or for ever. Each time is another pass of what comes
 * before, so a shuffle before it gives another order. */
#include "base/memory.h"
#include "data/iter.h"
#include "data/stage.h"

typedef struct repeat_args {
    int64_t count;
} repeat_args;

/* The number of passes of the parent that one pass has, for numbering them. */
static uint64_t passes(const keel_applied *s)
{
    const int64_t n = ((const repeat_args *)s->args)->count;
    return n == KEEL_INT_NULL || n < 0 ? UINT64_C(1) << 31 : (uint64_t)n;
}

static bool for_ever(const keel_applied *s)
{
    const int64_t n = ((const repeat_args *)s->args)->count;
    return n == KEEL_INT_NULL || n < 0;
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const int64_t n = ((const repeat_args *)s->args)->count;
    if (n == 0) {
        spec->rows = 0;
        spec->endless = false;
    }
    if (spec->endless || n == 0) return KEEL_OK;
    if (spec->one_shot && (for_ever(s) || n > 1))
        return keel_fail(KEEL_EDATA, "%s has no reset, so it serves one pass: give it one",
                         keel_dataset_name(s->parent[0]));
    if (!for_ever(s)) {
        if (spec->rows >= 0 && !keel_mul_i64(spec->rows, n, &spec->rows))
            return keel_fail(KEEL_EARG, "%lld times %lld elements are more than can be counted",
                             (long long)n, (long long)spec->rows);
        return KEEL_OK;
    }
    if (spec->rows == 0) return KEEL_OK; /* as in tf.data */
    spec->endless = true;
    spec->rows = s->by_index ? KEEL_ENDLESS_ROWS : -1;
    return KEEL_OK;
}

static int where(const keel_applied *s, keel_position *at)
{
    const int64_t n = s->parent[0]->rows;
    if (s->parent[0]->origin->spec.endless) return 0;
    at->pass = at->pass * passes(s) + (uint64_t)(at->index / n);
    at->index %= n;
    return 0;
}

typedef struct repeat_iter {
    uint64_t done; /* passes of the parent */
    bool in_pass, any;
} repeat_iter;

static keel_status begin(keel_iter *it)
{
    *(repeat_iter *)it->own = (repeat_iter){ 0 };
    return KEEL_OK;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    repeat_iter *w = it->own;
    for (;;) {
        if (!w->in_pass) {
            if (!for_ever(it->applied) && w->done >= passes(it->applied)) return KEEL_END;
            KEEL_TRY(keel_iter_begin(it->parent[0], it->at.pass * passes(it->applied) + w->done));
            w->in_pass = true;
            w->any = false;
        }
        const keel_status s = keel_iter_next(it->parent[0], out);
        if (s == KEEL_OK) w->any = true;
        if (s != KEEL_END) return s;
        w->in_pass = false;
        w->done++;
        if (!w->any) return KEEL_END; /* nothing, for ever */
    }
}

#define T repeat_args
static const keel_field fields[] = {
    KEEL_INT(T, count, "null", -1, 1e9, "number of times; null or -1: for ever"),
    { .key = NULL },
};

const keel_stage keel_stage_repeat = {
    .type = { .name = "repeat",
              .module = "keel.data",
              .help = "The data several times, or for ever.",
              .args_size = sizeof(repeat_args),
              .fields = fields },
    .n_parent = 1,
    .infer = infer,
    .where = where,
    .iter_size = sizeof(repeat_iter),
    .begin = begin,
    .next = next,
};
