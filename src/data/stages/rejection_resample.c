/* tf.data's rejection_resample: rows are left out at random, so that classes come as often as
 * target_dist says. A row of class c stays with the probability
 *
 *   (target[c] / initial[c]) / max over k of (target[k] / initial[k])
 *
 * where initial is how often the classes come in the data, given or counted so far in the pass,
 * with 10 of each class before the first as in tf.data. The class is a field of the row, which
 * stays as it is. tf.data reads its input twice, to leave out less, and may so give a row twice in
 * a pass; here no row comes twice. */
#include "base/memory.h"
#include "data/iter.h"
#include "data/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stddef.h>
#include <string.h>

enum { COUNTED_BEFORE = 10, CLASSES_MAX = 1 << 20 };

typedef struct resample_args {
    char *field;
    keel_reals target_dist, initial_dist;
    int64_t seed;
} resample_args;

/* The field that is the class: that named, or the first target. */
static int class_of(const resample_args *a, const keel_data_spec *spec)
{
    for (int i = 0; i < spec->n_field; i++)
        if (a->field ? !strcmp(spec->field[i].path, a->field)
                     : spec->field[i].role == KEEL_ROLE_TARGET)
            return i;
    return -1;
}

static keel_status check_dist(const char *name, const keel_reals *list)
{
    double sum = 0;
    for (int i = 0; i < list->count; i++) {
        if (!(list->at[i] >= 0 && list->at[i] < 1e300))
            return keel_fail(KEEL_EARG, "%s %d is %g; it must be finite and not negative", name, i,
                             list->at[i]);
        sum += list->at[i];
    }
    return sum > 0 ? KEEL_OK : keel_fail(KEEL_EARG, "%s sums to 0", name);
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const resample_args *a = s->args;
    const int n = a->target_dist.count, k = class_of(a, spec);
    if (spec->batched)
        return keel_fail(KEEL_EUNSUP, "its elements are batches: unbatch them first");
    if (k < 0)
        return keel_fail(KEEL_EARG, "there is no %s%s%s", a->field ? "field '" : "target",
                         a->field ? a->field : "", a->field ? "'" : "");
    const keel_data_field *f = &spec->field[k];
    if (f->dtype == KEEL_STRING || keel_dtype_is_real(f->dtype) || keel_shape_is_open(&f->shape) ||
        keel_shape_count(&f->shape) != 1)
        return keel_fail(KEEL_EARG, "'%s' is not the number of a class", f->path);
    if (n > CLASSES_MAX) return keel_fail(KEEL_EARG, "at most %d classes", CLASSES_MAX);
    KEEL_TRY(check_dist("target_dist", &a->target_dist));
    if (a->initial_dist.count) {
        if (a->initial_dist.count != n)
            return keel_fail(KEEL_EARG, "%d of initial_dist for %d of target_dist",
                             a->initial_dist.count, n);
        KEEL_TRY(check_dist("initial_dist", &a->initial_dist));
        for (int i = 0; i < n; i++)
            if (a->target_dist.at[i] > 0 && a->initial_dist.at[i] == 0)
                return keel_fail(KEEL_EARG,
                                 "class %d shall come, but initial_dist says that there "
                                 "is none",
                                 i);
    }
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

static bool is_random(const keel_applied *s)
{
    (void)s;
    return true;
}

typedef struct resample_iter {
    int64_t *seen; /* [classes] */
    int64_t taken; /* rows */
} resample_iter;

static keel_status begin(keel_iter *it)
{
    resample_iter *w = it->own;
    const int n = ((const resample_args *)it->applied->args)->target_dist.count;
    if (!(w->seen = keel_calloc((size_t)n, sizeof *w->seen))) return KEEL_ENOMEM;
    for (int i = 0; i < n; i++) w->seen[i] = COUNTED_BEFORE;
    return keel_iter_begin(it->parent[0], it->at.pass);
}

static void end(keel_iter *it)
{
    resample_iter *w = it->own;
    keel_free(w->seen);
    *w = (resample_iter){ 0 };
}

/* Whether a row of class c stays, whose draw is u. The common factor of `seen` cancels out. */
static bool stays(const resample_args *a, const int64_t *seen, int64_t c, double u)
{
    double most = 0, own = 0;
    for (int i = 0; i < a->target_dist.count; i++) {
        const double initial = a->initial_dist.count ? a->initial_dist.at[i] : (double)seen[i];
        const double ratio = initial > 0 ? a->target_dist.at[i] / initial : 0;
        if (ratio > most) most = ratio;
        if (i == c) own = ratio;
    }
    return u * most < own;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    resample_iter *w = it->own;
    const resample_args *a = it->applied->args;
    const int k = class_of(a, it->spec);
    keel_chance chance = keel_stage_chance(it->applied, &it->at);
    if (a->seed != KEEL_INT_NULL) chance.seed = (uint64_t)a->seed;
    for (;;) {
        uint32_t word[4];
        int64_t c = -1;
        const keel_status s = keel_iter_next(it->parent[0], out);
        if (s != KEEL_OK) return s;
        keel_element *e = *out;
        keel_philox(word, &chance, (uint64_t)w->taken++, 0);
        const bool fits =
            keel_convert(&c, KEEL_INT64, e->field[k].data, it->spec->field[k].dtype, 1) == 1;
        if (!fits || c < 0 || c >= a->target_dist.count) {
            keel_element_release(e);
            return keel_fail(
                KEEL_EDATA,
                "rejection_resample: '%s' of row %lld is %lld; target_dist has classes "
                "0 to %d",
                it->spec->field[k].path, (long long)w->taken - 1, (long long)c,
                a->target_dist.count - 1);
        }
        w->seen[c]++;
        if (stays(a, w->seen, c, keel_uniform(word[0]))) return KEEL_OK;
        keel_element_release(e);
    }
}

#define T resample_args
static const keel_field fields[] = {
    KEEL_REALS(T, target_dist, "how often each class shall come, up to a common factor"),
    { .key = "initial_dist",
      .kind = KEEL_FIELD_REALS,
      .offset = offsetof(T, initial_dist),
      .dflt = "null",
      .help = "how often it comes in the data; null: counted on the way" },
    KEEL_STRING(T, field, "null", "the number of the class; null: the first target"),
    KEEL_INT(T, seed, "null", 0, 9e18, "of the draws; null: that of the run"),
    { .key = NULL },
};

const keel_stage keel_stage_rejection_resample = {
    .type = { .name = "rejection_resample",
              .module = "keel.data",
              .help = "Rows are left out so that classes come as often as wanted.",
              .args_size = sizeof(resample_args),
              .fields = fields },
    .n_parent = 1,
    .no_index = true,
    .is_random = is_random,
    .infer = infer,
    .iter_size = sizeof(resample_iter),
    .begin = begin,
    .next = next,
    .end = end,
};
