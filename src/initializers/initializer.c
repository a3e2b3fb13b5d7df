/* The part that initializers share: look-up by name, fans, and random numbers keyed by element. */
#include "initializers/initializer.h"
#include <math.h>

const keel_type *keel_initializer_find(const char *name)
{
    for (int i = 0; keel_initializers[i]; i++)
        if (keel_type_is(&keel_initializers[i]->type, name)) return &keel_initializers[i]->type;
    return NULL;
}

void keel_compute_fans(const keel_shape *s, double *fan_in, double *fan_out)
{
    double field = 1; /* receptive field of a convolution: the product of all but the last 2 dims */
    for (int i = 0; i < s->rank - 2; i++) field *= (double)s->dim[i];
    if (s->rank < 1)
        *fan_in = *fan_out = 1;
    else if (s->rank == 1)
        *fan_in = *fan_out = (double)s->dim[0];
    else {
        *fan_in = (double)s->dim[s->rank - 2] * field;
        *fan_out = (double)s->dim[s->rank - 1] * field;
    }
}

const keel_field keel_fan_fields[] = {
    KEEL_FAN_FIELDS(keel_fan_args, ),
    { 0 },
};

keel_chance keel_seeded_chance(const keel_seeded *s, const keel_chance *c, uint64_t *row)
{
    keel_chance mine = *c;
    if (s->seed == KEEL_INT_NULL) return mine;
    mine.seed = (uint64_t)s->seed;
    *row = 0;
    return mine;
}

double keel_uniform_at(const keel_chance *c, uint64_t row, uint64_t element)
{
    uint32_t word[4];
    keel_philox(word, c, row, (uint32_t)(element / 4));
    return keel_uniform(word[element % 4]);
}

double keel_normal(const keel_chance *c, uint64_t row, uint64_t element)
{
    double z[4];
    keel_normals(z, c, row, (uint32_t)(element / 4));
    return z[element & 3];
}

/* By rejection, as in TensorFlow. Attempt i of an element takes its number from epoch + i, so
 * attempts are independent and the elements do not depend on each other. */
double keel_truncated_normal(const keel_chance *c, uint64_t row, uint64_t element)
{
    keel_chance attempt = *c;
    for (int i = 0; i < 64; i++, attempt.epoch++) { /* rejected with probability 0.046 */
        const double z = keel_normal(&attempt, row, element);
        if (fabs(z) < 2) return z;
    }
    return 0;
}

void keel_fill(double *out, int64_t count, keel_distribution d, double mean, double unit,
               const keel_chance *c, uint64_t row)
{
    for (int64_t at = 0; at < count; at += 4) { /* a block of Philox makes four elements */
        double z[4];
        if (d == KEEL_UNIFORM) {
            uint32_t word[4];
            keel_philox(word, c, row, (uint32_t)(at / 4));
            for (int k = 0; k < 4; k++) z[k] = keel_uniform(word[k]);
        } else {
            keel_normals(z, c, row, (uint32_t)(at / 4));
        }
        for (int k = 0; k < 4 && at + k < count; k++) {
            if (d == KEEL_TRUNCATED_NORMAL && !(fabs(z[k]) < 2))
                z[k] = keel_truncated_normal(c, row, (uint64_t)(at + k));
            out[at + k] = mean + unit * z[k];
        }
    }
}

static keel_status fan_of(const keel_shape *s, const keel_ints *axes, double *out)
{
    double fan = 1;
    for (int i = 0; i < axes->count; i++) {
        const int64_t d = axes->at[i] < 0 ? axes->at[i] + s->rank : axes->at[i];
        if (d < 0 || d >= s->rank)
            return keel_fail(KEEL_EARG, "input_axes, output_axes: dim %lld of a shape of %d dims",
                             (long long)axes->at[i], s->rank);
        fan *= (double)s->dim[d];
    }
    *out = fan;
    return KEEL_OK;
}

keel_status keel_variance_scaling(double *out, const keel_shape *shape, const keel_fan_args *a,
                                  double scale, keel_fan_mode mode, keel_distribution distribution,
                                  const keel_chance *c, uint64_t row)
{
    const keel_chance mine = keel_seeded_chance(&a->seeded, c, &row);
    double in, fan_out;
    keel_compute_fans(shape, &in, &fan_out);
    if (keel_fans_given(a)) {
        KEEL_TRY(fan_of(shape, &a->input_axes, &in));
        KEEL_TRY(fan_of(shape, &a->output_axes, &fan_out));
    }
    const double fan = mode == KEEL_FAN_IN    ? in
                       : mode == KEEL_FAN_OUT ? fan_out
                                              : (in + fan_out) / 2;
    const double variance = scale / fmax(1, fan), limit = sqrt(3 * variance);
    const int64_t count = keel_shape_count(shape);
    if (distribution == KEEL_UNIFORM)
        keel_fill(out, count, distribution, -limit, 2 * limit, &mine, row);
    else if (distribution == KEEL_UNTRUNCATED_NORMAL)
        keel_fill(out, count, distribution, 0, sqrt(variance), &mine, row);
    else /* truncation at 2 standard deviations reduces the standard deviation to 0.8796... */
        keel_fill(out, count, distribution, 0, sqrt(variance) / 0.87962566103423978, &mine, row);
    return KEEL_OK;
}
