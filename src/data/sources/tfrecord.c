/* TFRecord files of tf.train.Example. A row is a record, and the features that the options choose
 * are its fields. Rows are indexed over all files, and each is read, checked and parsed when it is
 * needed, by any thread. What the fields are is learned when the data is opened:
 * _tfrecord_learn.c. */
#include "data/sources/tfrecord.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include <stdio.h>
#include <string.h>

extern const keel_source keel_source_tfrecord;

static void close_records(void *state)
{
    keel_examples *r = state;
    for (int64_t i = 0; r->file && i < r->files.n; i++) keel_tfrecord_close(&r->file[i]);
    keel_free(r->file);
    keel_free(r->first);
    keel_file_list_free(&r->files);
    keel_record_fields_free(&r->fields);
    keel_largest_destroy(r->largest);
    keel_largest_destroy(r->resized);
    keel_free(r);
}

int64_t keel_examples_file(const keel_examples *r, int64_t row)
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

enum { PLACE = 512 };

static const char *place_of(const keel_examples *r, int64_t row, char place[PLACE])
{
    const int64_t k = keel_examples_file(r, row), i = row - r->first[k];
    snprintf(place, PLACE, "%.400s: record %lld at byte %llu", r->file[k].in.path, (long long)i,
             (unsigned long long)r->file[k].offset[i]);
    return place;
}

keel_status keel_examples_fail(const keel_examples *r, int64_t row, keel_status s)
{
    char place[PLACE];
    return keel_fail_within(s, "%s", place_of(r, row, place));
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Of the buffer for the record. */
static int64_t record_bytes(const keel_examples *r, int64_t row)
{
    const int64_t k = keel_examples_file(r, row);
    const uint64_t *offset = r->file[k].offset + (row - r->first[k]);
    return r->file[k].in.memory ? 0 : (int64_t)(offset[1] - offset[0]);
}

/* What a field takes besides that. */
static int64_t field_bytes(const keel_examples *r, int i, const keel_feature *v)
{
    const keel_record_field *f = &r->fields.at[i];
    const unsigned char *data = NULL;
    size_t n = 0, at = 0;
    int64_t bytes = 0;
    if (v->kind == KEEL_FEATURE_MISSING || f->kind == KEEL_RECORD_TEXT) return 0;
    if (f->kind == KEEL_RECORD_NUMBERS) /* of a record in memory: no overflow */
        return v->count * (int64_t)keel_dtype_size(f->stored) + 1;
    if (v->kind != KEEL_FEATURE_BYTES || !keel_feature_bytes(v, &at, &data, &n)) return 0;
    if (f->kind == KEEL_RECORD_RAW) return f->stored == KEEL_UINT8 ? 0 : (int64_t)n + 1;
    return keel_photo_needs(&r->photo, data, n, n, &bytes) ? bytes : 0;
}

/* Note what reading a row takes, but for the conversion of images. row_at: where its fields go;
 * those with NULL are not read. */
static int64_t note_row(const keel_examples *r, int64_t row, const keel_feature *v,
                        void *const *row_at)
{
    int64_t sum = record_bytes(r, row);
    for (int i = 0; i < r->fields.n; i++)
        if (!row_at || row_at[i]) sum += field_bytes(r, i, &v[i]);
    keel_largest_note(r->largest, sum, row);
    return sum;
}

void keel_examples_note_scanned(keel_examples *r, int64_t row, const keel_feature *v)
{
    keel_largest *const largest = r->largest;
    const bool exact = r->photo.exact;
    if (exact) note_row(r, row, v, NULL);
    r->photo.exact = false;
    r->largest = r->resized;
    note_row(r, row, v, NULL);
    r->largest = largest;
    r->photo.exact = exact;
}

static keel_status no_room(const keel_examples *r, int64_t row, int64_t n_bytes)
{
    char place[PLACE];
    return keel_fail_within(KEEL_ENOMEM, "%s: reading it takes %lld bytes", place_of(r, row, place),
                            (long long)n_bytes);
}

void keel_examples_note_unscanned(keel_examples *r)
{
    int64_t fixed = 0;
    r->known = true;
    for (int i = 0; i < r->fields.n; i++) {
        const keel_record_field *f = &r->fields.at[i];
        if (f->kind == KEEL_RECORD_IMAGE)
            r->known = false;
        else
            fixed += f->count * (int64_t)keel_dtype_size(f->stored) + 1;
    }
    for (int64_t row = 0; row < keel_examples_rows(r); row++)
        keel_largest_note(r->largest, record_bytes(r, row) + fixed, row);
}

static int64_t at_least(const void *state, const keel_dtype *want)
{
    const keel_examples *r = state;
    int64_t converted = 0;
    for (int i = 0; want && i < r->fields.n; i++)
        if (r->fields.at[i].kind == KEEL_RECORD_IMAGE && want[i] != r->fields.at[i].field.dtype)
            converted += keel_photo_converted(&r->photo);
    return keel_largest_bytes(r->largest, NULL) + converted;
}

static int64_t needs(const void *state, const keel_dtype *want)
{
    return ((const keel_examples *)state)->known ? at_least(state, want) : -1;
}

static void largest(const void *state, char *text, size_t size)
{
    const keel_examples *r = state;
    char place[PLACE];
    int64_t row;
    keel_largest_bytes(r->largest, &row);
    snprintf(text, size, "%s", row < 0 ? "" : place_of(r, row, place));
}

/* ---- rows ------------------------------------------------------------------------------------ */

keel_status keel_examples_fetch(const keel_examples *r, int64_t row, keel_scratch *scratch,
                                const unsigned char **data, size_t *n)
{
    const int64_t k = keel_examples_file(r, row);
    return keel_tfrecord_read(&r->file[k], row - r->first[k], scratch, data, n);
}

keel_status keel_examples_find(const keel_examples *r, int64_t row, keel_scratch *scratch,
                               keel_feature *out)
{
    const unsigned char *data;
    size_t n;
    KEEL_TRY(keel_examples_fetch(r, row, scratch, &data, &n));
    const keel_status s = keel_example_find(out, r->feature, r->fields.n, data, n);
    return s < 0 ? keel_examples_fail(r, row, s) : s;
}

/* Say of a row that was put off what is wrong with it. */
static keel_status refuse(const keel_examples *r, int64_t row, keel_scratch *scratch)
{
    keel_feature v[KEEL_FIELDS_MAX];
    keel_status s = KEEL_OK;
    KEEL_TRY(keel_examples_find(r, row, scratch, v));
    for (int i = 0; s >= 0 && i < r->fields.n; i++) {
        keel_record_scan one = { 0 };
        if (r->fields.at[i].kind == KEEL_RECORD_IMAGE) continue;
        if ((s = keel_record_scan_begin(&one, 1)) >= 0)
            s = keel_examples_scan_value(&r->fields.at[i], &one, &v[i], scratch);
        keel_record_scan_free(&one);
    }
    if (s >= 0) s = keel_fail(KEEL_EDATA, "could not be read when the data was opened");
    return keel_examples_fail(r, row, s);
}

static keel_status read_row(const void *state, int64_t index, const keel_row *row,
                            keel_scratch *scratch)
{
    const keel_examples *r = state;
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
        if (!found) {
            const keel_status s = keel_examples_find(r, index, scratch, v);
            if (s < 0) return s == KEEL_ENOMEM ? no_room(r, index, record_bytes(r, index)) : s;
            if (!r->known) note_row(r, index, v, row->at);
        }
        found = true;
        keel_status s =
            keel_feature_put(f, &r->photo, &v[i], row->at[i], row->want[i], row->count[i], scratch);
        if (s >= 0 && f->field.role == KEEL_ROLE_WEIGHT)
            s = keel_weights_check(row->at[i], row->want[i], 1, row->count[i], index, f->part);
        if (s == KEEL_ENOMEM) return no_room(r, index, note_row(r, index, v, row->at));
        if (s < 0) return keel_examples_fail(r, index, s);
    }
    return KEEL_OK;
}

