/* What the fields of TFRecord files are. Such files say nothing of types and shapes: those of the
 * first record hold for all. Whether rows differ in length, what texts and labels there are,
 * whether all images have one size and what reading a row takes is only known from all records.
 * They are read when the data is opened if there are few bytes, if a chosen feature has texts (a
 * batch points to them, so they are held in memory), or if rows spread over the data differ in
 * length. */
#include "base/memory.h"
#include "base/text.h"
#include "data/features.h"
#include "data/sources/tfrecord.h"
#include <stdio.h>
#include <string.h>

enum { SMALL = 64 << 20 /* bytes; reading them takes some 0.1 s */, PROBES = 64 };

/* ---- parts ----------------------------------------------------------------------------------- */

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

keel_status keel_examples_choose(keel_examples *r, const keel_dataset_options *o)
{
    keel_scratch scratch = { 0 };
    example first;
    keel_status s = keel_examples_fetch(r, 0, &scratch, &first.data, &first.n);
    const keel_record_parts parts = { .what = r->file[keel_examples_file(r, 0)].in.path,
                                      .noun = "feature",
                                      .x = "x",
                                      .y = "y",
                                      .has = has_feature,
                                      .list = list_features,
                                      .arg = &first };
    keel_feature none;
    if (s >= 0 && (s = keel_example_find(&none, NULL, 0, first.data, first.n)) < 0)
        s = keel_examples_fail(r, 0, s);
    if (s >= 0) s = keel_records_choose(&r->fields, o, &parts);
    if (s >= 0) s = keel_feature_types_check(o, has_feature, &first, parts.what);
    keel_scratch_free(&scratch);
    for (int i = 0; i < r->fields.n; i++) r->feature[i] = r->fields.at[i].part;
    return s;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* True if rows spread over the data differ in length, so that all lengths must be read. */
static keel_status probe(const keel_examples *r, bool unchecked, keel_scratch *scratch,
                         bool *differ)
{
    keel_feature v[KEEL_FIELDS_MAX];
    int64_t first[KEEL_FIELDS_MAX], n;
    const int64_t rows = keel_examples_rows(r), probes = rows < PROBES ? rows : PROBES;
    *differ = false;
    for (int64_t p = 0; p < probes && !*differ; p++) {
        const int64_t row = probes > 1 ? p * ((rows - 1) / (probes - 1)) : 0;
        const keel_status found = keel_examples_find(r, row, scratch, v);
        if (found < 0 && found != KEEL_ENOMEM && unchecked && p) continue;
        if (found < 0) return found;
        for (int i = 0; i < r->fields.n; i++) {
            const unsigned char *data;
            size_t n_bytes;
            const keel_status s = keel_feature_check(&r->fields.at[i], &v[i], &data, &n_bytes, &n);
            if (s < 0 && s != KEEL_ENOMEM && unchecked && p) continue;
            if (s < 0) return keel_examples_fail(r, row, s);
            if (p == 0) first[i] = n;
            *differ = *differ || (n != first[i] && !r->fields.at[i].shaped);
        }
    }
    return KEEL_OK;
}

keel_status keel_examples_scan_value(const keel_record_field *f, keel_record_scan *s,
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

static keel_status scan_image(keel_examples *r, const keel_record_field *f, const keel_feature *v)
{
    const unsigned char *data;
    size_t n_bytes;
    int64_t n, height = 0, width = 0;
    KEEL_TRY(keel_feature_check(f, v, &data, &n_bytes, &n));
    r->photo.exact = r->photo.exact && keel_image_size(data, n_bytes, &height, &width) &&
                     keel_photo_keeps_bytes(&r->photo, height, width);
    return KEEL_OK;
}

static keel_status scan_row(keel_examples *r, keel_record_scan *scan, int64_t row,
                            keel_scratch *scratch)
{
    keel_feature v[KEEL_FIELDS_MAX];
    KEEL_TRY(keel_examples_find(r, row, scratch, v));
    for (int i = 0; i < r->fields.n; i++) {
        const keel_record_field *f = &r->fields.at[i];
        const keel_status s = f->kind == KEEL_RECORD_IMAGE
                                  ? scan_image(r, f, &v[i])
                                  : keel_examples_scan_value(f, &scan[i], &v[i], scratch);
        if (s < 0) return keel_examples_fail(r, row, s);
    }
    keel_examples_note_scanned(r, row, v);
    return KEEL_OK;
}

/* The row fails when it is read. */
static keel_status put_off(keel_examples *r, keel_record_scan *scan, int64_t row)
{
    KEEL_TRY(keel_record_put_off(&r->fields, row));
    for (int i = 0; i < r->fields.n; i++)
        if (r->fields.at[i].kind != KEEL_RECORD_IMAGE)
            KEEL_TRY(keel_record_scan_blank(&scan[i], &r->fields.at[i], row + 1));
    return KEEL_OK;
}

static keel_status scan_all(keel_examples *r, keel_record_scan *scan, const keel_dataset_options *o,
                            keel_scratch *scratch, const char *what)
{
    const int64_t rows = keel_examples_rows(r);
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

keel_status keel_examples_learn(keel_examples *r, const keel_dataset_options *o, int64_t n_bytes,
                                keel_scratch *scratch, const char *what)
{
    keel_record_fields *f = &r->fields;
    keel_feature v[KEEL_FIELDS_MAX];
    bool scans = n_bytes <= SMALL, images = false;
    KEEL_TRY(keel_examples_find(r, 0, scratch, v));
    for (int i = 0; i < f->n; i++) {
        const keel_status s = keel_feature_learn(&f->at[i], &v[i], o);
        if (s < 0) return keel_examples_fail(r, 0, s);
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
    r->known = scans;
    if (!scans) keel_examples_note_unscanned(r);
    if (!scans || r->photo.exact) return KEEL_OK;
    keel_largest *const of_bytes = r->largest;
    r->largest = r->resized;
    r->resized = of_bytes;
    return KEEL_OK;
}
