/* See programs.h. */
#include "train/programs.h"
#include "base/memory.h"

static void remember(keel_programs *p, int i, const keel_data_field *batch)
{
    for (int k = 0; k < p->n_open; k++) p->parked[i].shape[k] = batch[p->open[k]].shape;
    p->parked[i].used = ++p->clock;
}

keel_status keel_programs_begin(keel_programs *p, const keel_pairing *pairing, int64_t rows,
                                int most, const keel_data_field *batch)
{
    p->pairing = *pairing;
    p->rows = rows;
    p->made = p->n = p->most = 1;
    if (!batch) return KEEL_OK;
    p->most = most;
    p->open = keel_calloc((size_t)pairing->n_field, sizeof *p->open);
    p->parked = keel_calloc((size_t)most, sizeof *p->parked);
    if (!p->open || !p->parked) return KEEL_ENOMEM;
    for (int i = 0; i < pairing->n_field; i++)
        if (pairing->open >> i & 1) p->open[p->n_open++] = i;
    for (int i = 0; i < most; i++)
        if (!(p->parked[i].shape = keel_calloc((size_t)p->n_open, sizeof(keel_shape))))
            return KEEL_ENOMEM;
    remember(p, 0, batch);
    return KEEL_OK;
}

void keel_programs_free(keel_programs *p)
{
    for (int i = 0; p->parked && i < p->most; i++) {
        keel_scored_free(&p->parked[i].scored);
        keel_free(p->parked[i].shape);
    }
    keel_free(p->parked);
    keel_free(p->open);
    *p = (keel_programs){ 0 };
}

static bool is_of(const keel_programs *p, int i, const keel_data_field *batch)
{
    for (int k = 0; k < p->n_open; k++)
        if (!keel_shape_equal(&p->parked[i].shape[k], &batch[p->open[k]].shape)) return false;
    return true;
}

bool keel_programs_fit(const keel_programs *p, const keel_data_field *batch)
{
    return is_of(p, p->at, batch);
}

/* Put program i into *s and park the one that was there. */
static void change(keel_programs *p, keel_scored *s, int i)
{
    p->parked[p->at].scored = *s;
    *s = p->parked[i].scored;
    p->parked[i].scored = (keel_scored){ 0 };
    p->at = i;
}

bool keel_programs_take(keel_programs *p, keel_scored *s, const keel_data_field *batch)
{
    for (int i = 0; i < p->n; i++) {
        if (!is_of(p, i, batch)) continue;
        if (i != p->at) change(p, s, i);
        p->parked[i].used = ++p->clock;
        return true;
    }
    return false;
}

void keel_programs_make_room(keel_programs *p)
{
    int oldest = -1;
    if (p->n < p->most) return;
    for (int i = 0; i < p->n; i++)
        if (i != p->at && (oldest < 0 || p->parked[i].used < p->parked[oldest].used)) oldest = i;
    keel_parked *gone = &p->parked[oldest], *last = &p->parked[p->n - 1];
    keel_scored_free(&gone->scored);
    const keel_parked empty = *gone;
    *gone = *last;
    *last = empty;
    if (p->at == p->n - 1) p->at = oldest;
    p->n--;
    p->evicted++;
}

void keel_programs_add(keel_programs *p, keel_scored *s, keel_scored *made,
                       const keel_data_field *batch)
{
    const int i = p->n++;
    p->parked[i].scored = *made;
    remember(p, i, batch);
    change(p, s, i);
    p->made++;
}