static int64_t length(const void *state, int i, int64_t index)
{
    const int64_t *splits = ((const keel_examples *)state)->fields.at[i].splits;
    return splits[index + 1] - splits[index];
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Before files whose names do not tell what they are, such as train-00000-of-01024. */
static const char prefix[] = "tfrecord:";

static bool has_prefix(const char *spec)
{
    return !strncmp(spec, prefix, sizeof prefix - 1);
}

static keel_status find_files(keel_file_list *out, const char *spec)
{
    static const char *const any[] = { "", NULL };
    return has_prefix(spec) ? keel_file_list_find(out, spec + sizeof prefix - 1, any)
                            : keel_file_list_find(out, spec, keel_tfrecord_endings);
}

static keel_status open_files(keel_examples *r, const char *spec, int64_t *n_bytes)
{
    int64_t room = KEEL_INFLATED_MAX;
    KEEL_TRY(find_files(&r->files, spec));
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
    if (!keel_examples_rows(r)) return keel_fail(KEEL_EDATA, "%s: has no records", spec);
    return KEEL_OK;
}

static bool claims(const char *spec)
{
    return has_prefix(spec) || keel_file_list_claims_shards(spec, keel_tfrecord_endings);
}

static keel_status open_records(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    keel_scratch scratch = { 0 };
    int64_t n_bytes;
    keel_examples *r = keel_calloc(1, sizeof *r);
    if (!r) return KEEL_ENOMEM;
    r->largest = keel_largest_create();
    r->resized = keel_largest_create();
    keel_status s = r->largest && r->resized ? KEEL_OK : KEEL_ENOMEM;
    if (s >= 0) s = open_files(r, spec, &n_bytes);
    if (s >= 0) s = keel_examples_choose(r, o);
    if (s >= 0) s = keel_examples_learn(r, o, n_bytes, &scratch, spec);
    keel_scratch_free(&scratch);
    if (s < 0) {
        close_records(r);
        return s;
    }
    keel_data_spec all = { .rows = keel_examples_rows(r),
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
    .help = "TFRecord files of tf.train.Example: a file, a directory of them, train-*.tfrecord; or "
            "tfrecord:train-*, with any names",
    .claims = claims,
    .open = open_records,
    .read = read_row,
    .length = length,
    .needs = needs,
    .at_least = at_least,
    .largest = largest,
    .close = close_records,
};
