/* Files of tables and texts: opened or refused, and their fields read whole. */
#ifndef TESTS_TABLE_FILES_H
#define TESTS_TABLE_FILES_H
#include "data_files.h"
#include "base/memory.h"
#include "data/feed.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT(list) (sizeof list / sizeof *list)
#define LIST(...)   ((const char *const[]){ __VA_ARGS__ })

static char notes[4096]; /* of the last dataset that was opened with options() */

static inline void note(void *context, const char *line)
{
    (void)context;
    const size_t n = strlen(notes);
    snprintf(notes + n, sizeof notes - n, "%s%s", n ? "\n" : "", line);
}

/* Whose notes come into `notes`. */
static inline keel_dataset_options options(void)
{
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.note = note;
    *notes = 0;
    return o;
}

static inline keel_dataset *opened(const char *name, const keel_dataset_options *o)
{
    keel_dataset *d = NULL;
    if (keel_dataset_open(&d, files_path(name), o) < 0) fail_msg("%s", keel_error());
    return d;
}

static inline void refused(const char *name, const keel_dataset_options *o, keel_status status,
                           const char *says)
{
    keel_dataset *d = NULL;
    const int64_t live = keel_memory_live();
    const keel_status s = keel_dataset_open(&d, files_path(name), o);
    if (s != status || !strstr(keel_error(), says))
        fail_msg("status %d, \"%s\" where \"%s\" was to be said", s, s < 0 ? keel_error() : "",
                 says);
    assert_null(d);
    assert_int_equal(keel_memory_live(), live);
}

/* Field i of all rows, as float64 in `out` or as texts in `texts`; the number of elements. */
static inline int64_t read_field(const keel_dataset *d, int i, double *out, char *texts,
                                 size_t size)
{
    keel_dtype types[KEEL_FIELDS_MAX];
    keel_data_field f;
    assert_int_equal(keel_dataset_field(d, i, &f), KEEL_OK);
    for (int k = 0; k < KEEL_FIELDS_MAX; k++) types[k] = texts ? KEEL_STRING : KEEL_FLOAT64;
    const keel_feed_options o = { .want = types,
                                  .unwanted = ~(UINT64_C(1) << i),
                                  .batch_size = keel_dataset_rows(d) };
    keel_feed *feed = NULL;
    keel_batch b;
    if (keel_feed_create(&feed, d, &o) < 0) fail_msg("%s", keel_error());
    assert_int_equal(keel_feed_begin_epoch(feed, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(feed, &b), KEEL_OK);
    int64_t n = b.rows;
    for (int k = 0; k < f.shape.rank; k++) n *= f.shape.dim[k];
    if (out) memcpy(out, b.field[i], (size_t)n * sizeof *out);
    size_t used = 0;
    for (int64_t k = 0; texts && k < n; k++) {
        const keel_string *s = (const keel_string *)b.field[i] + k;
        used += (size_t)snprintf(texts + used, size - used, "%s%.*s", k ? "|" : "", (int)s->n_bytes,
                                 s->data);
    }
    keel_feed_release(feed, &b);
    keel_feed_destroy(feed);
    return n;
}

static inline void check_field(const keel_dataset *d, int i, keel_dtype dtype, const double *want,
                               int64_t n)
{
    double got[256];
    keel_data_field f;
    assert_int_equal(keel_dataset_field(d, i, &f), KEEL_OK);
    assert_int_equal(f.dtype, dtype);
    assert_int_equal(read_field(d, i, got, NULL, 0), n);
    for (int64_t k = 0; k < n; k++)
        if (got[k] != want[k])
            fail_msg("%s[%lld] is %.17g, not %.17g", f.path, (long long)k, got[k], want[k]);
}

static inline void check_texts(const keel_dataset *d, int i, const char *want)
{
    char got[1024];
    read_field(d, i, NULL, got, sizeof got);
    assert_string_equal(got, want);
}

#endif
