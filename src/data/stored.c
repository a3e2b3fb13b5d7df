/* Rows of a field as they are stored; see stored.h. */
#include "data/stored.h"
#include "base/memory.h"
#include "data/labels.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

static keel_status set_labels(keel_stored *f, const keel_dataset_options *o, int choice,
                              const char *what)
{
    const keel_dataset_options own = keel_labels_options(o, choice);
    const bool categorical = own.label_mode == KEEL_LABEL_CATEGORICAL;
    if (f->count != 1 || f->field.shape.rank > 1) return KEEL_OK;
    if (!own.class_count && !categorical) return KEEL_OK;
    if (!own.class_count)
        return keel_fail(KEEL_EUNSUP,
                         "%s: the labels of '%s' are to be one-hot, but the number of classes is "
                         "not known: give class_count",
                         what, f->field.path);
    f->is_class = true;
    f->classes = own.class_count;
    f->binary = own.label_mode == KEEL_LABEL_BINARY;
    f->one_hot = categorical;
    if (!categorical) return KEEL_OK;
    f->field.shape = KEEL_SHAPE(f->classes);
    f->field.dtype = KEEL_FLOAT32;
    return KEEL_OK;
}

keel_status keel_stored_init(keel_stored *out, const keel_data_field *field,
                             const keel_npy_header *type, bool turn, const keel_dataset_options *o,
                             int choice, const char *what)
{
    keel_stored f = { .type = *type, .turned = turn, .field = *field };
    keel_shape *s = &f.field.shape;
    if (type->is_text)
        return keel_fail(KEEL_EUNSUP, "%s: '%s' has texts; only an .npz, an .npy or a CSV file can",
                         what, field->path);
    keel_status r = keel_shape_check(s, keel_dtype_size(type->dtype));
    if (r < 0) return keel_fail_within(r, "%s: '%s'", what, field->path);
    f.field.dtype = type->dtype;
    f.count = keel_shape_count(s);
    f.n_bytes = (size_t)f.count * type->element_bytes;
    if (turn && s->rank != 3)
        return keel_fail(KEEL_ESHAPE, "%s: '%s' has %d dims; only three, (C, H, W), can be turned",
                         what, field->path, s->rank);
    if (turn) *s = KEEL_SHAPE(s->dim[1], s->dim[2], s->dim[0]);
    if (field->role == KEEL_ROLE_TARGET) KEEL_TRY(set_labels(&f, o, choice, what));
    *out = f;
    return KEEL_OK;
}

/* [C, H, W] to [H, W, C], of elements of 1, 4 or 8 bytes. */
#define TURN(name, type)                                                                           \
    static void name(void *to, const void *from, int64_t pixels, int64_t channels)                 \
    {                                                                                              \
        type *d = to;                                                                              \
        const type *s = from;                                                                      \
        for (int64_t i = 0; i < pixels; i++)                                                       \
            for (int64_t c = 0; c < channels; c++) *d++ = s[c * pixels + i];                       \
    }

TURN(turn_1, uint8_t)
TURN(turn_4, uint32_t)
TURN(turn_8, uint64_t)

static void turn(const keel_stored *f, char *to, const char *from, int64_t n)
{
    const size_t size = keel_dtype_size(f->type.dtype);
    const int64_t channels = f->field.shape.dim[2], pixels = f->count / channels;
    for (int64_t i = 0; i < n; i++) {
        const size_t at = (size_t)(i * f->count) * size;
        (size == 1 ? turn_1 : size == 4 ? turn_4 : turn_8)(to + at, from + at, pixels, channels);
    }
}

static keel_status read_class(const keel_stored *f, const char *at, int64_t row, const char *what,
                              int64_t *class)
{
    double v = 0;
    keel_convert(&v, KEEL_FLOAT64, at, f->type.dtype, 1);
    if (f->binary && !(v >= 0 && v <= 1))
        return keel_fail(KEEL_EDATA, "%s: label %g of row %lld; binary labels must be 0 to 1", what,
                         v, (long long)row);
    if (v != floor(v) || !(v >= 0) || v >= (double)f->classes)
        return keel_fail(KEEL_EDATA,
                         "%s: label %g of row %lld is not a class; classes are whole numbers from "
                         "0 to %lld",
                         what, v, (long long)row, (long long)f->classes - 1);
    *class = (int64_t)v;
    return KEEL_OK;
}

/* Check n labels, and write them, one-hot if they are to be. */
static keel_status write_labels(const keel_stored *f, char *to, keel_dtype want, const char *from,
                                int64_t n, int64_t first, const char *what)
{
    static const float one = 1;
    const size_t size = keel_dtype_size(f->type.dtype), step = keel_dtype_size(want);
    if (f->one_hot) memset(to, 0, (size_t)(n * f->classes) * step);
    for (int64_t i = 0; i < n; i++) {
        int64_t class = 0;
        KEEL_TRY(read_class(f, from + (size_t)i * size, first + i, what, &class));
        if (!f->one_hot) continue;
        KEEL_TRY(keel_field_write(to + (size_t)(i * f->classes + class) * step, want, &one,
                                  &f->field, 1));
    }
    return f->one_hot ? KEEL_OK : keel_field_write(to, want, from, &f->field, n);
}

/* Rows go straight to where they are wanted. */
static bool is_straight(const keel_stored *f, keel_dtype want)
{
    return want == f->field.dtype && !f->turned && !f->is_class &&
           f->field.role != KEEL_ROLE_WEIGHT;
}

int64_t keel_stored_needs(const keel_stored *f, keel_dtype want, bool aligned)
{
    const bool plain = keel_npy_is_plain(&f->type) && !f->turned && aligned;
    return plain || is_straight(f, want) ? 0
                                         : 2 * f->count * (int64_t)keel_dtype_size(f->type.dtype);
}

keel_status keel_stored_write(const keel_stored *f, void *to, keel_dtype want, const void *from,
                              int64_t n, int64_t first, keel_scratch *s, const char *what)
{
    const size_t size = keel_dtype_size(f->type.dtype), count = (size_t)(n * f->count);
    const bool aligned = (uintptr_t)from % size == 0;
    if (n == 0) return KEEL_OK;
    if (!keel_npy_is_plain(&f->type) || f->turned || !aligned) {
        const bool straight = is_straight(f, want);
        char *values = straight ? to : keel_scratch_reserve(s, 3, 2 * count * size);
        if (!values) return KEEL_ENOMEM;
        const keel_status s_read = keel_npy_convert(&f->type, values, from, count);
        if (s_read < 0)
            return keel_fail_within(s_read, "%s: in a row from %lld on", what, (long long)first);
        if (straight) return KEEL_OK;
        if (f->turned) {
            char *turned = want == f->field.dtype ? to : values + count * size;
            turn(f, turned, values, n);
            if (turned == to) return KEEL_OK;
            values = turned;
        }
        from = values;
    }
    if (f->field.role == KEEL_ROLE_WEIGHT)
        KEEL_TRY(keel_weights_check(from, f->type.dtype, n, f->count, first, what));
    if (f->is_class) return write_labels(f, to, want, from, n, first, what);
    return keel_field_write(to, want, from, &f->field, (int64_t)count);
}
