/* What the parts of rows in tar shards are: first by their endings, jpg, jpeg, png an image; cls,
 * cls2, id, index, inx a whole number; txt, text, transcript, json a text; npy an array. Then by
 * the members of all rows, of which mostly the first bytes are read: lengths, texts, labels, and
 * whether all images have one size. */
#include "base/text.h"
#include "data/sources/tar.h"
#include "tensor/shape.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define IMAGES "jpg;jpeg;png"
enum { TEXT_MAX = 1 << 26 /* bytes */ };

/* ---- parts ----------------------------------------------------------------------------------- */

static bool has_part(const void *arg, const char *part)
{
    return keel_tar_rows_find(&((const keel_archive *)arg)->t, 0, part) != NULL;
}

static void list_parts(const void *arg, char *text, size_t size)
{
    const keel_archive *a = arg;
    keel_text all = { 0 };
    char shown[80];
    for (int64_t i = 0; i < a->t.rows[1].first; i++)
        keel_text_add(&all, "%s'%s'", i ? ", " : "",
                      keel_printable(shown, sizeof shown, a->t.items[i].ending));
    snprintf(text, size, "%s", all.data ? all.data : "");
    keel_text_free(&all);
}

keel_status keel_archive_choose(keel_archive *a, const keel_dataset_options *o)
{
    const keel_record_parts parts = { .what = a->t.tar[a->t.items[0].shard].in.path,
                                      .noun = "member",
                                      .x = has_part(a, IMAGES) ? IMAGES : "npy",
                                      .y = "cls",
                                      .has = has_part,
                                      .list = list_parts,
                                      .arg = a };
    return keel_records_choose(&a->fields, o, &parts);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

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

static keel_status learn_array(const keel_archive *a, keel_record_field *f, const keel_tar_item *m,
                               const keel_record_field *like, keel_scratch *scratch,
                               keel_npy_header *h)
{
    enum { HEAD = 1 << 12, LONGEST = 1 << 17 };
    const unsigned char *data;
    size_t n, header = 0;
    KEEL_TRY(keel_archive_fetch(a, m, HEAD, scratch, &data, &n));
    KEEL_TRY(keel_npy_header_size(&header, data, n));
    if (header > n) KEEL_TRY(keel_archive_fetch(a, m, LONGEST, scratch, &data, &n));
    KEEL_TRY(keel_archive_array(like, data, n, h));
    if (m->n_bytes - h->offset != h->n_bytes)
        return keel_fail(KEEL_EFORMAT, "%llu bytes of elements, but its header says %zu",
                         (unsigned long long)(m->n_bytes - h->offset), h->n_bytes);
    if (like) return KEEL_OK;
    f->stored = h->dtype;
    f->shape = h->shape;
    return KEEL_OK;
}

/* Kind, type and shape of a field, from the first row. */
static keel_status learn(const keel_archive *a, keel_record_field *f, const keel_dataset_options *o,
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

/* ---- all rows -------------------------------------------------------------------------------- */

/* True if the image gives whole numbers, by its first bytes. */
static keel_status keeps_bytes(const keel_archive *a, const keel_tar_item *m, keel_scratch *scratch,
                               bool *out)
{
    int64_t height = 0, width = 0;
    const unsigned char *data;
    size_t n;
    *out = false;
    for (int i = 0; i < 2; i++) {
        KEEL_TRY(
            keel_archive_fetch(a, m, i ? KEEL_TAR_LOOK_MORE : KEEL_TAR_LOOK, scratch, &data, &n));
        if (keel_image_size(data, n, &height, &width)) break;
        if (n == m->n_bytes) return KEEL_OK;
    }
    *out = height > 0 && width > 0 && keel_photo_keeps_bytes(&a->photo, height, width);
    return KEEL_OK;
}

keel_status keel_archive_scan_text(const keel_archive *a, const keel_record_field *f,
                                   const keel_tar_item *m, keel_record_scan *s,
                                   keel_scratch *scratch)
{
    const unsigned char *data;
    size_t n = 0;
    KEEL_TRY(keel_archive_fetch_whole(a, m, TEXT_MAX, scratch, &data, &n));
    if (f->field.role == KEEL_ROLE_TARGET) {
        while (n && isspace(data[n - 1])) n--;
        while (n && isspace(*data)) data++, n--;
    }
    return keel_record_scan_text(s, data, n);
}

static keel_status scan_item(keel_archive *a, keel_record_field *f, const keel_tar_item *m,
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
        KEEL_TRY(keel_archive_scan_text(a, f, m, s, scratch));
        break;
    case KEEL_RECORD_RAW:
        KEEL_TRY(learn_array(a, f, m, f, scratch, &h));
        n = keel_shape_count(&h.shape);
        if (f->unknown) return keel_fail(KEEL_EARG, "one-hot labels of arrays need class_count");
        break;
    default:
        if (!f->unknown) break;
        KEEL_TRY(keel_archive_fetch_whole(a, m, KEEL_TAR_NUMBER, scratch, &data, &n_bytes));
        KEEL_TRY(keel_archive_number(data, n_bytes, &number));
        keel_record_scan_label(s, &number, KEEL_INT64);
    }
    return keel_record_scan_row(s, f, n);
}

/* The row fails when it is read. */
static keel_status put_off(keel_archive *a, const keel_record_field *f, keel_record_scan *s,
                           int64_t row)
{
    if (f->unknown && f->kind == KEEL_RECORD_RAW) /* no row of it is right */
        return keel_fail(KEEL_EARG, "one-hot labels of arrays need class_count");
    KEEL_TRY(keel_record_put_off(&a->fields, row));
    return f->kind == KEEL_RECORD_IMAGE ? KEEL_OK : keel_record_scan_blank(s, f, row + 1);
}

/* All rows have all members; of most kinds only the first bytes are read. */
static keel_status scan_field(keel_archive *a, keel_record_field *f, const keel_dataset_options *o,
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

keel_status keel_archive_learn(keel_archive *a, const keel_dataset_options *o,
                               keel_scratch *scratch, const char *what)
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
    return o->unchecked ? KEEL_OK : keel_archive_note_rows(a, scratch);
}
