/* See _renorm.h. */
#include "layers/normalization/_renorm.h"
#include <math.h>
#include <string.h>

/* ---- first values of a deviation: the root of those of a variance ---------------------------- */

typedef struct root_args {
    keel_object of;
} root_args;

static const keel_field root_fields[] = {
    KEEL_OBJECT(root_args, of, "\"ones\"", keel_initializer_find, "initializer of the variance"),
    { 0 },
};

static keel_status fill_root(const void *args, const keel_shape *shape, const keel_chance *c,
                             uint64_t row, double *out)
{
    const keel_object *of = &((const root_args *)args)->of;
    KEEL_TRY(((const keel_initializer *)of->type)->fill(of->args, shape, c, row, out));
    for (int64_t i = 0; i < keel_shape_count(shape); i++) out[i] = sqrt(out[i]);
    return KEEL_OK;
}

static const keel_initializer root = {
    .type = { .name = "RootOfVariance",
              .help = "the root of another initializer",
              .args_size = sizeof(root_args),
              .fields = root_fields },
    .fill = fill_root,
};

keel_status keel_renorm_declare(keel_emit *e, const keel_shape *channels, const keel_object *mean,
                                const keel_object *variance, keel_weights *w)
{
    root_args args = { *variance };
    const keel_object deviation = { &root.type, &args };
    const keel_weight_decl more[] = {
        { .name = "moving_stddev", .initializer = &deviation, .shape = *channels, .state = true },
        { .name = "renorm_mean", .initializer = mean, .shape = *channels, .state = true },
        { .name = "renorm_stddev", .initializer = &deviation, .shape = *channels, .state = true },
    };
    for (int i = 0; i < 3; i++) KEEL_TRY(keel_emit_weight(e, &more[i], w));
    return KEEL_OK;
}

/* ---- arguments ------------------------------------------------------------------------------- */

keel_status keel_renorm_read(const keel_renorm *r, keel_batch_renorm *out)
{
    *out = (keel_batch_renorm){ r->renorm, r->renorm_momentum, -INFINITY, INFINITY, INFINITY };
    if (!r->renorm) return KEEL_OK;
    const char *key;
    json_t *v;
    json_object_foreach(r->renorm_clipping, key, v)
    {
        double *bound = !strcmp(key, "rmin")   ? &out->r_min
                        : !strcmp(key, "rmax") ? &out->r_max
                        : !strcmp(key, "dmax") ? &out->d_max
                                               : NULL;
        if (!bound)
            return keel_fail(KEEL_EARG, "renorm_clipping: '%.40s' is not rmin, rmax or dmax", key);
        if (json_is_number(v))
            *bound = json_number_value(v);
        else if (!json_is_null(v))
            return keel_fail(KEEL_EARG, "renorm_clipping: %s must be a number", key);
    }
    if (out->r_max < out->r_min)
        return keel_fail(KEEL_EARG, "renorm_clipping: rmax %g is less than rmin %g", out->r_max,
                         out->r_min);
    return out->d_max >= 0
               ? KEEL_OK
               : keel_fail(KEEL_EARG, "renorm_clipping: dmax %g is negative", out->d_max);
}
