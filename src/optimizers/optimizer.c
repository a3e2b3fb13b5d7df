/* What optimizers share: finding one by name (like Keras, without regard to case), slots, and
 * clipping. */
#include "optimizers/optimizer.h"
#include "base/memory.h"
#include <math.h>
#include <strings.h>

const keel_type *keel_optimizer_find(const char *name)
{
    for (int i = 0; keel_optimizers[i]; i++)
        if (!strcasecmp(keel_optimizers[i]->type.name, name)) return &keel_optimizers[i]->type;
    return NULL;
}

keel_status keel_optimizer_check(const keel_type *type, const keel_optimizer_common *c)
{
    if (!isnan(c->clipnorm) + !isnan(c->clipvalue) + !isnan(c->global_clipnorm) <= 1)
        return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "%s: only one of clipnorm, clipvalue and global_clipnorm may be given",
                     type->name);
}

keel_status keel_optimizer_slots(const keel_optimizer *o, const void *args,
                                 const keel_weight_info *w, keel_slots *out)
{
    const keel_optimizer_common *c = args;
    const bool extra[] = { c->use_ema, c->gradient_accumulation_steps != KEEL_INT_NULL };
    static const char *const names[] = { "average", "gradient_accumulator" };
    int count = 0;
    while (count < KEEL_OWN_SLOTS_MAX && o->alike[count]) count++;
    KEEL_TRY(o->slots ? o->slots(args, w, out) : keel_slots_alike(out, count, o->alike));
    const int own = out->count;
    for (int e = 0, before = 0; e < 2; e++) {
        if (!extra[e]) continue;
        for (int k = 0; k < own; k++) out->at[k].group++;
        out->at[out->count++] =
            (keel_slot){ .name = names[e], .kind = KEEL_SLOT_ALIKE, .group = before++ };
    }
    return KEEL_OK;
}

keel_status keel_optimizer_places(const keel_optimizer *o, const void *args,
                                  const keel_weight_info *const *info, int n_weight,
                                  keel_slot_place **out, int *n)
{
    keel_slot_place *list = keel_calloc((size_t)n_weight * KEEL_SLOTS_MAX, sizeof *list);
    int made = 0;
    if (!list) return KEEL_ENOMEM;
    for (int group = 0; group < KEEL_SLOTS_MAX; group++)
        for (int w = 0; w < n_weight; w++) {
            keel_slots slots = { 0 };
            const keel_status s =
                info[w] ? keel_optimizer_slots(o, args, info[w], &slots) : KEEL_OK;
            if (s < 0) {
                keel_free(list);
                return s;
            }
            for (int k = 0; k < slots.count; k++)
                if (slots.at[k].group == group && slots.at[k].kind != KEEL_SLOT_NONE)
                    list[made++] = (keel_slot_place){ w, k, slots.at[k] };
        }
    *out = list;
    *n = made;
    return KEEL_OK;
}

bool keel_slot_shape(keel_slot_kind kind, const keel_shape *weight, keel_shape *out)
{
    keel_shape s = *weight;
    if (kind == KEEL_SLOT_NONE || kind == KEEL_SLOT_MARK) return false;
    if (kind == KEEL_SLOT_COLUMNS) s.dim[s.rank - 2] = s.dim[s.rank - 1];
    if (kind != KEEL_SLOT_ALIKE) s.dim[--s.rank] = 0;
    *out = s;
    return true;
}

keel_status keel_slots_alike(keel_slots *out, int count, const char *const *names)
{
    out->count = count;
    for (int k = 0; k < count; k++)
        out->at[k] = (keel_slot){ .name = names[k], .kind = KEEL_SLOT_ALIKE };
    return KEEL_OK;
}

double keel_clip_scale(double norm, double limit)
{
    return !keel_clips(limit) || norm <= limit ? 1 : limit / norm;
}

double keel_clip_bound(double clipvalue)
{
    return keel_clips(clipvalue) ? clipvalue : INFINITY;
}
