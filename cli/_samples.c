/* See samples.h. */
#include "samples.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 1 << 30 };

static size_t size_of(keel_dtype t)
{
    static const size_t size[KEEL_DTYPE_COUNT] = { [KEEL_FLOAT32] = 4,
                                                   [KEEL_FLOAT64] = 8,
                                                   [KEEL_UINT8] = 1,
                                                   [KEEL_INT32] = 4,
                                                   [KEEL_INT64] = 8,
                                                   [KEEL_BOOL] = 1,
                                                   [KEEL_STRING] = sizeof(keel_string) };
    return size[t];
}

static keel_status no_memory(void)
{
    return keel_error_set(KEEL_ENOMEM,
                          "out of memory for the rows that are shown; give --rows less");
}

/* Texts are copied behind the strings of the same allocation. */
static keel_status copy(keel_samples *s, keel_tensor *out, const keel_tensor *from, int64_t row,
                        bool batched)
{
    keel_tensor t = { .dtype = from->dtype };
    t.shape.rank = from->shape.rank - batched;
    memcpy(t.shape.dim, from->shape.dim + batched, (size_t)t.shape.rank * sizeof *t.shape.dim);
    const int64_t n = keel_value_count(&t);
    const size_t bytes = (size_t)n * size_of(t.dtype);
    const char *begin = (const char *)from->data + (batched ? (size_t)row * bytes : 0);
    size_t texts = 0;
    if (t.dtype == KEEL_STRING)
        for (int64_t i = 0; i < n; i++) texts += (size_t)((const keel_string *)begin)[i].n_bytes;
    if (bytes + texts > BYTES_MAX - s->n_bytes)
        return keel_error_set(KEEL_EARG,
                              "the rows that are shown have more than 1 GiB; give --rows less");
    if (!(t.data = malloc(bytes + texts + 1))) return no_memory();
    s->n_bytes += bytes + texts;
    memcpy(t.data, begin, bytes);
    char *to = (char *)t.data + bytes;
    for (int64_t i = 0; t.dtype == KEEL_STRING && i < n; i++) {
        keel_string *one = (keel_string *)t.data + i;
        if (one->n_bytes) memcpy(to, one->data, (size_t)one->n_bytes);
        one->data = to;
        to += one->n_bytes;
    }
    *out = t;
    return KEEL_OK;
}

static keel_status grow(keel_samples *s, keel_sample **added)
{
    if (!(s->n & (s->n - 1))) { /* full at powers of two */
        keel_sample *more = realloc(s->sample, (size_t)(s->n ? 2 * s->n : 1) * sizeof *more);
        if (!more) return no_memory();
        s->sample = more;
    }
    *added = &s->sample[s->n++];
    **added = (keel_sample){ 0 };
    return KEEL_OK;
}

static keel_status keep(keel_samples *s, int64_t element, const keel_tensor *field,
                        int64_t per_batch)
{
    const bool batched = keel_dataset_is_batched(s->data);
    const int64_t rows = batched ? field[0].shape.dim[0] : 1;
    for (int64_t row = 0; row < rows && row < per_batch; row++) {
        keel_sample *one;
        keel_status st = grow(s, &one);
        if (st < 0) return st;
        one->element = element;
        one->row = row;
        one->rows = batched ? rows : 0;
        if (!(one->field = calloc((size_t)s->n_field, sizeof *one->field))) return no_memory();
        for (int i = 0; i < s->n_field; i++)
            if ((st = copy(s, &one->field[i], &field[i], row, batched)) < 0) return st;
    }
    return KEEL_OK;
}

static keel_status keep_failure(keel_samples *s, int64_t element)
{
    keel_sample *one;
    const keel_status st = grow(s, &one);
    if (st < 0) return st;
    one->element = element;
    one->why = strdup(keel_error());
    return one->why ? KEEL_OK : no_memory();
}

keel_status keel_samples_read(keel_samples *out, const keel_dataset *d, int64_t elements,
                              int64_t per_batch, bool pass_over, const keel_reader_options *r)
{
    keel_reader *reader;
    const keel_tensor *field;
    *out = (keel_samples){ .data = d, .n_field = keel_dataset_field_count(d) };
    keel_status s = keel_reader_create(&reader, d, r);
    if (s < 0) return s;
    for (int64_t k = 0; k < elements; k++) {
        if ((s = keel_reader_next(reader, &field)) == KEEL_END) break;
        if (s >= 0)
            s = keep(out, k, field, per_batch);
        else if (pass_over) {
            s = keep_failure(out, k);
            keel_reader_pass(reader);
        }
        if (s < 0) break;
    }
    keel_reader_destroy(reader);
    return s < 0 ? s : KEEL_OK;
}

void keel_samples_free(keel_samples *s)
{
    for (int64_t k = 0; k < s->n; k++) {
        for (int i = 0; s->sample[k].field && i < s->n_field; i++) free(s->sample[k].field[i].data);
        free(s->sample[k].field);
        free(s->sample[k].why);
    }
    free(s->sample);
    *s = (keel_samples){ 0 };
}

keel_look keel_samples_look(const keel_samples *s, int i, keel_range *range)
{
    keel_look look = KEEL_LOOK_VALUES;
    bool first = true;
    *range = KEEL_RANGE;
    for (int64_t k = 0; k < s->n; k++) {
        if (!s->sample[k].field) continue;
        const keel_tensor *t = &s->sample[k].field[i];
        const keel_look l = keel_look_at(t);
        if (!first && l != look) return KEEL_LOOK_VALUES;
        look = l;
        first = false;
        if (l != KEEL_LOOK_VALUES) keel_range_add(range, t);
        keel_range_decide(range, t->dtype);
    }
    return look;
}

/* ---- labels ------------------------------------------------------------------------------------
 */

const char *keel_sample_class(const keel_dataset *d, const keel_tensor *target)
{
    const int64_t n = keel_value_count(target), classes = keel_dataset_class_count(d);
    int64_t at = -1;
    if (target->dtype == KEEL_STRING || !classes) return NULL;
    if (n == 1) {
        const double v = keel_value(target, 0);
        if (v >= 0 && v < (double)classes && v == (double)(int64_t)v) at = (int64_t)v;
    }
    for (int64_t i = 0; n == classes && n > 1 && i < n; i++) {
        const double v = keel_value(target, i);
        if (v != 0 && (v != 1 || at >= 0)) return NULL; /* not a one among zeros */
        if (v == 1) at = i;
    }
    return at < 0 ? NULL : keel_dataset_class_name(d, at);
}

const char *keel_sample_label(char *out, size_t size, const keel_samples *s, const keel_sample *one)
{
    int at = one->rows ? snprintf(out, size, "%" PRId64 " [%" PRId64 "]", one->element, one->row)
                       : snprintf(out, size, "%" PRId64, one->element);
    for (int i = 0; one->field && i < s->n_field; i++) {
        keel_data_field f;
        if (keel_dataset_field(s->data, i, &f) < 0 || f.role != KEEL_ROLE_TARGET) continue;
        const char *name = keel_sample_class(s->data, &one->field[i]);
        char raw[256];
        *raw = 0;
        if (name)
            snprintf(raw, sizeof raw, "%s", name);
        else if (one->field[i].dtype != KEEL_STRING && keel_value_count(&one->field[i]) == 1)
            snprintf(raw, sizeof raw, "%.7g", keel_value(&one->field[i], 0));
        if (*raw && at > 0 && (size_t)at < size) {
            at += snprintf(out + at, size - (size_t)at, ": ");
            if ((size_t)at < size) keel_printable(out + at, size - (size_t)at, raw);
        }
        break;
    }
    return out;
}
