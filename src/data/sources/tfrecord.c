/* TFRecord files of tf.train.Example. A row is a record, and the features that the options choose
 * are its fields. Rows are indexed over all files, and each is read, checked and parsed when it is
 * needed, by any thread.
 *
 * Such files say nothing of types and shapes: those of the first record hold for all. Whether rows
 * differ in length, what texts and labels there are, and whether all images have one size is only
 * known from all records. They are read when the data is opened if there are few bytes, if a chosen
 * feature has texts (a batch points to them, so they are held in memory), or if rows spread over
 * the data differ in length. */
#include "base/memory.h"
#include "base/text.h"
#include "data/features.h"
#include "data/records.h"
#include "data/shards.h"
#include "io/example.h"
#include "io/tfrecord.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

enum { SMALL = 64 << 20 /* bytes; reading them takes some 50 ms */, PROBES = 64 };

extern const keel_source keel_source_tfrecord;

typedef struct records {
    keel_shards shards;
    keel_tfrecord *file; /* [shards.count] */
    int64_t *first;      /* [shards.count + 1] the first row of each file */
    keel_record_fields fields;
    const char *feature[KEEL_FIELDS_MAX];
    keel_photo photo;
} records;

static void close_records(void *state)
{
    records *r = state;
    for (int64_t i = 0; r->file && i < r->shards.count; i++) keel_tfrecord_close(&r->file[i]);
    keel_free(r->file);
    keel_free(r->first);
    keel_shards_free(&r->shards);
    keel_record_fields_free(&r->fields);
    keel_free(r);
}

static int64_t rows_of(const records *r)
{
    return r->first[r->shards.count];
}

