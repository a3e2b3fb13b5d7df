/* What the ops frames and overlap share: what multiplies a frame, and their cases. */
#ifndef KEEL_OPS_FRAMING_H
#define KEEL_OPS_FRAMING_H
#include "ops/cases.h"
#include "ops/frames.h"
#include "ops/transform.h"

/* What multiplies element i of a frame. */
static inline double keel_frame_factor(const keel_frames_args *a, int64_t i)
{
    const double w = keel_window_at(&a->window, a->size, i);
    double sum = 0;
    if (!a->inverse) return w;
    for (int64_t k = i % a->stride; k < a->size; k += a->stride) {
        const double other = keel_window_at(&a->window, a->size, k);
        sum += other * other;
    }
    return w / sum;
}

static inline void keel_frame_factors(const keel_frames_args *a, double *to)
{
    for (int64_t i = 0; i < a->size; i++) to[i] = keel_frame_factor(a, i);
}

static inline void keel_frames_for_case(keel_frames_args *a, const char *text)
{
    *a = (keel_frames_args){ .size = 4, .stride = 2 };
    keel_case_ints(text, "size", &a->size, 1);
    keel_case_ints(text, "stride", &a->stride, 1);
    keel_case_ints(text, "begin", &a->begin, 1);
    keel_case_ints(text, "count", &a->count, 1);
    a->centred = keel_case_has(text, "centred");
    a->inverse = keel_case_has(text, "inverse");
    a->window = keel_window_for_case(text, a->size);
}

#endif
