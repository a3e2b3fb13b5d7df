/* Tar shards as WebDataset writes them: the members of one key, the name up to the first dot of its
 * last part, form a row, and what follows the dot is the part of the row: 000017.jpg and
 * 000017.cls. Members of a key need not stand together. Rows are indexed over all shards; a member
 * is read when its row is, by any thread. What the parts are is learned when the data is opened:
 * _tar_learn.c. */
#include "data/sources/tar.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/features.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <ctype.h>
#include <stdio.h>

#define MEMBER_MAX (UINT64_C(1) << 30) /* bytes */

extern const keel_source keel_source_tar;

static void close_archive(void *state)
{
    keel_archive *a = state;
    keel_tar_rows_close(&a->t);
    keel_record_fields_free(&a->fields);
    keel_largest_destroy(a->largest);
    keel_free(a);
}

keel_status keel_archive_fetch(const keel_archive *a, const keel_tar_item *m, uint64_t n_most,
                               keel_scratch *scratch, const unsigned char **data, size_t *n)
{
    const keel_input *in = &a->t.tar[m->shard].in;
    *n = (size_t)(m->n_bytes < n_most ? m->n_bytes : n_most);
    if (m->n_bytes > MEMBER_MAX)
        return keel_fail(KEEL_EFORMAT, "%llu bytes are more than the 1 GiB that is read",
                         (unsigned long long)m->n_bytes);
    void *buffer = in->memory ? NULL : keel_scratch_reserve(scratch, 0, *n + 1);
    if (!in->memory && !buffer) return KEEL_ENOMEM;
    return keel_input_read(in, m->offset, *n, buffer, data);
}

