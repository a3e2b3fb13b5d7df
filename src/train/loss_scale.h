/* The dynamic loss scale, as Keras's LossScaleOptimizer moves it: half after a step whose loss or
 * gradients are not finite, which is skipped; twice after so many good steps in a row. */
#ifndef KEEL_TRAIN_LOSS_SCALE_H
#define KEEL_TRAIN_LOSS_SCALE_H
#include <float.h>
#include <stdbool.h>
#include <stdint.h>

enum { KEEL_SKIPS_MAX = 50 }; /* in a row; more are no matter of the scale */

typedef struct keel_loss_scale {
    bool on;
    float now;            /* the loss is multiplied by it; 1 if it is off */
    int64_t good, growth; /* steps since the scale last moved; how many double it */
    int64_t skipped;      /* steps of this training */
    int64_t in_a_row;
} keel_loss_scale;

static inline void keel_loss_scale_good(keel_loss_scale *s)
{
    s->in_a_row = 0;
    if (!s->on) return;
    const bool grows = s->good == s->growth - 1; /* not >=: as in Keras */
    s->good = grows ? 0 : s->good + 1;
    if (grows && s->now <= FLT_MAX / 2) s->now *= 2; /* in Keras to infinity, and stays there */
}

static inline void keel_loss_scale_skip(keel_loss_scale *s)
{
    s->good = 0;
    if (s->now > FLT_MIN) s->now *= 0.5F; /* in Keras down to 0 */
    s->skipped++;
    s->in_a_row++;
}

#endif
