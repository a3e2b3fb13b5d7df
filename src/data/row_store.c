/* See row_store.h. */
#include "data/row_store.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

int keel_row_store_dims(const keel_data_spec *spec)
{
    int n = spec->batched;
    for (int i = 0; i < spec->n_field; i++)
        for (int d = 0; d < spec->field[i].shape.rank; d++)
            n += spec->field[i].shape.dim[d] == KEEL_DIM_OPEN;
    return n;
}

/* ---- elements as bytes ----------------------------------------------------------------------- */

/* Bytes of a field: the numbers as they are, or of each text its length, u64, and its bytes. */
static size_t encoded_bytes(const keel_element *e, const keel_data_spec *spec, int i)
{
    const keel_string *text = e->field[i].data;
    size_t n = keel_element_bytes(e, spec, i);
    if (spec->field[i].dtype != KEEL_STRING) return n;
    n = 0;
    for (int64_t k = 0; k < keel_shape_count(&e->field[i].shape); k++)
        n += 8 + (size_t)text[k].n_bytes; /* the texts are in memory, so this cannot overflow */
    return n;
}

static char *encode_texts(char *to, const keel_string *text, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        const uint64_t n = (uint64_t)text[k].n_bytes;
        memcpy(to, &n, 8);
        if (n) memcpy(to + 8, text[k].data, (size_t)n);
        to += 8 + n;
    }
    return to;
}

keel_status keel_row_store_encode(const keel_element *e, const keel_data_spec *spec,
                                  keel_scratch *scratch, const void **data, size_t *n_bytes,
                                  uint64_t dims[KEEL_ROW_DIMS])
{
    size_t sum = 0;
    int n = 0;
    if (spec->batched) dims[n++] = (uint64_t)e->field[0].shape.dim[0];
    for (int i = 0; i < spec->n_field; i++) {
        const keel_shape *s = &spec->field[i].shape;
        for (int d = 0; d < s->rank; d++)
            if (s->dim[d] == KEEL_DIM_OPEN)
                dims[n++] = (uint64_t)e->field[i].shape.dim[d + spec->batched];
        sum += encoded_bytes(e, spec, i);
    }
    char *to = keel_scratch_reserve(scratch, 0, sum + 1);
    if (!to) return KEEL_ENOMEM;
    *data = to;
    *n_bytes = sum;
    for (int i = 0; i < spec->n_field; i++) {
        const size_t own = keel_element_bytes(e, spec, i);
        if (spec->field[i].dtype == KEEL_STRING) {
            to = encode_texts(to, e->field[i].data, keel_shape_count(&e->field[i].shape));
        } else {
            if (own) memcpy(to, e->field[i].data, own);
            to += own;
        }
    }
    return KEEL_OK;
}

/* ---- and back -------------------------------------------------------------------------------- */

static keel_status wrong(const keel_row_file *f, int64_t i, const char *what)
{
    return keel_fail(KEEL_EFORMAT, "%s: row %lld is damaged: %s; remove the file to make it anew",
                     f->path, (long long)i, what);
}

/* The shapes of element i, and how many bytes its numbers and the keel_strings of its texts take.
 */
static keel_status shapes_of(const keel_row_file *f, const keel_data_spec *spec, int64_t i,
                             keel_shape *shape, uint64_t *numbers, uint64_t *texts)
{
    int n = 0;
    const uint64_t rows = spec->batched ? keel_row_file_dim(f, i, n++) : 0;
    if (rows > (uint64_t)(spec->max_rows > 0 ? spec->max_rows : INT32_MAX))
        return wrong(f, i, "more rows than a batch has");
    *numbers = *texts = 0;
    for (int k = 0; k < spec->n_field; k++) {
        const keel_data_field *field = &spec->field[k];
        const size_t each = keel_dtype_size(field->dtype);
        keel_shape s = field->shape;
        for (int d = 0; d < s.rank; d++)
            if (s.dim[d] == KEEL_DIM_OPEN) {
                const uint64_t dim = keel_row_file_dim(f, i, n++);
                if (dim > INT64_MAX) return wrong(f, i, "a dim");
                s.dim[d] = (int64_t)dim;
            }
        if (spec->batched) KEEL_TRY(keel_batch_shape(&s, &s, (int64_t)rows, field->path));
        if (keel_shape_check(&s, each) < 0) return wrong(f, i, "a shape");
        const uint64_t bytes = (uint64_t)keel_shape_count(&s) * each;
        uint64_t *sum = field->dtype == KEEL_STRING ? texts : numbers;
        if (__builtin_add_overflow(*sum, bytes, sum)) return wrong(f, i, "its size");
        shape[k] = s;
    }
    /* A text takes 8 bytes for its length, and 16 as a keel_string. */
    const uint64_t most = keel_row_file_bytes(f, i);
    if (*texts ? *numbers > most || *texts / 2 > most - *numbers : *numbers != most)
        return wrong(f, i, "it has not as many bytes as its shape");
    return KEEL_OK;
}

static const unsigned char *decode_texts(keel_string *to, int64_t count, const unsigned char *at,
                                         const unsigned char *end)
{
    for (int64_t k = 0; k < count; k++) {
        uint64_t n;
        if ((size_t)(end - at) < 8) return NULL;
        memcpy(&n, at, 8);
        at += 8;
        if (n > (size_t)(end - at)) return NULL;
        to[k] = (keel_string){ (const char *)at, (int64_t)n };
        at += n;
    }
    return at;
}

keel_status keel_row_store_read(keel_element **out, const keel_row_file *f,
                                const keel_data_spec *spec, int64_t i, keel_account *a,
                                keel_scratch *scratch)
{
    keel_shape shape[KEEL_FIELDS_MAX];
    const void *data[KEEL_FIELDS_MAX];
    const unsigned char *bytes;
    size_t n;
    uint64_t numbers, texts;
    if (i < 0 || i >= f->count || f->n_dims != keel_row_store_dims(spec))
        return keel_fail(KEEL_EFORMAT, "%s: there is no such row", f->path);
    KEEL_TRY(shapes_of(f, spec, i, shape, &numbers, &texts));
    KEEL_TRY(keel_row_file_read(f, i, scratch, &bytes, &n));
    keel_string *text = keel_scratch_reserve(scratch, 2, (size_t)texts + 1);
    if (!text) return KEEL_ENOMEM;
    const unsigned char *at = bytes, *end = bytes + n;
    for (int k = 0; k < spec->n_field; k++) {
        const int64_t count = keel_shape_count(&shape[k]);
        const size_t own = (size_t)count * keel_dtype_size(spec->field[k].dtype);
        if (spec->field[k].dtype == KEEL_STRING) {
            data[k] = text;
            at = decode_texts(text, count, at, end);
            if (!at) return wrong(f, i, "a text");
            text += count;
        } else {
            if (own > (size_t)(end - at)) return wrong(f, i, "its size");
            data[k] = at;
            at += own;
        }
    }
    if (at != end) return wrong(f, i, "bytes are left over");
    return keel_element_copy(out, a, spec, data, shape);
}

int64_t keel_row_store_length(const keel_row_file *f, const keel_data_spec *spec, int field,
                              int64_t i)
{
    int n = 0;
    for (int k = 0; k < field; k++)
        for (int d = 0; d < spec->field[k].shape.rank; d++)
            n += spec->field[k].shape.dim[d] == KEEL_DIM_OPEN;
    const uint64_t dim = n < f->n_dims ? keel_row_file_dim(f, i, n) : 0;
    return dim > INT64_MAX ? 0 : (int64_t)dim; /* reading the row fails then, with the text */
}
