/* Fields of rows that are records of a file: tf.train.Example, or the members of a tar archive with
 * one key. A record has named parts (features; endings), and options->inputs and targets choose
 * those that are fields. What both formats need is here: the choice, labels as classes, rows that
 * differ in length, and texts, which are held in memory since a batch points to them. */
#ifndef KEEL_DATA_RECORDS_H
#define KEEL_DATA_RECORDS_H
#include "data/labels.h"
#include "data/photo.h"

typedef enum keel_record_kind {
    KEEL_RECORD_NUMBERS, /* numbers of the type `stored` */
    KEEL_RECORD_RAW,     /* their bytes, little-endian */
    KEEL_RECORD_IMAGE,   /* a JPEG or PNG file */
    KEEL_RECORD_TEXT     /* read when the data is opened */
} keel_record_kind;

typedef struct keel_record_field {
    keel_data_field field; /* as the feed sees it; path and target are owned */
    char *part;            /* owned */
    keel_record_kind kind;
    keel_dtype stored;
    keel_shape shape; /* of a stored row; the first dim may be open */
    bool shaped;      /* rows must have this shape; else they may differ in the first dim */
    int64_t count;    /* elements of a stored row, or of one step of it if rows may differ */
    int choice;       /* targets: the index in options->targets, or 0 */
    /* Labels that are classes: their number, 0: any number is right; *unknown: as many as occur. */
    int64_t classes;
    bool one_hot, unknown;
    int64_t *splits;  /* [rows + 1] if rows differ in length: steps before each row */
    keel_tensor kept; /* texts, or labels made of them, of all rows */
} keel_record_field;

typedef struct keel_record_fields {
    int n;
    keel_record_field at[KEEL_FIELDS_MAX];
    keel_classes classes; /* the names of labels that are texts */
    /* Rows that could not be scanned, ascending: only reading them is to fail. */
    int64_t *bad;
    int64_t n_bad, bad_room;
} keel_record_fields;

void keel_record_fields_free(keel_record_fields *f);
bool keel_record_is_bad(const keel_record_fields *f, int64_t row);

/* What a format has to choose from. */
typedef struct keel_record_parts {
    const char *what;  /* the first file, for messages */
    const char *noun;  /* "feature" */
    const char *x, *y; /* the parts of the default input and target */
    bool (*has)(const void *arg, const char *part);
    void (*list)(const void *arg, char *text, size_t size); /* the names of the parts */
    const void *arg;
} keel_record_parts;

/* Choose the parts for the fields of the options, as an .npz its arrays, with roles and names.
 * KEEL_EARG, KEEL_EFORMAT: there is no such part. */
keel_status keel_records_choose(keel_record_fields *f, const keel_dataset_options *o,
                                const keel_record_parts *parts);

/* Once kind, stored type and shape of the field are known, before any scan: `count`, and whether it
 * has labels that are classes. */
void keel_record_take_labels(keel_record_field *f, const keel_dataset_options *o);

/* True if the field can only be known by reading all rows. */
bool keel_record_must_scan(const keel_record_field *f);

/* At last: the type and shape of its rows. `photo` may be NULL without images. KEEL_EDATA: a row
 * would have no element. */
keel_status keel_record_settle(keel_record_field *f, const keel_photo *photo, const char *what);

/* KEEL_EDATA: n values are no row of the field, which has room for `count`. */
keel_status keel_record_check(const keel_record_field *f, int64_t n, int64_t count);
/* Write the n numbers of a checked row to `to`: converted, padded, and checked if they are classes.
 * KEEL_EDATA: they do not fit. */
keel_status keel_record_put(const keel_record_field *f, const void *from, int64_t n, void *to,
                            keel_dtype want, int64_t count);
/* Write a row of a field that is kept. */
keel_status keel_record_put_kept(const keel_record_field *f, int64_t row, void *to, keel_dtype want,
                                 int64_t count);

/* What is learned of a field while all rows are read. */
typedef struct keel_record_scan {
    int64_t *splits; /* [rows + 1] */
    int64_t rows;    /* read so far */
    bool differ;     /* rows differ in length */
    int64_t largest; /* label */
    char *text;      /* texts one after another, each ended by a zero byte */
    size_t n_text, room;
    size_t whole; /* bytes of the texts of whole rows */
} keel_record_scan;

keel_status keel_record_scan_begin(keel_record_scan *s, int64_t rows);
/* Note the number of values of the next row, after its texts. */
keel_status keel_record_scan_row(keel_record_scan *s, const keel_record_field *f, int64_t n);
/* Instead, a row that cannot be read: it is as long as the first, with the same texts, so there is
 * no other class. The next is then row `next`. KEEL_EDATA: the first has too many texts for that.
 */
keel_status keel_record_scan_blank(keel_record_scan *s, const keel_record_field *f, int64_t next);
/* Note a row as bad; behind the last one in ascending order, or sorted at the end. */
keel_status keel_record_put_off(keel_record_fields *f, int64_t row);
void keel_record_sort_bad(keel_record_fields *f);
/* KEEL_EFORMAT: not UTF-8, or with a zero byte. */
keel_status keel_record_scan_text(keel_record_scan *s, const void *text, size_t n);
/* Note a label. */
void keel_record_scan_label(keel_record_scan *s, const void *value, keel_dtype dtype);
/* Settle the field by what was read; frees the scan, on failure too. */
keel_status keel_record_scan_end(keel_record_scan *s, keel_record_field *f,
                                 const keel_dataset_options *o, keel_classes *classes,
                                 const char *what);
void keel_record_scan_free(keel_record_scan *s);

#endif
