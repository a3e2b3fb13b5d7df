/* Stages of layers on rows in memory, for tests: making them, and reading them whole. */
#ifndef LAYER_STAGES_H
#define LAYER_STAGES_H
#include "data/stage.h"
#include "must.h"
#include "tensor/dtype.h"
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 4 };

/* ---- data ------------------------------------------------------------------------------------ */

static const char *const words[] = { "a", "b", "zz", "", "b a", "A. c" };

/* As in make_layer_stages.py: number k is (37 k + 11) % 101. */
static void *numbers_of(keel_dtype t, int64_t n)
{
    char *data = calloc((size_t)n + 1, 16);
    for (int64_t k = 0; k < n; k++) {
        const int64_t v = (k * 37 + 11) % 101;
        const keel_string text = { words[k % 6], (int64_t)strlen(words[k % 6]) };
        if (t == KEEL_FLOAT32) ((float *)data)[k] = (float)v / 101;
        if (t == KEEL_UINT8) ((uint8_t *)data)[k] = (uint8_t)v;
        if (t == KEEL_INT64) ((int64_t *)data)[k] = v;
        if (t == KEEL_STRING) ((keel_string *)data)[k] = text;
    }
    return data;
}

typedef struct source {
    keel_dataset *d;
    void *x, *y;
} source;

/* Rows of x, and of y: one of CLASSES as a number or as CLASSES numbers. */
static keel_status open_source(source *s, keel_dtype t, const keel_shape *row, int64_t n,
                               bool encoded)
{
    keel_tensor x = { t, { row->rank + 1, { n } }, NULL };
    keel_tensor y = { encoded ? KEEL_FLOAT32 : KEEL_INT64,
                      { encoded ? 2 : 1, { n, CLASSES } },
                      NULL };
    memcpy(x.shape.dim + 1, row->dim, (size_t)row->rank * sizeof *row->dim);
    int64_t count = n;
    for (int d = 0; d < row->rank; d++) count *= row->dim[d];
    s->x = x.data = numbers_of(t, count);
    s->y = y.data = calloc((size_t)(n * CLASSES), sizeof(int64_t));
    for (int64_t i = 0; i < n; i++)
        if (encoded)
            ((float *)y.data)[i * CLASSES + i % CLASSES] = 1;
        else
            ((int64_t *)y.data)[i] = i % CLASSES;
    return keel_dataset_from_arrays(&s->d, &x, &y, NULL);
}

static void close_source(source *s)
{
    keel_dataset_destroy(s->d);
    free(s->x);
    free(s->y);
}

static keel_status all_stay(void *context, const keel_tensor *in, bool *keep,
                            const keel_element_place *at)
{
    (void)context;
    (void)in;
    (void)at;
    *keep = true;
    return KEEL_OK;
}

static void put(keel_dataset **d, keel_dataset *next)
{
    keel_dataset_destroy(*d);
    *d = next;
}

/* Puts a stage with its arguments as JSON on *d. */
static keel_status apply(keel_dataset **d, const char *name, const char *args)
{
    keel_dataset *next = NULL;
    json_t *config = json_loads(args && *args ? args : "{}", 0, NULL);
    if (!config) return keel_fail(KEEL_ENOMEM, "out of memory");
    const keel_stage *stage = keel_stage_find(name);
    const keel_status s = stage ? keel_stage_apply(&next, stage, config, d, 1)
                                : keel_fail(KEEL_EARG, "no stage '%s'", name);
    json_decref(config);
    if (s >= 0) put(d, next);
    return s;
}

static void stream_of(keel_dataset **d)
{
    keel_dataset *next;
    must(keel_dataset_filter(&next, *d,
                             &(keel_filter){ .size = sizeof(keel_filter), .call = all_stay }));
    put(d, next);
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct bytes {
    char *at;
    size_t n, first[128]; /* where elements begin */
    int elements;
} bytes;

static void add_tensor(bytes *b, const keel_tensor *t)
{
    size_t n = keel_dtype_size(t->dtype);
    for (int d = 0; d < t->shape.rank; d++) n *= (size_t)t->shape.dim[d];
    b->at = realloc(b->at, b->n + n + 1);
    if (n) memcpy(b->at + b->n, t->data, n);
    b->n += n;
}

/* All elements of a pass from `index` on. */
static bytes read_all(const keel_dataset *d, uint64_t pass, int64_t index, int threads)
{
    keel_reader *r;
    const keel_tensor *x;
    bytes b = { 0 };
    const keel_reader_options o = { KEEL_READER_OPTIONS.size, 7, pass, index, threads, 0 };
    keel_status s;
    must(keel_reader_create(&r, d, &o));
    while ((s = keel_reader_next(r, &x)) == KEEL_OK) {
        assert_true(b.elements < 128);
        b.first[b.elements++] = b.n;
        for (int i = 0; i < keel_dataset_field_count(d); i++) add_tensor(&b, &x[i]);
    }
    must(s);
    keel_reader_destroy(r);
    return b;
}

static void same_bytes(const char *what, const bytes *got, const bytes *want, size_t from)
{
    if (got->n != want->n - from || memcmp(got->at, want->at + from, got->n))
        fail_msg("%s: other bits", what);
}

#endif