/* The file of a row, by bisection. */
static int64_t file_of(const records *r, int64_t row)
{
    int64_t low = 0, high = r->shards.count - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (r->first[middle] <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static keel_status of_record(const records *r, int64_t row, keel_status s)
{
    const int64_t k = file_of(r, row), i = row - r->first[k];
    if (s == KEEL_ENOMEM) return s;
    return keel_fail_within(s, "%s: record %lld at byte %llu", r->file[k].in.path, (long long)i,
                            (unsigned long long)r->file[k].offset[i]);
}

/* The data of a row, in scratch buffer 0 or in memory. */
static keel_status fetch(const records *r, int64_t row, keel_scratch *scratch,
                         const unsigned char **data, size_t *n)
{
    const int64_t k = file_of(r, row);
    return keel_tfrecord_read(&r->file[k], row - r->first[k], scratch, data, n);
}

/* The features of all fields of a row. */
static keel_status find(const records *r, int64_t row, keel_scratch *scratch, keel_feature *out)
{
    const unsigned char *data;
    size_t n;
    KEEL_TRY(fetch(r, row, scratch, &data, &n));
    const keel_status s = keel_example_find(out, r->feature, r->fields.n, data, n);
    return s < 0 ? of_record(r, row, s) : s;
}

/* ---- the values of a feature ----------------------------------------------------------------- */

static keel_feature_kind kind_of(const keel_record_field *f)
{
    if (f->kind != KEEL_RECORD_NUMBERS) return KEEL_FEATURE_BYTES;
    return f->stored == KEEL_INT64 ? KEEL_FEATURE_INT64 : KEEL_FEATURE_FLOAT;
}

/* The feature has the kind of the first record; *n gets the number of its values. The only byte
 * string of images and raw bytes is in *data. */
static keel_status check_value(const keel_record_field *f, const keel_feature *v,
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

static keel_status unpack(const keel_feature *v, void *to)
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
        KEEL_TRY(unpack(v, to));
        memset((char *)to + (size_t)v->count * size, 0, (size_t)(count - v->count) * size);
        return KEEL_OK;
    }
    void *values = keel_scratch_reserve(scratch, 1, (size_t)v->count * size + 1);
    if (!values) return KEEL_ENOMEM;
    KEEL_TRY(unpack(v, values));
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

static keel_status put_image(const records *r, const keel_record_field *f,
                             const unsigned char *data, size_t n_bytes, void *to, keel_dtype want,
                             keel_scratch *scratch)
{
    keel_image image;
    KEEL_TRY(keel_image_decode(&image, data, n_bytes, r->photo.channels, scratch, 1, f->part));
    return keel_photo_write(&r->photo, &f->field, &image, to, want, scratch, f->part);
}

static keel_status put(const records *r, const keel_record_field *f, const keel_feature *v,
                       void *to, keel_dtype want, int64_t count, keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n_bytes;
    int64_t n;
    KEEL_TRY(check_value(f, v, &data, &n_bytes, &n));
    if (f->kind == KEEL_RECORD_NUMBERS) return put_numbers(f, v, to, want, count, scratch);
    if (f->kind == KEEL_RECORD_RAW) return put_raw(f, data, n_bytes, n, to, want, count, scratch);
    return put_image(r, f, data, n_bytes, to, want, scratch);
}

static keel_status read_row(const void *state, int64_t index, const keel_row *row,
                            keel_scratch *scratch)
{
    const records *r = state;
    keel_feature v[KEEL_FIELDS_MAX];
    bool found = false;
    for (int i = 0; i < r->fields.n; i++) {
        const keel_record_field *f = &r->fields.at[i];
        if (!row->at[i]) continue;
        if (f->kept.data) {
            KEEL_TRY(keel_record_put_kept(f, index, row->at[i], row->want[i], row->count[i]));
            continue;
        }
        if (!found) KEEL_TRY(find(r, index, scratch, v));
        found = true;
        keel_status s = put(r, f, &v[i], row->at[i], row->want[i], row->count[i], scratch);
        if (s >= 0 && f->field.role == KEEL_ROLE_WEIGHT)
            s = keel_weights_check(row->at[i], row->want[i], 1, row->count[i], index, f->part);
        if (s < 0) return of_record(r, index, s);
    }
    return KEEL_OK;
}

static int64_t length(const void *state, int i, int64_t index)
{
    const int64_t *splits = ((const records *)state)->fields.at[i].splits;
    return splits[index + 1] - splits[index];
}

/* ---- opening --------------------------------------------------------------------------------- */

static keel_status open_files(records *r, const char *spec, int64_t *n_bytes)
{
    int64_t room = KEEL_INFLATED_MAX;
    KEEL_TRY(keel_shards_find(&r->shards, spec, keel_tfrecord_named));
    const size_t n = (size_t)r->shards.count;
    r->file = keel_calloc(n + 1, sizeof *r->file);
    r->first = keel_calloc(n + 1, sizeof *r->first);
    if (!r->file || !r->first) return KEEL_ENOMEM;
    *n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        KEEL_TRY(keel_tfrecord_open(&r->file[i], r->shards.path[i], i < KEEL_SHARDS_OPEN, &room));
        r->first[i + 1] = r->first[i] + r->file[i].count;
        *n_bytes += (int64_t)r->file[i].in.n_bytes;
    }
    if (!rows_of(r)) return keel_fail(KEEL_EDATA, "%s: has no records", spec);
    return KEEL_OK;
}

typedef struct example { /* the first record, while parts are chosen */
    const unsigned char *data;
    size_t n;
} example;

static bool has_feature(const void *arg, const char *name)
{
    const example *e = arg;
    keel_feature f;
    return keel_example_find(&f, &name, 1, e->data, e->n) >= 0 && f.kind;
}

static keel_status add_name(void *arg, const char *name, size_t n, const keel_feature *f)
{
    enum { LONGEST = 64, ENOUGH = 400 };
    keel_text *t = arg;
    char plain[LONGEST + 1], shown[4 * LONGEST];
    const size_t length = n < LONGEST ? n : LONGEST;
    memcpy(plain, name, length);
    plain[length] = 0;
    keel_text_add(t, "%s'%s' (%s)", t->length ? ", " : "",
                  keel_printable(shown, sizeof shown, plain), keel_feature_kind_name(f->kind));
    return t->length < ENOUGH ? KEEL_OK : KEEL_END;
}

static void list_features(const void *arg, char *text, size_t size)
{
    const example *e = arg;
    keel_text all = { 0 };
    if (keel_example_each(e->data, e->n, add_name, &all) < 0 || !all.data)
        *text = 0;
    else
        snprintf(text, size, "%s", all.data);
    keel_text_free(&all);
}

static keel_status choose(records *r, const keel_dataset_options *o)
{
    keel_scratch scratch = { 0 };
    example first;
    keel_status s = fetch(r, 0, &scratch, &first.data, &first.n);
    const keel_record_parts parts = { .what = r->file[file_of(r, 0)].in.path,
                                      .noun = "feature",
                                      .x = "x",
                                      .y = "y",
                                      .has = has_feature,
                                      .list = list_features,
                                      .arg = &first };
    keel_feature none;
    if (s >= 0 && (s = keel_example_find(&none, NULL, 0, first.data, first.n)) < 0)
        s = of_record(r, 0, s);
    if (s >= 0) s = keel_records_choose(&r->fields, o, &parts);
    if (s >= 0) s = keel_feature_types_check(o, has_feature, &first, parts.what);
    keel_scratch_free(&scratch);
    for (int i = 0; i < r->fields.n; i++) r->feature[i] = r->fields.at[i].part;
    return s;
}

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

/* Type and shape of a field, from the first record and the options. */
static keel_status learn(keel_record_field *f, const keel_feature *v, const keel_dataset_options *o)
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

/* True if rows spread over the data differ in length, so that all lengths must be read. */
static keel_status probe(const records *r, keel_scratch *scratch, bool *differ)
{
    keel_feature v[KEEL_FIELDS_MAX];
    int64_t first[KEEL_FIELDS_MAX], n;
    const int64_t rows = rows_of(r), probes = rows < PROBES ? rows : PROBES;
    *differ = false;
    for (int64_t p = 0; p < probes && !*differ; p++) {
        const int64_t row = probes > 1 ? p * ((rows - 1) / (probes - 1)) : 0;
        KEEL_TRY(find(r, row, scratch, v));
        for (int i = 0; i < r->fields.n; i++) {
            const unsigned char *data;
            size_t n_bytes;
            const keel_status s = check_value(&r->fields.at[i], &v[i], &data, &n_bytes, &n);
            if (s < 0) return of_record(r, row, s);
            if (p == 0) first[i] = n;
            *differ = *differ || (n != first[i] && !r->fields.at[i].shaped);
        }
    }
    return KEEL_OK;
}

/* Note what a row has of a field. */
static keel_status scan_value(records *r, keel_record_field *f, keel_record_scan *s,
                              const keel_feature *v, keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n_bytes, at = 0;
    int64_t n, height = 0, width = 0;
    KEEL_TRY(check_value(f, v, &data, &n_bytes, &n));
    if (f->kind == KEEL_RECORD_IMAGE) {
        if (!keel_image_size(data, n_bytes, &height, &width) || height != r->photo.height ||
            width != r->photo.width)
            r->photo.exact = r->photo.interpolation == KEEL_NEAREST;
        return KEEL_OK;
    }
    while (f->kind == KEEL_RECORD_TEXT && keel_feature_bytes(v, &at, &data, &n_bytes)) {
        const keel_status t = keel_record_scan_text(s, data, n_bytes);
        if (t < 0) return t == KEEL_ENOMEM ? t : keel_fail_within(t, "feature '%s'", f->part);
    }
    KEEL_TRY(keel_record_scan_row(s, f, n));
    if (!f->unknown) return KEEL_OK;
    void *value = keel_scratch_reserve(scratch, 1, sizeof(int64_t));
    if (!value) return KEEL_ENOMEM;
    if (f->kind == KEEL_RECORD_RAW)
        memcpy(value, data, n_bytes); /* one number */
    else
        KEEL_TRY(unpack(v, value));
    keel_record_scan_label(s, value, f->stored);
    return KEEL_OK;
}

static keel_status scan_all(records *r, keel_record_scan *scan, const keel_dataset_options *o,
                            keel_scratch *scratch, const char *what)
{
    keel_feature v[KEEL_FIELDS_MAX];
    const int64_t rows = rows_of(r);
    const int n = r->fields.n;
    for (int i = 0; i < n; i++)
        if (r->fields.at[i].kind != KEEL_RECORD_IMAGE)
            KEEL_TRY(keel_record_scan_begin(&scan[i], rows));
    r->photo.exact = true;
    for (int64_t row = 0; row < rows; row++) {
        KEEL_TRY(find(r, row, scratch, v));
        for (int i = 0; i < n; i++) {
            const keel_status s = scan_value(r, &r->fields.at[i], &scan[i], &v[i], scratch);
            if (s < 0) return of_record(r, row, s);
        }
    }
    for (int i = 0; i < n; i++)
        if (r->fields.at[i].kind != KEEL_RECORD_IMAGE)
            KEEL_TRY(keel_record_scan_end(&scan[i], &r->fields.at[i], o, &r->fields.classes, what));
    return KEEL_OK;
}

static keel_status learn_all(records *r, const keel_dataset_options *o, int64_t n_bytes,
                             keel_scratch *scratch, const char *what)
{
    keel_record_fields *f = &r->fields;
    keel_feature v[KEEL_FIELDS_MAX];
    bool scans = n_bytes <= SMALL, images = false;
    KEEL_TRY(find(r, 0, scratch, v));
    for (int i = 0; i < f->n; i++) {
        const keel_status s = learn(&f->at[i], &v[i], o);
        if (s < 0) return of_record(r, 0, s);
        scans = scans || keel_record_must_scan(&f->at[i]);
        images = images || f->at[i].kind == KEEL_RECORD_IMAGE;
    }
    if (images) KEEL_TRY(keel_photo_init(&r->photo, o, what));
    if (!scans) KEEL_TRY(probe(r, scratch, &scans));
    if (scans) {
        keel_record_scan *scan = keel_calloc((size_t)f->n, sizeof *scan);
        const keel_status s = scan ? scan_all(r, scan, o, scratch, what) : KEEL_ENOMEM;
        for (int i = 0; scan && i < f->n; i++) keel_record_scan_free(&scan[i]);
        keel_free(scan);
        if (s < 0) return s;
    }
    for (int i = 0; i < f->n; i++) KEEL_TRY(keel_record_settle(&f->at[i], &r->photo, what));
    return KEEL_OK;
}

static bool claims(const char *spec)
{
    return keel_shards_claims(spec, keel_tfrecord_named);
}

static keel_status open_records(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    keel_scratch scratch = { 0 };
    int64_t n_bytes;
    records *r = keel_calloc(1, sizeof *r);
    if (!r) return KEEL_ENOMEM;
    keel_status s = open_files(r, spec, &n_bytes);
    if (s >= 0) s = choose(r, o);
    if (s >= 0) s = learn_all(r, o, n_bytes, &scratch, spec);
    keel_scratch_free(&scratch);
    if (s < 0) {
        close_records(r);
        return s;
    }
    keel_data_spec all = { .rows = rows_of(r),
                           .yields = -1,
                           .n_field = r->fields.n,
                           .n_classes = r->fields.classes.n,
                           .class_names = r->fields.classes.name };
    for (int i = 0; i < all.n_field; i++) all.field[i] = r->fields.at[i].field;
    r->fields.classes = (keel_classes){ 0 };
    keel_dataset *d = NULL;
    KEEL_TRY(keel_dataset_create(&d, &keel_source_tfrecord, r, &all, spec));
    if ((s = keel_dataset_take_subset(&d, o)) < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_tfrecord = {
    .name = "tfrecord",
    .help = "TFRecord files of tf.train.Example: a file, a directory of them, train-*.tfrecord",
    .claims = claims,
    .open = open_records,
    .read = read_row,
    .length = length,
    .close = close_records,
};
