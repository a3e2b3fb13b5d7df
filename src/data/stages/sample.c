/* tf.data's sample_from_datasets: each element is drawn from one of several datasets, by weights. A
 * dataset that has ended ends the mixture, so that its proportions never change unnoticed; or, if
 * stop_on_empty_dataset is false, the others go on alone. */
#include "data/iter.h"
#include "data/stage.h"
#include <stddef.h>

typedef struct sample_args {
    keel_reals weights;
    int64_t seed;
    bool stop_on_empty_dataset;
} sample_args;

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const sample_args *a = s->args;
    double sum = 0;
    if (a->weights.count && a->weights.count != s->n_parent)
        return keel_fail(KEEL_EARG, "%d weights for %d datasets", a->weights.count, s->n_parent);
    for (int i = 0; i < a->weights.count; i++) {
        if (!(a->weights.at[i] >= 0 && a->weights.at[i] < 1e300))
            return keel_fail(KEEL_EARG, "weight %d is %g; it must be finite and not negative", i,
                             a->weights.at[i]);
        sum += a->weights.at[i];
    }
    if (a->weights.count && !(sum > 0)) return keel_fail(KEEL_EARG, "the weights sum to 0");
    bool endless = true;
    for (int i = 0; i < s->n_parent; i++) {
        const keel_data_spec b = keel_stage_spec(s->parent[i]);
        KEEL_TRY(keel_stage_check_same(spec, &b, s->parent[i]));
        if (b.max_rows > spec->max_rows) spec->max_rows = b.max_rows;
        spec->one_shot |= b.one_shot;
        endless &= b.endless;
    }
    spec->endless = endless;
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

static bool leaves_early(const keel_applied *s)
{
    return ((const sample_args *)s->args)->stop_on_empty_dataset && !s->spec->endless;
}

static bool is_random(const keel_applied *s)
{
    (void)s;
    return true; /* also with a seed: each pass draws for itself */
}

typedef struct sample_iter {
    int64_t drawn;
    int chosen; /* drawn, and its element is still to come: -1: none */
    bool ended[KEEL_PARENTS_MAX];
} sample_iter;

static keel_status begin(keel_iter *it)
{
    *(sample_iter *)it->own = (sample_iter){ .chosen = -1 };
    for (int i = 0; i < it->n_parent; i++) KEEL_TRY(keel_iter_begin(it->parent[i], it->at.pass));
    return KEEL_OK;
}

/* The parent of the next element; -1: all have ended. */
static int draw(keel_iter *it, sample_iter *w)
{
    const sample_args *a = it->applied->args;
    keel_chance c = keel_stage_chance(it->applied, &it->at);
    double sum = 0, at = 0;
    uint32_t word[4];
    int last = -1;
    if (a->seed != KEEL_INT_NULL) c.seed = (uint64_t)a->seed;
    for (int i = 0; i < it->n_parent; i++)
        if (!w->ended[i]) sum += a->weights.count ? a->weights.at[i] : 1;
    keel_philox(word, &c, (uint64_t)w->drawn++, 0);
    const double u = ((double)word[0] + (double)word[1] * 0x1p-32) * 0x1p-32 * sum;
    for (int i = 0; i < it->n_parent; i++) {
        const double weight = a->weights.count ? a->weights.at[i] : 1;
        if (w->ended[i] || weight == 0) continue;
        last = i;
        at += weight;
        if (u < at) break;
    }
    return last;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    sample_iter *w = it->own;
    const sample_args *a = it->applied->args;
    for (;;) {
        if (w->chosen < 0) w->chosen = draw(it, w);
        if (w->chosen < 0) return KEEL_END;
        const keel_status s = keel_iter_next(it->parent[w->chosen], out);
        if (s < 0) return s;
        if (s == KEEL_END) w->ended[w->chosen] = true;
        w->chosen = -1;
        if (s == KEEL_OK || a->stop_on_empty_dataset) return s;
    }
}

#define T sample_args
static const keel_field fields[] = {
    { .key = "weights",
      .kind = KEEL_FIELD_REALS,
      .offset = offsetof(T, weights),
      .dflt = "null",
      .help = "one for each dataset; null: all alike" },
    KEEL_INT(T, seed, "null", 0, 9e18, "of the draws; null: that of the run"),
    KEEL_BOOL(T, stop_on_empty_dataset, "true",
              "the mixture ends with the first dataset that ends; false: the others go on"),
    { .key = NULL },
};

const keel_stage keel_stage_sample = {
    .type = { .name = "sample",
              .alias = "sample_from_datasets", /* of tf.data */
              .module = "keel.data",
              .help = "Elements of several datasets, drawn by weights.",
              .args_size = sizeof(sample_args),
              .fields = fields },
    .n_parent = -1,
    .is_random = is_random,
    .leaves_early = leaves_early,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(sample_iter),
    .begin = begin,
    .next = next,
};
