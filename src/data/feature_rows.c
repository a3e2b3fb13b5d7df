/* See feature_rows.h. */
#include "data/feature_rows.h"
#include "base/text.h"
#include "data/features.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

static keel_status not_of_type(const keel_record_field *f, const keel_feature *v,
                               const keel_feature_type *t)
{
    return keel_fail(KEEL_EARG, "feature '%s' is a %s, so its type is not %s", f->part,
                     keel_feature_kind_name(v->kind), keel_dtype_name(t->dtype));
}

static bool is_text(const unsigned char *data, size_t n)
{
    for (size_t i = 0; i < n;) {
        const int step = keel_utf8_next((const char *)data + i, n - i, NULL);
        if (!step || !data[i]) return false;
        i += (size_t)step;
    }
    return true;
}

/* Byte strings are numbers if the options say so, images if they begin as one, else texts. */
static keel_status learn_bytes(keel_record_field *f, const keel_feature *v,
                               const keel_feature_type *t)
{
    const unsigned char *data = NULL;
    size_t n = 0, at = 0;
    const bool any = keel_feature_bytes(v, &at, &data, &n);
    f->kind = t->typed && t->dtype != KEEL_STRING ? KEEL_RECORD_RAW : KEEL_RECORD_TEXT;
    f->stored = t->typed ? t->dtype : KEEL_STRING;
    if (f->kind == KEEL_RECORD_RAW) {
        const size_t size = keel_dtype_size(f->stored);
        f->shape = KEEL_SHAPE((int64_t)(n / size));
        return KEEL_OK;
    }
    if (!t->typed && v->count == 1 && keel_image_begins(data, n)) {
        f->kind = KEEL_RECORD_IMAGE;
        return KEEL_OK;
    }
    if (t->shaped || (any && !is_text(data, n)))
        return keel_fail(KEEL_EDATA,
                         "feature '%s' has %zu bytes that are neither JPEG, PNG nor UTF-8: give "
                         "their type and shape, as features '%s=uint8(28,28,1)'",
                         f->part, n, f->part);
    return KEEL_OK;
}

keel_status keel_feature_learn(keel_record_field *f, const keel_feature *v,
                               const keel_dataset_options *o)
{
    keel_feature_type t;
    KEEL_TRY(keel_feature_type_find(&t, o, f->part));
    if (v->kind == KEEL_FEATURE_BYTES) {
        KEEL_TRY(learn_bytes(f, v, &t));
    } else {
        f->kind = KEEL_RECORD_NUMBERS;
        f->stored = v->kind == KEEL_FEATURE_INT64 ? KEEL_INT64 : KEEL_FLOAT32;
        if (t.typed && t.dtype != f->stored) return not_of_type(f, v, &t);
        f->shape = v->count == 1 ? (keel_shape){ 0 } : KEEL_SHAPE(v->count);
    }
    f->shaped = t.shaped;
    if (t.shaped) f->shape = t.shape;
    keel_record_take_labels(f, o);
    return KEEL_OK;
}

static keel_feature_kind kind_of(const keel_record_field *f)
{
    if (f->kind != KEEL_RECORD_NUMBERS) return KEEL_FEATURE_BYTES;
    return f->stored == KEEL_INT64 ? KEEL_FEATURE_INT64 : KEEL_FEATURE_FLOAT;
}

keel_status keel_feature_check(const keel_record_field *f, const keel_feature *v,
                               const unsigned char **data, size_t *n_bytes, int64_t *n)
{
    const keel_feature_kind kind = kind_of(f);
    size_t at = 0;
    *data = NULL;
    *n_bytes = 0;
    *n = v->count;
    if (v->kind == KEEL_FEATURE_MISSING)
        return keel_fail(KEEL_EDATA, "has no feature '%s'", f->part);
    if (v->kind != kind)
        return keel_fail(KEEL_EDATA, "feature '%s' is a %s, but a %s in the first record", f->part,
                         keel_feature_kind_name(v->kind), keel_feature_kind_name(kind));
    if (f->kind == KEEL_RECORD_NUMBERS || f->kind == KEEL_RECORD_TEXT) return KEEL_OK;
    if (v->count != 1 || !keel_feature_bytes(v, &at, data, n_bytes))
        return keel_fail(KEEL_EDATA, "feature '%s' has %lld byte strings in place of one", f->part,
                         (long long)v->count);
    if (f->kind == KEEL_RECORD_IMAGE) return KEEL_OK;
    const size_t size = keel_dtype_size(f->stored);
    if (*n_bytes % size)
        return keel_fail(KEEL_EDATA, "feature '%s' has %zu bytes, which are no %s numbers", f->part,
                         *n_bytes, keel_dtype_name(f->stored));
    *n = (int64_t)(*n_bytes / size);
    return KEEL_OK;
}

keel_status keel_feature_unpack(const keel_feature *v, void *to)
{
    if (v->kind == KEEL_FEATURE_INT64) return keel_feature_int64(v, to);
    keel_feature_float(v, to);
    return KEEL_OK;
}

static keel_status put_numbers(const keel_record_field *f, const keel_feature *v, void *to,
                               keel_dtype want, int64_t count, keel_scratch *scratch)
{
    KEEL_TRY(keel_record_check(f, v->count, count));
    const size_t size = keel_dtype_size(f->stored);
    if (want == f->stored && !f->classes) {
        KEEL_TRY(keel_feature_unpack(v, to));
        memset((char *)to + (size_t)v->count * size, 0, (size_t)(count - v->count) * size);
        return KEEL_OK;
    }
    void *values = keel_scratch_reserve(scratch, 1, (size_t)v->count * size + 1);
    if (!values) return KEEL_ENOMEM;
    KEEL_TRY(keel_feature_unpack(v, values));
    return keel_record_put(f, values, v->count, to, want, count);
}

static keel_status put_raw(const keel_record_field *f, const unsigned char *data, size_t n_bytes,
                           int64_t n, void *to, keel_dtype want, int64_t count,
                           keel_scratch *scratch)
{
    KEEL_TRY(keel_record_check(f, n, count));
    if (f->stored != KEEL_UINT8) { /* numbers must be aligned */
        void *values = keel_scratch_reserve(scratch, 1, n_bytes + 1);
        if (!values) return KEEL_ENOMEM;
        if (n_bytes) memcpy(values, data, n_bytes);
        data = values;
    }
    return keel_record_put(f, data, n, to, want, count);
}

static keel_status put_image(const keel_photo *photo, const keel_record_field *f,
                             const unsigned char *data, size_t n_bytes, void *to, keel_dtype want,
                             keel_scratch *scratch)
{
    return keel_photo_read(photo, &f->field, data, n_bytes, to, want, scratch, f->part);
}

keel_status keel_feature_put(const keel_record_field *f, const keel_photo *photo,
                             const keel_feature *v, void *to, keel_dtype want, int64_t count,
                             keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n_bytes;
    int64_t n;
    KEEL_TRY(keel_feature_check(f, v, &data, &n_bytes, &n));
    if (f->kind == KEEL_RECORD_NUMBERS) return put_numbers(f, v, to, want, count, scratch);
    if (f->kind == KEEL_RECORD_RAW) return put_raw(f, data, n_bytes, n, to, want, count, scratch);
    return put_image(photo, f, data, n_bytes, to, want, scratch);
}
