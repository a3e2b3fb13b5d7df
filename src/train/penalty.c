/* See penalty.h. */
#include "train/penalty.h"
#include "train/resident.h"
#include <math.h>

double keel_trainer_penalty(const keel_trainer *t)
{
    const keel_store *s = t->store;
    double sum = 0;
    for (int v = 0; v < s->n_weight; v++) {
        const keel_store_weight *w = &s->weight[v];
        double a = 0, b = 0;
        if (!t->trains[v] || !keel_penalizes(&w->info.penalty)) continue;
        (void)keel_resident_fetch(t); /* what fails is told by the next step */
        const void *data = keel_store_data(s, v);
        for (int64_t i = 0; i < w->count; i++) {
            const double x = s->real == KEEL_FLOAT64 ? ((const double *)data)[i]
                                                     : (double)((const float *)data)[i];
            a += fabs(x);
            b += x * x;
        }
        sum += w->info.penalty.l1 * a + w->info.penalty.l2 * b;
    }
    keel_orthogonal_normalize(&t->orthogonal, 0, 1);
    keel_orthogonal_compare(&t->orthogonal, 0, 1);
    return sum + keel_orthogonal_loss(&t->orthogonal);
}
