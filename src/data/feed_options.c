/* Which options of a feed go together, and with the data: all that is refused before step 1. */
#include "base/memory.h"
#include "data/feed_impl.h"
#include "tensor/dtype.h"
#include <math.h>

enum { THREADS_MAX = 64 };

keel_status keel_feed_check_options(const keel_feed *f)
{
    const keel_feed_options *o = &f->o;
    const char *name = keel_dataset_name(f->dataset);
    if (!keel_dtype_is_real(o->real))
        return keel_fail(KEEL_EARG, "feed: batches are float32 or float64");
    if (o->batch_size < 0 || o->steps_per_epoch < 0 || o->epochs < 0 || o->first_epoch < 0)
        return keel_fail(KEEL_EARG, "%s: batch size, steps and epochs must not be negative", name);
    if (o->first_epoch > INT32_MAX || (o->epochs && o->first_epoch >= o->epochs))
        return keel_fail(KEEL_EARG, "%s: first epoch %lld, but there are %lld epochs", name,
                         (long long)o->first_epoch + 1, (long long)o->epochs);
    if ((unsigned)o->end > KEEL_REFUSE)
        return keel_fail(KEEL_EARG, "%s: unknown policy for the end of the data", name);
    if (o->slots < 0 || o->slots > KEEL_SLOTS_MAX || o->threads < -1 || o->threads > THREADS_MAX)
        return keel_fail(KEEL_EARG, "%s: at most %d slots and %d threads", name, KEEL_SLOTS_MAX,
                         THREADS_MAX);
    if (o->batch_size && f->spec->batched)
        return keel_fail(KEEL_EARG,
                         "%s: its elements are batches, and each is one step: leave the batch size "
                         "out, or the stage that makes batches",
                         name);
    if (!o->batch_size && !f->spec->batched && (f->source->read || f->spec->by_row))
        return keel_fail(KEEL_EARG, "%s: give a batch size", name);
    if (f->dataset->rows == 0) return keel_fail(KEEL_EDATA, "%s: has no elements", name);
    if (f->spec->endless && !o->steps_per_epoch)
        return keel_fail(KEEL_EDATA,
                         "%s never ends: say how many steps an epoch has (steps_per_epoch; of a "
                         "validation validation_steps), or put the stage `take` behind it",
                         name);
    if (o->batch_size && f->spec->shaped && !f->spec->by_row)
        return keel_fail(KEEL_EARG,
                         "%s: each of its batches has its own shape and is one step: "
                         "leave the batch size out",
                         name);
    if (o->class_weight && keel_spec_first(f->spec, KEEL_ROLE_TARGET) < 0)
        return keel_fail(KEEL_EARG, "%s: class weights need labels, but there is no y", name);
    for (int64_t i = 0; o->class_weight && i < o->class_weight_count; i++)
        if (!(o->class_weight[i] >= 0) || isinf(o->class_weight[i]))
            return keel_fail(KEEL_EARG,
                             "class weight of class %lld is %g; it must be finite and >= 0",
                             (long long)i, o->class_weight[i]);
    return KEEL_OK;
}

keel_status keel_feed_check_stream(const keel_feed *f)
{
    const keel_feed_options *o = &f->o;
    const char *name = keel_dataset_name(f->dataset);
    const int64_t epochs = o->epochs - o->first_epoch; /* to be served, if o->epochs is known */
    if (!f->spec->one_shot || f->spec->endless) return KEEL_OK;
    if (!o->steps_per_epoch && epochs > 1)
        return keel_fail(
            KEEL_EDATA,
            "%s has no reset, so it serves one epoch and not %lld: give it a reset, or "
            "give steps_per_epoch",
            name, (long long)epochs);
    if (!o->steps_per_epoch && o->end == KEEL_WRAP && o->batch_size &&
        (f->spec->rows < 0 || f->spec->rows % o->batch_size))
        return keel_fail(
            KEEL_EDATA, "%s has no reset, so its last batch cannot be filled from the start", name);
    int64_t steps, rows;
    if (f->planned && epochs > 1 &&
        (!keel_mul_i64(epochs - 1, o->steps_per_epoch, &steps) ||
         !keel_mul_i64(steps, o->batch_size, &rows) || rows >= f->plan.n))
        return keel_fail(KEEL_EDATA,
                         "%s has no reset and %lld rows: too few for %lld epochs of %lld "
                         "steps of %lld rows; give it a reset",
                         name, (long long)f->plan.n, (long long)epochs,
                         (long long)o->steps_per_epoch, (long long)o->batch_size);
    return KEEL_OK;
}
