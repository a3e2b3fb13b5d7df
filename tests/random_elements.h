/* Chance, and the elements that a reader gives, each known by a hash. */
#ifndef KEEL_TESTS_RANDOM_ELEMENTS_H
#define KEEL_TESTS_RANDOM_ELEMENTS_H
#include "must.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* ---- chance ---------------------------------------------------------------------------------- */

typedef struct draws {
    uint64_t state;
} draws;

static inline uint64_t mixed(uint64_t a, uint64_t b)
{
    a = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9u;
    a = (a ^ a >> 27) * 0x94d049bb133111ebu;
    return a ^ a >> 31;
}

/* A number of least to most. */
static inline int64_t draw(draws *r, int64_t least, int64_t most)
{
    r->state = mixed(r->state, 1);
    return least + (int64_t)(r->state % (uint64_t)(most - least + 1));
}

static inline bool chance(draws *r, int of)
{
    return draw(r, 1, of) == 1;
}

/* ---- elements, as a reader gives them -------------------------------------------------------- */

enum { LISTED = 3000, LISTED_ROWS = 12000 };

/* Elements and the rows in them, each known by a hash. */
typedef struct listed {
    int n, rows;
    bool ended;         /* the pass has no more */
    keel_status failed; /* < 0: what stands behind the last */
    char text[512];     /* of that failure */
    struct {
        int first, rows; /* its rows; -1: it is a row, not a batch */
        uint64_t hash;
        int64_t number; /* the first of its first field */
    } at[LISTED];
    uint64_t row[LISTED_ROWS];
} listed;

/* The bytes of a value without zeros at its end, so that padding changes nothing. */
static inline uint64_t hash_value(uint64_t h, keel_dtype t, const void *data, int64_t count)
{
    const unsigned char *bytes = data;
    if (t == KEEL_STRING) {
        for (int64_t i = 0; i < count; i++) {
            const keel_string *s = (const keel_string *)data + i;
            for (int64_t k = 0; k < s->n_bytes; k++) h = mixed(h, (unsigned char)s->data[k]);
            h = mixed(h, 256);
        }
        return h;
    }
    size_t n = (size_t)count * keel_dtype_size(t);
    while (n && !bytes[n - 1]) n--;
    for (size_t i = 0; i < n; i++) h = mixed(h, bytes[i]);
    return mixed(h, n);
}

/* The hash of row k of a batch of `rows`, or of a row. */
static inline uint64_t hash_row(const keel_tensor *field, int n_field, int64_t k, int64_t rows)
{
    uint64_t h = 7;
    for (int i = 0; i < n_field; i++) {
        const int64_t each = rows ? keel_shape_count(&field[i].shape) / rows : 0;
        h = mixed(h, (uint64_t)field[i].dtype);
        h = hash_value(h, field[i].dtype,
                       (const char *)field[i].data +
                           (size_t)(k * each) * keel_dtype_size(field[i].dtype),
                       each);
    }
    return h;
}

static inline bool list_room(const listed *l, int64_t rows)
{
    return l->n < LISTED && l->rows + rows <= LISTED_ROWS;
}

/* Append an element of rows that are known by their hashes; -1: one row. */
static inline void list_add(listed *l, const uint64_t *row, int rows, int64_t number)
{
    uint64_t h = (uint64_t)(rows + 2);
    const int n = rows < 0 ? 1 : rows;
    l->at[l->n].first = l->rows;
    l->at[l->n].rows = rows;
    l->at[l->n].number = number;
    for (int i = 0; i < n; i++) {
        l->row[l->rows++] = row[i];
        h = mixed(h, row[i]);
    }
    l->at[l->n++].hash = h;
}

static inline void list_copy(listed *l, const listed *from, int i)
{
    list_add(l, from->row + from->at[i].first, from->at[i].rows, from->at[i].number);
}

/* Read up to `most` elements of `passes` passes, as if they were one. */
static inline void list_read(listed *l, const keel_dataset *d, const keel_reader_options *o,
                             int passes, int most)
{
    keel_reader *r = NULL;
    const keel_tensor *field;
    const bool batches = keel_dataset_is_batched(d);
    const int n_field = keel_dataset_field_count(d);
    l->n = l->rows = 0;
    l->ended = false;
    keel_status s = keel_reader_create(&r, d, o);
    while (s == KEEL_OK && l->n < most && passes) {
        s = keel_reader_next(r, &field);
        if (s == KEEL_END && --passes) {
            s = KEEL_OK;
            continue;
        }
        if (s != KEEL_OK) break;
        const int64_t rows = batches ? field[0].shape.dim[0] : 1;
        uint64_t row[1024];
        if (rows > 1024 || !list_room(l, rows)) break;
        for (int64_t k = 0; k < rows; k++) row[k] = hash_row(field, n_field, k, rows);
        list_add(l, row, batches ? (int)rows : -1,
                 field[0].dtype == KEEL_FLOAT32 && keel_shape_count(&field[0].shape)
                     ? (int64_t) * (const float *)field[0].data
                     : 0);
    }
    l->ended = s == KEEL_END;
    l->failed = s < 0 ? s : KEEL_OK;
    snprintf(l->text, sizeof l->text, "%s", s < 0 ? keel_error() : "");
    keel_reader_destroy(r);
}

#endif
