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
#include "data/feature_rows.h"
#include "data/features.h"
#include "data/file_list.h"
#include "io/tfrecord.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

enum { SMALL = 64 << 20 /* bytes; reading them takes some 0.1 s */, PROBES = 64 };

extern const keel_source keel_source_tfrecord;

typedef struct records {
    keel_file_list files;
    keel_tfrecord *file; /* [files.n] */
    int64_t *first;      /* [files.n + 1] the first row of each file */
    keel_record_fields fields;
    const char *feature[KEEL_FIELDS_MAX];
    keel_photo photo;
} records;

static void close_records(void *state)
{
    records *r = state;
    for (int64_t i = 0; r->file && i < r->files.n; i++) keel_tfrecord_close(&r->file[i]);
    keel_free(r->file);
    keel_free(r->first);
    keel_file_list_free(&r->files);
    keel_record_fields_free(&r->fields);
    keel_free(r);
}

static int64_t rows_of(const records *r)
{
    return r->first[r->files.n];
}

/* The file of a row, by bisection. */
static int64_t file_of(const records *r, int64_t row)
{
    int64_t low = 0, high = r->files.n - 1;
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

static keel_status scan_value(const keel_record_field *f, keel_record_scan *s,
                              const keel_feature *v, keel_scratch *scratch);

/* Say of a row that was put off what is wrong with it. */
static keel_status refuse(const records *r, int64_t row, keel_scratch *scratch)
{
    keel_feature v[KEEL_FIELDS_MAX];
    keel_status s = KEEL_OK;
    KEEL_TRY(find(r, row, scratch, v));
    for (int i = 0; s >= 0 && i < r->fields.n; i++) {
        keel_record_scan one = { 0 };
        if (r->fields.at[i].kind == KEEL_RECORD_IMAGE) continue;
        if ((s = keel_record_scan_begin(&one, 1)) >= 0)
            s = scan_value(&r->fields.at[i], &one, &v[i], scratch);
        keel_record_scan_free(&one);
    }
    if (s >= 0) s = keel_fail(KEEL_EDATA, "could not be read when the data was opened");
    return of_record(r, row, s);
}

static keel_status read_row(const void *state, int64_t index, const keel_row *row,
                            keel_scratch *scratch)
{
    const records *r = state;
    keel_feature v[KEEL_FIELDS_MAX];
    bool found = false;
    if (keel_record_is_bad(&r->fields, index)) return refuse(r, index, scratch);
    for (int i = 0; i < r->fields.n; i++) {
        const keel_record_field *f = &r->fields.at[i];
        if (!row->at[i]) continue;
        if (f->kept.data) {
            KEEL_TRY(keel_record_put_kept(f, index, row->at[i], row->want[i], row->count[i]));
            continue;
        }
        if (!found) KEEL_TRY(find(r, index, scratch, v));
        found = true;
        keel_status s =
            keel_feature_put(f, &r->photo, &v[i], row->at[i], row->want[i], row->count[i], scratch);
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
    KEEL_TRY(keel_file_list_find(&r->files, spec, keel_tfrecord_endings));
    const size_t n = (size_t)r->files.n;
    r->file = keel_calloc(n + 1, sizeof *r->file);
    r->first = keel_calloc(n + 1, sizeof *r->first);
    if (!r->file || !r->first) return KEEL_ENOMEM;
    *n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        KEEL_TRY(keel_tfrecord_open(&r->file[i], r->files.path[i], i < KEEL_FILES_OPEN, &room));
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

/* True if rows spread over the data differ in length, so that all lengths must be read. */
static keel_status probe(const records *r, bool unchecked, keel_scratch *scratch, bool *differ)
{
    keel_feature v[KEEL_FIELDS_MAX];
    int64_t first[KEEL_FIELDS_MAX], n;
    const int64_t rows = rows_of(r), probes = rows < PROBES ? rows : PROBES;
    *differ = false;
    for (int64_t p = 0; p < probes && !*differ; p++) {
        const int64_t row = probes > 1 ? p * ((rows - 1) / (probes - 1)) : 0;
        const keel_status found = find(r, row, scratch, v);
        if (found < 0 && found != KEEL_ENOMEM && unchecked && p) continue;
        if (found < 0) return found;
        for (int i = 0; i < r->fields.n; i++) {
            const unsigned char *data;
            size_t n_bytes;
            const keel_status s = keel_feature_check(&r->fields.at[i], &v[i], &data, &n_bytes, &n);
            if (s < 0 && s != KEEL_ENOMEM && unchecked && p) continue;
            if (s < 0) return of_record(r, row, s);
            if (p == 0) first[i] = n;
            *differ = *differ || (n != first[i] && !r->fields.at[i].shaped);
        }
    }
    return KEEL_OK;
}

/* Note what a row has of a field, which is no image. */
static keel_status scan_value(const keel_record_field *f, keel_record_scan *s,
                              const keel_feature *v, keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n_bytes, at = 0;
    int64_t n;
    KEEL_TRY(keel_feature_check(f, v, &data, &n_bytes, &n));
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
        KEEL_TRY(keel_feature_unpack(v, value));
    keel_record_scan_label(s, value, f->stored);
    return KEEL_OK;
}

static keel_status scan_image(records *r, const keel_record_field *f, const keel_feature *v)
{
    const unsigned char *data;
    size_t n_bytes;
    int64_t n, height = 0, width = 0;
    KEEL_TRY(keel_feature_check(f, v, &data, &n_bytes, &n));
    r->photo.exact = r->photo.exact && keel_image_size(data, n_bytes, &height, &width) &&
                     keel_photo_keeps_bytes(&r->photo, height, width);
    return KEEL_OK;
}

static keel_status scan_row(records *r, keel_record_scan *scan, int64_t row, keel_scratch *scratch)
{
    keel_feature v[KEEL_FIELDS_MAX];
    KEEL_TRY(find(r, row, scratch, v));
    for (int i = 0; i < r->fields.n; i++) {
        const keel_record_field *f = &r->fields.at[i];
        const keel_status s = f->kind == KEEL_RECORD_IMAGE
                                  ? scan_image(r, f, &v[i])
                                  : scan_value(f, &scan[i], &v[i], scratch);
        if (s < 0) return of_record(r, row, s);
    }
    return KEEL_OK;
}

/* The row fails when it is read. */
static keel_status put_off(records *r, keel_record_scan *scan, int64_t row)
{
    KEEL_TRY(keel_record_put_off(&r->fields, row));
    for (int i = 0; i < r->fields.n; i++)
        if (r->fields.at[i].kind != KEEL_RECORD_IMAGE)
            KEEL_TRY(keel_record_scan_blank(&scan[i], &r->fields.at[i], row + 1));
    return KEEL_OK;
}

static keel_status scan_all(records *r, keel_record_scan *scan, const keel_dataset_options *o,
                            keel_scratch *scratch, const char *what)
{
    const int64_t rows = rows_of(r);
    const int n = r->fields.n;
    for (int i = 0; i < n; i++)
        if (r->fields.at[i].kind != KEEL_RECORD_IMAGE)
            KEEL_TRY(keel_record_scan_begin(&scan[i], rows));
    r->photo.exact = true;
    for (int64_t row = 0; row < rows; row++) {
        keel_status s = scan_row(r, scan, row, scratch);
        if (s < 0 && s != KEEL_ENOMEM && o->unchecked && row) s = put_off(r, scan, row);
        if (s < 0) return s;
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
        const keel_status s = keel_feature_learn(&f->at[i], &v[i], o);
        if (s < 0) return of_record(r, 0, s);
        scans = scans || keel_record_must_scan(&f->at[i]);
        images = images || f->at[i].kind == KEEL_RECORD_IMAGE;
    }
    if (images) KEEL_TRY(keel_photo_init(&r->photo, o, what));
    if (!scans) KEEL_TRY(probe(r, o->unchecked, scratch, &scans));
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
    return keel_file_list_claims_shards(spec, keel_tfrecord_endings);
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