keel_status keel_archive_fetch_whole(const keel_archive *a, const keel_tar_item *m, uint64_t limit,
                                     keel_scratch *scratch, const unsigned char **data, size_t *n)
{
    if (m->n_bytes > limit)
        return keel_fail(KEEL_EFORMAT, "%llu bytes are too many for what its ending says",
                         (unsigned long long)m->n_bytes);
    return keel_archive_fetch(a, m, limit, scratch, data, n);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What reading a member takes, but for the conversion of an image. head: its first n_head bytes. */
static int64_t member_bytes(const keel_archive *a, const keel_record_field *f,
                            const keel_tar_item *m, const unsigned char *head, size_t n_head,
                            bool *told)
{
    const int64_t n = (int64_t)m->n_bytes, file = a->t.tar[m->shard].in.memory ? 0 : n + 1;
    int64_t decoded = 0;
    *told = true;
    if (f->kind == KEEL_RECORD_IMAGE)
        *told = keel_photo_needs(&a->photo, head, n_head, (size_t)n, &decoded);
    if (f->kind == KEEL_RECORD_RAW) decoded = n + 1; /* its elements, without the header */
    return file + decoded;
}

static keel_status look_at(const keel_archive *a, const keel_record_field *f,
                           const keel_tar_item *m, keel_scratch *scratch, int64_t *n_bytes)
{
    const unsigned char *data = NULL;
    size_t n = 0;
    bool told = false;
    const uint64_t look[] = { KEEL_TAR_LOOK, KEEL_TAR_LOOK_MORE, MEMBER_MAX };
    *n_bytes = 0;
    for (int i = 0; i < 3 && !told; i++) {
        if (f->kind == KEEL_RECORD_IMAGE)
            KEEL_TRY(keel_archive_fetch(a, m, look[i], scratch, &data, &n));
        *n_bytes = member_bytes(a, f, m, data, n, &told);
    }
    return KEEL_OK;
}

keel_status keel_archive_note_rows(keel_archive *a, keel_scratch *scratch)
{
    for (int64_t row = 0; row < a->t.n_row; row++) {
        int64_t sum = 0;
        for (int i = 0; i < a->fields.n; i++) {
            const keel_record_field *f = &a->fields.at[i];
            int64_t n;
            const keel_tar_item *m = keel_tar_rows_find(&a->t, row, f->part);
            if (!m || f->kept.data) continue;
            if (look_at(a, f, m, scratch, &n) == KEEL_ENOMEM) return KEEL_ENOMEM;
            sum += n;
        }
        keel_largest_note(a->largest, sum, row);
    }
    a->known = true;
    return KEEL_OK;
}

static int64_t at_least(const void *state, const keel_dtype *want)
{
    const keel_archive *a = state;
    int64_t converted = 0;
    for (int i = 0; want && i < a->fields.n; i++)
        if (a->fields.at[i].kind == KEEL_RECORD_IMAGE && want[i] != a->fields.at[i].field.dtype)
            converted += keel_photo_converted(&a->photo);
    return keel_largest_bytes(a->largest, NULL) + converted;
}

static int64_t needs(const void *state, const keel_dtype *want)
{
    return ((const keel_archive *)state)->known ? at_least(state, want) : -1;
}

static void largest(const void *state, char *text, size_t size)
{
    const keel_archive *a = state;
    char key[200];
    int64_t row;
    keel_largest_bytes(a->largest, &row);
    *text = 0;
    if (row < 0) return;
    snprintf(text, size, "%.300s: row '%s'",
             a->t.tar[a->t.items[a->t.rows[row].first].shard].in.path,
             keel_printable(key, sizeof key, a->t.rows[row].key));
}

/* ---- values ---------------------------------------------------------------------------------- */

keel_status keel_archive_number(const unsigned char *data, size_t n, int64_t *out)
{
    int64_t v = 0;
    size_t i = 0;
    while (i < n && isspace(data[i])) i++;
    while (n > i && isspace(data[n - 1])) n--;
    const bool minus = i < n && data[i] == '-';
    i += minus;
    bool good = i < n;
    for (; good && i < n; i++)
        good = data[i] >= '0' && data[i] <= '9' && !__builtin_mul_overflow(v, 10, &v) &&
               !__builtin_add_overflow(v, data[i] - '0', &v);
    if (!good) return keel_fail(KEEL_EFORMAT, "is no whole number");
    *out = minus ? -v : v;
    return KEEL_OK;
}

keel_status keel_archive_array(const keel_record_field *f, const unsigned char *data, size_t n,
                               keel_npy_header *h)
{
    char have[96], want[96];
    KEEL_TRY(keel_npy_header_parse(h, data, n, "array"));
    KEEL_TRY(keel_npy_check_numbers(h, "array"));
    if (!f) return KEEL_OK;
    bool same = h->dtype == f->stored && h->shape.rank == f->shape.rank;
    for (int i = 0; same && i < h->shape.rank; i++)
        same = h->shape.dim[i] == f->shape.dim[i] || (i == 0 && !f->shaped);
    if (same) return KEEL_OK;
    keel_shape_text(have, &h->shape);
    keel_shape_text(want, &f->shape);
    return keel_fail(KEEL_EDATA, "%s %s, but %s %s in the first row", keel_dtype_name(h->dtype),
                     have, keel_dtype_name(f->stored), want);
}

static keel_status put_array(const keel_record_field *f, const unsigned char *data, size_t n_bytes,
                             void *to, keel_dtype want, int64_t count, keel_scratch *scratch)
{
    keel_npy_header h;
    KEEL_TRY(keel_archive_array(f, data, n_bytes, &h));
    if (n_bytes - h.offset != h.n_bytes)
        return keel_fail(KEEL_EFORMAT, "%zu bytes of elements, but its header says %zu",
                         n_bytes - h.offset, h.n_bytes);
    const int64_t n = keel_shape_count(&h.shape);
    KEEL_TRY(keel_record_check(f, n, count));
    void *values = keel_scratch_reserve(scratch, 1, (size_t)n * keel_dtype_size(f->stored) + 1);
    if (!values) return KEEL_ENOMEM;
    KEEL_TRY(keel_npy_convert_all(&h, values, data + h.offset));
    return keel_record_put(f, values, n, to, want, count);
}

static keel_status no_room(int64_t n_bytes)
{
    return keel_fail_within(KEEL_ENOMEM, "reading it takes %lld bytes", (long long)n_bytes);
}

/* Adds to *sum what the member takes. */
static keel_status put(const keel_archive *a, const keel_record_field *f, const keel_tar_item *m,
                       void *to, keel_dtype want, int64_t count, keel_scratch *scratch,
                       int64_t *sum)
{
    const unsigned char *data;
    size_t n = 0;
    int64_t number, n_bytes;
    bool told;
    const bool whole_number = f->kind == KEEL_RECORD_NUMBERS;
    keel_status s = keel_archive_fetch_whole(a, m, whole_number ? KEEL_TAR_NUMBER : MEMBER_MAX,
                                             scratch, &data, &n);
    if (s == KEEL_ENOMEM) return no_room((int64_t)m->n_bytes + 1);
    if (s < 0) return s;
    n_bytes = member_bytes(a, f, m, data, n, &told);
    *sum += n_bytes;
    if (whole_number) {
        KEEL_TRY(keel_archive_number(data, n, &number));
        return keel_record_put(f, &number, 1, to, want, count);
    }
    s = f->kind == KEEL_RECORD_RAW
            ? put_array(f, data, n, to, want, count, scratch)
            : keel_photo_read(&a->photo, &f->field, data, n, to, want, scratch, "image");
    return s == KEEL_ENOMEM ? no_room(n_bytes) : s;
}

/* Say of a row that was put off what is wrong with it, unless that shows when it is read. */
static keel_status refuse(const keel_archive *a, int64_t row, keel_scratch *scratch)
{
    for (int i = 0; i < a->fields.n; i++) {
        keel_record_scan one = { 0 };
        const keel_tar_item *m;
        if (a->fields.at[i].kind != KEEL_RECORD_TEXT) continue;
        KEEL_TRY(keel_tar_rows_get(&a->t, row, a->fields.at[i].part, &m));
        const keel_status s = keel_archive_scan_text(a, &a->fields.at[i], m, &one, scratch);
        keel_record_scan_free(&one);
        if (s < 0) return keel_tar_rows_fail(&a->t, m, s);
    }
    return KEEL_OK;
}

static keel_status read_row(const void *state, int64_t index, const keel_row *at,
                            keel_scratch *scratch)
{
    const keel_archive *a = state;
    int64_t sum = 0;
    if (keel_record_is_bad(&a->fields, index)) KEEL_TRY(refuse(a, index, scratch));
    for (int i = 0; i < a->fields.n; i++) {
        const keel_record_field *f = &a->fields.at[i];
        const keel_tar_item *m;
        if (!at->at[i]) continue;
        if (f->kept.data) {
            KEEL_TRY(keel_record_put_kept(f, index, at->at[i], at->want[i], at->count[i]));
            continue;
        }
        KEEL_TRY(keel_tar_rows_get(&a->t, index, f->part, &m));
        const keel_status s = put(a, f, m, at->at[i], at->want[i], at->count[i], scratch, &sum);
        if (!a->known) keel_largest_note(a->largest, sum, index);
        if (s < 0) return keel_tar_rows_fail(&a->t, m, s);
    }
    return KEEL_OK;
}

static int64_t length(const void *state, int i, int64_t index)
{
    const int64_t *splits = ((const keel_archive *)state)->fields.at[i].splits;
    return splits[index + 1] - splits[index];
}

static const char *row_name(const void *state, int64_t index)
{
    return ((const keel_archive *)state)->t.rows[index].key;
}

static bool claims(const char *spec)
{
    return keel_file_list_claims_shards(spec, keel_tar_endings);
}

static keel_status open_archive(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    KEEL_TRY(keel_feature_types_refuse(o, spec));
    keel_scratch scratch = { 0 };
    keel_archive *a = keel_calloc(1, sizeof *a);
    if (!a) return KEEL_ENOMEM;
    keel_status s = (a->largest = keel_largest_create()) ? KEEL_OK : KEEL_ENOMEM;
    if (s >= 0) s = keel_tar_rows_open(&a->t, spec);
    if (s >= 0) s = keel_archive_choose(a, o);
    if (s >= 0) s = keel_archive_learn(a, o, &scratch, spec);
    keel_scratch_free(&scratch);
    if (s < 0) {
        close_archive(a);
        return s;
    }
    keel_data_spec all = { .rows = a->t.n_row,
                           .yields = -1,
                           .n_field = a->fields.n,
                           .n_classes = a->fields.classes.n,
                           .class_names = a->fields.classes.name };
    for (int i = 0; i < all.n_field; i++) all.field[i] = a->fields.at[i].field;
    a->fields.classes = (keel_classes){ 0 };
    keel_dataset *d = NULL;
    KEEL_TRY(keel_dataset_create(&d, &keel_source_tar, a, &all, spec));
    if ((s = keel_dataset_take_subset(&d, o)) < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_tar = {
    .name = "tar",
    .help = "tar shards of WebDataset: a file, a directory of them, shard-{000..010}.tar",
    .claims = claims,
    .open = open_archive,
    .read = read_row,
    .length = length,
    .row_name = row_name,
    .needs = needs,
    .at_least = at_least,
    .largest = largest,
    .close = close_archive,
};
