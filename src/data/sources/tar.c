/* Tar shards as WebDataset writes them: the members of one key, the name up to the first dot of its
 * last part, form a row, and what follows the dot is the part of the row: 000017.jpg and
 * 000017.cls. Members of a key need not stand together. Rows are indexed over all shards; a member
 * is read when its row is, by any thread.
 *
 * What a part is follows from its ending: jpg, jpeg, png an image; cls, cls2, id, index, inx a
 * whole number; txt, text, transcript, json a text; npy an array. */
#include "base/memory.h"
#include "base/text.h"
#include "data/features.h"
#include "data/records.h"
#include "data/tar_rows.h"
#include "io/npy.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define IMAGES "jpg;jpeg;png"
enum { TEXT_MAX = 1 << 26, NUMBER_MAX = 64 }; /* bytes */
#define MEMBER_MAX (UINT64_C(1) << 30)

extern const keel_source keel_source_tar;

typedef struct archive {
    keel_tar_rows t;
    keel_record_fields fields;
    keel_photo photo;
} archive;

static void close_archive(void *state)
{
    archive *a = state;
    keel_tar_rows_close(&a->t);
    keel_record_fields_free(&a->fields);
    keel_free(a);
}

/* The first `n_most` bytes of a member, or all, in scratch buffer 0 or in memory. */
static keel_status fetch(const archive *a, const keel_tar_item *m, uint64_t n_most,
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

static keel_status fetch_whole(const archive *a, const keel_tar_item *m, uint64_t limit,
                               keel_scratch *scratch, const unsigned char **data, size_t *n)
{
    if (m->n_bytes > limit)
        return keel_fail(KEEL_EFORMAT, "%llu bytes are too many for what its ending says",
                         (unsigned long long)m->n_bytes);
    return fetch(a, m, limit, scratch, data, n);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A whole number between spaces. */
static keel_status read_number(const unsigned char *data, size_t n, int64_t *out)
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

/* The header of an array of numbers that may be a row of the field. */
static keel_status read_header(const keel_record_field *f, const unsigned char *data, size_t n,
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
    KEEL_TRY(read_header(f, data, n_bytes, &h));
    if (n_bytes - h.offset != h.n_bytes)
        return keel_fail(KEEL_EFORMAT, "%zu bytes of elements, but its header says %zu",
                         n_bytes - h.offset, h.n_bytes);
    const int64_t n = keel_shape_count(&h.shape);
    KEEL_TRY(keel_record_check(f, n, count));
    void *values = keel_scratch_reserve(scratch, 1, (size_t)n * keel_dtype_size(f->stored) + 1);
    if (!values) return KEEL_ENOMEM;
    keel_npy_convert_all(&h, values, data + h.offset);
    return keel_record_put(f, values, n, to, want, count);
}

static keel_status put(const archive *a, const keel_record_field *f, const keel_tar_item *m,
                       void *to, keel_dtype want, int64_t count, keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n = 0;
    int64_t number;
    const bool whole_number = f->kind == KEEL_RECORD_NUMBERS;
    KEEL_TRY(fetch_whole(a, m, whole_number ? NUMBER_MAX : MEMBER_MAX, scratch, &data, &n));
    if (whole_number) {
        KEEL_TRY(read_number(data, n, &number));
        return keel_record_put(f, &number, 1, to, want, count);
    }
    if (f->kind == KEEL_RECORD_RAW) return put_array(f, data, n, to, want, count, scratch);
    return keel_photo_read(&a->photo, &f->field, data, n, to, want, scratch, "image");
}

/* A text; of a label without the spaces around it, as a line end. */
static keel_status scan_text(const archive *a, const keel_record_field *f, const keel_tar_item *m,
                             keel_record_scan *s, keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n = 0;
    KEEL_TRY(fetch_whole(a, m, TEXT_MAX, scratch, &data, &n));
    if (f->field.role == KEEL_ROLE_TARGET) {
        while (n && isspace(data[n - 1])) n--;
        while (n && isspace(*data)) data++, n--;
    }
    return keel_record_scan_text(s, data, n);
}

/* Say of a row that was put off what is wrong with it, unless that shows when it is read. */
static keel_status refuse(const archive *a, int64_t row, keel_scratch *scratch)
{
    for (int i = 0; i < a->fields.n; i++) {
        keel_record_scan one = { 0 };
        const keel_tar_item *m;
        if (a->fields.at[i].kind != KEEL_RECORD_TEXT) continue;
        KEEL_TRY(keel_tar_rows_get(&a->t, row, a->fields.at[i].part, &m));
        const keel_status s = scan_text(a, &a->fields.at[i], m, &one, scratch);
        keel_record_scan_free(&one);
        if (s < 0) return keel_tar_rows_fail(&a->t, m, s);
    }
    return KEEL_OK;
}

static keel_status read_row(const void *state, int64_t index, const keel_row *at,
                            keel_scratch *scratch)
{
    const archive *a = state;
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
        const keel_status s = put(a, f, m, at->at[i], at->want[i], at->count[i], scratch);
        if (s < 0) return keel_tar_rows_fail(&a->t, m, s);
    }
    return KEEL_OK;
}

static int64_t length(const void *state, int i, int64_t index)
{
    const int64_t *splits = ((const archive *)state)->fields.at[i].splits;
    return splits[index + 1] - splits[index];
}

static const char *row_name(const void *state, int64_t index)
{
    return ((const archive *)state)->t.rows[index].key;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool has_part(const void *arg, const char *part)
{
    return keel_tar_rows_find(&((const archive *)arg)->t, 0, part) != NULL;
}

static void list_parts(const void *arg, char *text, size_t size)
{
    const archive *a = arg;
    keel_text all = { 0 };
    char shown[80];
    for (int64_t i = 0; i < a->t.rows[1].first; i++)
        keel_text_add(&all, "%s'%s'", i ? ", " : "",
                      keel_printable(shown, sizeof shown, a->t.items[i].ending));
    snprintf(text, size, "%s", all.data ? all.data : "");
    keel_text_free(&all);
}

/* The kind of a part follows from what stands behind its last dot: seg.png is an image. */
static keel_status learn_kind(keel_record_field *f, const keel_tar_item *m)
{
    const char *dot = strrchr(m->ending, '.'), *ending = dot ? dot + 1 : m->ending;
    f->stored = KEEL_INT64;
    if (keel_tar_ending_is(IMAGES, ending)) {
        f->kind = KEEL_RECORD_IMAGE;
    } else if (keel_tar_ending_is("cls;cls2;id;index;inx", ending)) {
        f->kind = KEEL_RECORD_NUMBERS;
    } else if (keel_tar_ending_is("txt;text;transcript;json;jsn", ending)) {
        f->kind = KEEL_RECORD_TEXT;
    } else if (keel_tar_ending_is("npy", ending)) {
        f->kind = KEEL_RECORD_RAW;
    } else {
        return keel_fail(KEEL_EUNSUP, "its ending is not read; endings are jpg, jpeg, png, cls, "
                                      "cls2, id, index, inx, txt, text, transcript, json and npy");
    }
    return KEEL_OK;
}

static keel_status learn_array(const archive *a, keel_record_field *f, const keel_tar_item *m,
                               const keel_record_field *like, keel_scratch *scratch,
                               keel_npy_header *h)
{
    enum { HEAD = 1 << 12, LONGEST = 1 << 17 };
    const unsigned char *data;
    size_t n, header = 0;
    KEEL_TRY(fetch(a, m, HEAD, scratch, &data, &n));
    KEEL_TRY(keel_npy_header_size(&header, data, n));
    if (header > n) KEEL_TRY(fetch(a, m, LONGEST, scratch, &data, &n));
    KEEL_TRY(read_header(like, data, n, h));
    if (m->n_bytes - h->offset != h->n_bytes)
        return keel_fail(KEEL_EFORMAT, "%llu bytes of elements, but its header says %zu",
                         (unsigned long long)(m->n_bytes - h->offset), h->n_bytes);
    if (like) return KEEL_OK;
    f->stored = h->dtype;
    f->shape = h->shape;
    return KEEL_OK;
}

/* Kind, type and shape of a field, from the first row. */
static keel_status learn(const archive *a, keel_record_field *f, const keel_dataset_options *o,
                         keel_scratch *scratch)
{
    const keel_tar_item *m = NULL;
    keel_npy_header h;
    KEEL_TRY(keel_tar_rows_get(&a->t, 0, f->part, &m));
    keel_status s = learn_kind(f, m);
    if (s >= 0 && f->kind == KEEL_RECORD_RAW) s = learn_array(a, f, m, NULL, scratch, &h);
    if (s < 0) return keel_tar_rows_fail(&a->t, m, s);
    keel_record_take_labels(f, o);
    return KEEL_OK;
}

/* True if the image gives whole numbers, by its first bytes. */
static keel_status keeps_bytes(const archive *a, const keel_tar_item *m, keel_scratch *scratch,
                               bool *out)
{
    static const uint64_t heads[] = { 4 << 10, 256 << 10 };
    int64_t height = 0, width = 0;
    const unsigned char *data;
    size_t n;
    *out = false;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        KEEL_TRY(fetch(a, m, heads[i], scratch, &data, &n));
        if (keel_image_size(data, n, &height, &width)) break;
        if (n == m->n_bytes) return KEEL_OK;
    }
    *out = height > 0 && width > 0 && keel_photo_keeps_bytes(&a->photo, height, width);
    return KEEL_OK;
}

static keel_status scan_item(archive *a, keel_record_field *f, const keel_tar_item *m,
                             keel_record_scan *s, keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n_bytes = 0;
    int64_t n = 1, number;
    keel_npy_header h;
    bool same = true;
    switch (f->kind) {
    case KEEL_RECORD_IMAGE:
        if (!a->photo.exact) return KEEL_OK;
        KEEL_TRY(keeps_bytes(a, m, scratch, &same));
        a->photo.exact = same;
        return KEEL_OK;
    case KEEL_RECORD_TEXT:
        KEEL_TRY(scan_text(a, f, m, s, scratch));
        break;
    case KEEL_RECORD_RAW:
        KEEL_TRY(learn_array(a, f, m, f, scratch, &h));
        n = keel_shape_count(&h.shape);
        if (f->unknown) return keel_fail(KEEL_EARG, "one-hot labels of arrays need class_count");
        break;
    default:
        if (!f->unknown) break;
        KEEL_TRY(fetch_whole(a, m, NUMBER_MAX, scratch, &data, &n_bytes));
        KEEL_TRY(read_number(data, n_bytes, &number));
        keel_record_scan_label(s, &number, KEEL_INT64);
    }
    return keel_record_scan_row(s, f, n);
}

/* The row fails when it is read. */
static keel_status put_off(archive *a, const keel_record_field *f, keel_record_scan *s, int64_t row)
{
    if (f->unknown && f->kind == KEEL_RECORD_RAW) /* no row of it is right */
        return keel_fail(KEEL_EARG, "one-hot labels of arrays need class_count");
    KEEL_TRY(keel_record_put_off(&a->fields, row));
    return f->kind == KEEL_RECORD_IMAGE ? KEEL_OK : keel_record_scan_blank(s, f, row + 1);
}

/* All rows have all members; of most kinds only the first bytes are read. */
static keel_status scan_field(archive *a, keel_record_field *f, const keel_dataset_options *o,
                              keel_scratch *scratch, const char *what)
{
    keel_record_scan scan = { 0 };
    keel_status s = keel_record_scan_begin(&scan, a->t.n_row);
    for (int64_t i = 0; s >= 0 && i < a->t.n_row; i++) {
        const keel_tar_item *m = NULL;
        s = keel_tar_rows_get(&a->t, i, f->part, &m);
        if (s >= 0 && (s = scan_item(a, f, m, &scan, scratch)) < 0)
            s = keel_tar_rows_fail(&a->t, m, s);
        if (s < 0 && s != KEEL_ENOMEM && o->unchecked && i) s = put_off(a, f, &scan, i);
    }
    if (s >= 0 && f->kind != KEEL_RECORD_IMAGE)
        return keel_record_scan_end(&scan, f, o, &a->fields.classes, what);
    keel_record_scan_free(&scan);
    return s;
}

static keel_status learn_all(archive *a, const keel_dataset_options *o, keel_scratch *scratch,
                             const char *what)
{
    keel_record_fields *f = &a->fields;
    bool images = false;
    for (int i = 0; i < f->n; i++) {
        KEEL_TRY(learn(a, &f->at[i], o, scratch));
        images = images || f->at[i].kind == KEEL_RECORD_IMAGE;
    }
    if (images) KEEL_TRY(keel_photo_init(&a->photo, o, what));
    a->photo.exact = true;
    for (int i = 0; i < f->n; i++) KEEL_TRY(scan_field(a, &f->at[i], o, scratch, what));
    keel_record_sort_bad(f);
    for (int i = 0; i < f->n; i++) KEEL_TRY(keel_record_settle(&f->at[i], &a->photo, what));
    return KEEL_OK;
}

static bool claims(const char *spec)
{
    return keel_file_list_claims_shards(spec, keel_tar_endings);
}

static keel_status open_archive(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    KEEL_TRY(keel_feature_types_refuse(o, spec));
    keel_scratch scratch = { 0 };
    archive *a = keel_calloc(1, sizeof *a);
    if (!a) return KEEL_ENOMEM;
    keel_status s = keel_tar_rows_open(&a->t, spec);
    if (s >= 0) {
        const keel_record_parts parts = { .what = a->t.tar[a->t.items[0].shard].in.path,
                                          .noun = "member",
                                          .x = has_part(a, IMAGES) ? IMAGES : "npy",
                                          .y = "cls",
                                          .has = has_part,
                                          .list = list_parts,
                                          .arg = a };
        s = keel_records_choose(&a->fields, o, &parts);
    }
    if (s >= 0) s = learn_all(a, o, &scratch, spec);
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
    .close = close_archive,
};
