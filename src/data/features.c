/* See features.h. */
#include "data/features.h"
#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdlib.h>
#include <string.h>

enum { NAME = 256 };

static keel_status wrong(const char *entry)
{
    return keel_fail(KEEL_EARG,
                     "features: '%s' is not understood; write image=uint8(28,28,1), tokens=(128), "
                     "tokens=(None) or name=string, with one of uint8, int32, int64, float32 and "
                     "float64",
                     entry);
}

/* "(28,28,1)" */
static bool read_shape(keel_shape *out, const char *text)
{
    *out = (keel_shape){ 0 };
    if (*text++ != '(') return false;
    while (*text != ')') {
        char *end;
        if (out->rank == KEEL_RANK_MAX - 1) return false; /* a batch has a dim more */
        if (out->rank == 0 && !strncmp(text, "None", 4)) {
            out->dim[out->rank++] = KEEL_DIM_OPEN;
            text += 4;
        } else {
            if (*text < '0' || *text > '9') return false;
            const long long n = strtoll(text, &end, 10);
            if (n < 1 || n > INT32_MAX) return false;
            out->dim[out->rank++] = n;
            text = end;
        }
        if (*text == ',')
            text++;
        else if (*text != ')')
            return false;
    }
    const keel_shape least = keel_shape_closed(out, 1);
    return !text[1] && keel_shape_check(&least, sizeof(double)) >= 0;
}

static keel_status read_entry(keel_feature_type *t, const char *entry)
{
    char type[16];
    const char *at = strchr(entry, '=');
    if (!at || at == entry || !at[1]) return wrong(entry);
    const size_t n = strcspn(++at, "(");
    *t = (keel_feature_type){ .typed = n > 0, .shaped = at[n] == '(' };
    if (n >= sizeof type) return wrong(entry);
    memcpy(type, at, n);
    type[n] = 0;
    if (t->typed && (keel_dtype_find(&t->dtype, type) < 0 || t->dtype == KEEL_BOOL))
        return wrong(entry);
    if (t->shaped && (!read_shape(&t->shape, at + n) || (t->typed && t->dtype == KEEL_STRING)))
        return wrong(entry);
    return KEEL_OK;
}

/* True if the entry is of that feature. */
static bool is_of(const char *entry, const char *feature)
{
    const size_t n = strcspn(entry, "=");
    return strlen(feature) == n && !strncmp(entry, feature, n);
}

keel_status keel_feature_type_find(keel_feature_type *out, const keel_dataset_options *o,
                                   const char *feature)
{
    *out = (keel_feature_type){ 0 };
    for (int i = 0; i < o->n_feature; i++)
        if (is_of(o->features[i], feature)) return read_entry(out, o->features[i]);
    return KEEL_OK;
}

keel_status keel_feature_types_check(const keel_dataset_options *o,
                                     bool (*has)(const void *arg, const char *feature),
                                     const void *arg, const char *what)
{
    if (o->n_feature < 0 || o->n_feature > KEEL_FIELDS_MAX || (o->n_feature && !o->features))
        return keel_fail(KEEL_EARG, "features: a list of at most %d entries", KEEL_FIELDS_MAX);
    for (int i = 0; i < o->n_feature; i++) {
        keel_feature_type t;
        char name[NAME];
        if (!o->features[i]) return keel_fail(KEEL_EARG, "features: entry %d is NULL", i);
        KEEL_TRY(read_entry(&t, o->features[i]));
        const size_t n = strcspn(o->features[i], "=");
        if (n >= sizeof name) return wrong(o->features[i]);
        memcpy(name, o->features[i], n);
        name[n] = 0;
        for (int k = 0; k < i; k++)
            if (is_of(o->features[k], name))
                return keel_fail(KEEL_EARG, "features: '%s' is there twice", name);
        if (!has(arg, name))
            return keel_fail(KEEL_EARG, "%s: has no feature '%s', of which a type is given", what,
                             name);
    }
    return KEEL_OK;
}

keel_status keel_feature_types_refuse(const keel_dataset_options *o, const char *what)
{
    if (!o->n_feature) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "%s: features ('%s') are given for TFRecord files; this format has types and "
                     "shapes of its own",
                     what, o->features && o->features[0] ? o->features[0] : "");
}
