/* Pipelines drawn by chance, each from one number: a source and up to six stages with arguments
 * that may be refused. A stage of keel is a line in `random_stages`: `put` draws its arguments, and
 * `expect` says in plain C which elements it makes of those of its parents. */
#ifndef KEEL_TESTS_RANDOM_PIPELINES_H
#define KEEL_TESTS_RANDOM_PIPELINES_H
#include "must.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "data/source.h"
#include "data/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

enum { DRAWN_ROWS = 40, DRAWN_WIDTH = 3, DRAWN_DEPTH = 6 };

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

/* ---- sources --------------------------------------------------------------------------------- */

/* Row i has the number i first, and no number is 0, so that padding can be told. */
static float drawn_x[DRAWN_ROWS][DRAWN_WIDTH], drawn_y[DRAWN_ROWS], drawn_long[DRAWN_ROWS * 4];
static int64_t drawn_splits[DRAWN_ROWS + 1];
static keel_string drawn_t[DRAWN_ROWS];
static char drawn_text[DRAWN_ROWS][16];

static inline void drawn_fill(void)
{
    for (int i = 0; i < DRAWN_ROWS; i++) {
        for (int k = 0; k < DRAWN_WIDTH; k++) drawn_x[i][k] = (float)(i + 1 + k * 100);
        drawn_y[i] = (float)(i * 7 % 5 + 1);
        const int length = i * 5 % 4 + 1;
        drawn_splits[i + 1] = drawn_splits[i] + length;
        for (int k = 0; k < length; k++) drawn_long[drawn_splits[i] + k] = (float)(i + 1 + k * 100);
        const int n = snprintf(drawn_text[i], sizeof drawn_text[i], "row %d", i);
        drawn_t[i] = (keel_string){ drawn_text[i], n };
    }
}

enum { PLAIN, TEXTS, LONG };

static inline int drawn_fields(keel_data_field *f, int kind)
{
    f[0] = (keel_data_field){ .path = "x", .dtype = KEEL_FLOAT32, .shape = { 1, { DRAWN_WIDTH } } };
    if (kind == LONG) f[0].shape.dim[0] = KEEL_DIM_OPEN;
    f[1] = (keel_data_field){ .path = "y", .dtype = KEEL_FLOAT32, .role = KEEL_ROLE_TARGET };
    f[2] = (keel_data_field){ .path = "t", .dtype = KEEL_STRING };
    return kind == TEXTS ? 3 : 2;
}

typedef struct giver { /* rows of a generator or a sequence */
    int64_t n, at, most;
    bool ragged_yields, endless;
    int kind;
} giver;

static inline void give_row(const giver *g, void *const *field, int64_t to, int64_t row)
{
    row %= DRAWN_ROWS;
    memcpy((float *)field[0] + to * DRAWN_WIDTH, drawn_x[row], sizeof drawn_x[row]);
    ((float *)field[1])[to] = drawn_y[row];
    if (g->kind == TEXTS) ((keel_string *)field[2])[to] = drawn_t[row];
}

static inline keel_status give_yield(void *context, void *const *field, int64_t capacity,
                                     int64_t *rows)
{
    giver *g = context;
    int64_t n = g->ragged_yields ? 1 + g->at * 3 % capacity : capacity;
    if (!g->endless && n > g->n - g->at) n = g->n - g->at;
    if (n <= 0) return KEEL_END;
    for (int64_t i = 0; i < n; i++) give_row(g, field, i, g->at + i);
    g->at += n;
    *rows = n;
    return KEEL_OK;
}

static inline keel_status give_one(void *context, const void **data, keel_shape *shape)
{
    giver *g = context;
    if (g->at >= g->n) return KEEL_END;
    const int64_t i = g->at++;
    data[0] = drawn_long + drawn_splits[i];
    data[1] = drawn_y + i;
    shape[0].dim[0] = drawn_splits[i + 1] - drawn_splits[i];
    return KEEL_OK;
}

static inline keel_status give_again(void *context)
{
    ((giver *)context)->at = 0;
    return KEEL_OK;
}

static inline int64_t giver_length(void *context)
{
    const giver *g = context;
    return (g->n + g->most - 1) / g->most;
}

static inline keel_status give_batch(void *context, int64_t i, void *const *field, int64_t capacity,
                                     int64_t *rows)
{
    giver *g = context;
    int64_t n = g->n - i * g->most;
    if (n > capacity) n = capacity;
    for (int64_t k = 0; k < n; k++) give_row(g, field, k, i * g->most + k);
    *rows = n;
    return KEEL_OK;
}

/* A pipeline that is being drawn. */
typedef struct drawn {
    draws r;
    keel_dataset *d, *other; /* the other parent of the last stage */
    uint64_t seed;
    int depth;     /* stages asked for so far, put or refused */
    bool one_pass; /* a callback has a state or no reset: read it once, in order */
    bool fits;     /* x and y of fixed shapes, so that a model can be trained */
    const struct random_stage *last; /* NULL: the last one was refused, or there is none */
    int64_t a, b;                    /* its arguments, for `expect` */
    char text[2000];
} drawn;

static inline void drawn_say(drawn *p, const char *format, ...)
{
    va_list args;
    const size_t n = strlen(p->text);
    va_start(args, format);
    vsnprintf(p->text + n, sizeof p->text - n, format, args);
    va_end(args);
}

static inline void drawn_arrays(drawn *p, int64_t n, int kind)
{
    keel_data_field f[3];
    keel_array_field a[3] = { 0 };
    const int n_field = drawn_fields(f, kind);
    for (int i = 0; i < n_field; i++) {
        a[i].path = f[i].path;
        a[i].role = f[i].role;
        a[i].array = (keel_tensor){ f[i].dtype, { 1, { n } }, i == 1 ? (void *)drawn_y : drawn_t };
    }
    a[0].array = (keel_tensor){ KEEL_FLOAT32, { 2, { n, DRAWN_WIDTH } }, drawn_x };
    if (kind == LONG) {
        a[0].array = (keel_tensor){ KEEL_FLOAT32, { 1, { drawn_splits[n] } }, drawn_long };
        a[0].row_splits = (keel_tensor){ KEEL_INT64, { 1, { n + 1 } }, drawn_splits };
    }
    must(keel_dataset_from_fields(&p->d, a, n_field));
    drawn_say(p, "%s %lld",
              kind == LONG    ? "long"
              : kind == TEXTS ? "texts"
                              : "arrays",
              (long long)n);
}

static inline void drawn_generator(drawn *p, int64_t n, int kind)
{
    keel_data_field f[3];
    giver *g = calloc(1, sizeof *g);
    *g = (giver){ .n = n, .most = draw(&p->r, 1, 6), .kind = kind };
    g->ragged_yields = chance(&p->r, 2);
    g->endless = kind != LONG && chance(&p->r, 6);
    const bool again = !chance(&p->r, 5);
    keel_generator how = { .size = sizeof how,
                           .context = g,
                           .max_rows = g->most,
                           .field = f,
                           .next_fields = kind == LONG ? NULL : give_yield,
                           .next_row = kind == LONG ? give_one : NULL,
                           .reset = again ? give_again : NULL,
                           .release = free };
    how.n_field = drawn_fields(f, kind);
    how.endless = g->endless;
    if (!g->endless && chance(&p->r, 3)) how.rows = n;
    must(keel_dataset_from_generator(&p->d, &how));
    p->one_pass = !again;
    drawn_say(p, "%sgenerator%s%s %lld by %lld%s%s", g->endless ? "endless " : "",
              kind == LONG    ? " long"
              : kind == TEXTS ? " texts"
                              : "",
              how.rows ? " told" : "", (long long)n, (long long)g->most,
              g->ragged_yields ? " uneven" : "", again ? "" : " once");
}

static inline void drawn_sequence(drawn *p, int64_t n)
{
    keel_data_field f[3];
    giver *g = calloc(1, sizeof *g);
    *g = (giver){ .n = n, .most = draw(&p->r, 1, 6), .kind = PLAIN };
    keel_sequence how = { .size = sizeof how,
                          .context = g,
                          .max_rows = g->most,
                          .field = f,
                          .length = giver_length,
                          .get_fields = give_batch,
                          .release = free };
    how.n_field = drawn_fields(f, PLAIN);
    must(keel_dataset_from_sequence(&p->d, &how));
    drawn_say(p, "sequence %lld by %lld", (long long)n, (long long)g->most);
}

static inline void drawn_source(drawn *p)
{
    const int64_t n = draw(&p->r, 2, DRAWN_ROWS);
    const int kind = (int)draw(&p->r, 0, 11);
    p->fits = kind != 0 && kind != 1 && kind != 2 && kind != 9;
    if (kind < 2) {
        drawn_arrays(p, n, kind ? TEXTS : LONG);
    } else if (kind < 4) {
        drawn_generator(p, n, kind == 2 ? LONG : PLAIN);
    } else if (kind < 6) {
        drawn_generator(p, n, PLAIN);
    } else if (kind == 6) {
        drawn_sequence(p, n);
    } else if (kind == 7) {
        keel_dataset *all, *rest;
        drawn_arrays(p, n, PLAIN);
        all = p->d;
        const bool first = chance(&p->r, 2);
        must(keel_dataset_split(all, 0.5, 0, &p->d, &rest));
        keel_dataset_destroy(all);
        if (!first) {
            all = p->d;
            p->d = rest;
            rest = all;
        }
        keel_dataset_destroy(rest);
        drawn_say(p, " %s half", first ? "first" : "second");
    } else if (kind == 9) {
        drawn_generator(p, n, TEXTS);
    } else {
        drawn_arrays(p, n, PLAIN);
    }
}

/* ---- stages ---------------------------------------------------------------------------------- */

typedef struct random_stage {
    const char *name;
    int weight; /* how often, among the others */
    /* Make *out of p->d and perhaps p->other; arguments that `expect` needs go to p->a and p->b. */
    keel_status (*put)(drawn *p, keel_dataset **out);
    /* What the elements of the parents become; NULL: only sameness is tested. If a parent's list
     * has not ended, neither does what it makes. */
    void (*expect)(const drawn *p, const listed *in, const listed *other, listed *out);
    bool breaks_fit; /* no model of these tests takes what comes */
} random_stage;

extern const random_stage random_stages[];

static drawn pipeline_drawn(uint64_t seed, int depth);

/* Another dataset like the one so far: the same stages on another source of the same kind, with
 * something taken off. */
static inline void drawn_other(drawn *p)
{
    drawn o = pipeline_drawn(p->seed, p->depth);
    keel_dataset *less = NULL;
    const int64_t n = draw(&p->r, 1, 9);
    if (chance(&p->r, 2) ? keel_dataset_skip(&less, o.d, n) >= 0
                         : keel_dataset_take(&less, o.d, n) >= 0) {
        keel_dataset_destroy(o.d);
        o.d = less;
    }
    keel_dataset_destroy(o.other);
    p->other = o.d;
}

static inline keel_status of_two(drawn *p, keel_dataset **out, const char *stage,
                                 const keel_arg *args)
{
    drawn_other(p);
    return keel_dataset_apply(out, stage, args, (keel_dataset *[]){ p->d, p->other }, 2);
}

/* Elements [from, to) of `in`; to -1: all. */
static inline void expect_some(const listed *in, int64_t from, int64_t to, int64_t step,
                               listed *out)
{
    for (int64_t i = from; i < in->n && (to < 0 || i < to); i += step) list_copy(out, in, (int)i);
    out->ended = in->ended || (to >= 0 && to <= in->n);
}

static inline keel_status put_take(drawn *p, keel_dataset **out)
{
    p->a = draw(&p->r, -1, 30);
    return keel_dataset_take(out, p->d, p->a);
}

static inline void expect_take(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)other;
    expect_some(in, 0, p->a, 1, out);
}

static inline keel_status put_skip(drawn *p, keel_dataset **out)
{
    p->a = chance(&p->r, 9) ? -1 : draw(&p->r, 0, 12);
    return keel_dataset_skip(out, p->d, p->a);
}

static inline void expect_skip(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)other;
    if (p->a >= 0)
        expect_some(in, p->a, -1, 1, out);
    else
        out->ended = true;
}

static inline keel_status put_shard(drawn *p, keel_dataset **out)
{
    p->a = draw(&p->r, 1, 4);
    p->b = draw(&p->r, 0, p->a - 1);
    return keel_dataset_shard(out, p->d, p->a, p->b);
}

static inline void expect_shard(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)other;
    expect_some(in, p->b, -1, p->a, out);
}

static inline keel_status put_repeat(drawn *p, keel_dataset **out)
{
    p->a = chance(&p->r, 3) ? -1 : draw(&p->r, 0, 3);
    return keel_dataset_repeat(out, p->d, p->a);
}

/* `in` has its passes one after another. */
static inline void expect_repeat(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)other;
    if (p->a) expect_some(in, 0, -1, 1, out);
    out->ended = !p->a || (p->a > 0 && in->ended);
}

static inline keel_status put_shuffle(drawn *p, keel_dataset **out)
{
    const keel_arg *seed = chance(&p->r, 3)
                               ? (const keel_arg[]){ KEEL_ARG_INT("seed", draw(&p->r, 0, 99)) }
                               : (const keel_arg[]){ { 0 } };
    const bool again = !chance(&p->r, 4);
    p->a = chance(&p->r, 2) ? 0 : draw(&p->r, 1, 12);
    if (!p->a)
        return keel_dataset_apply(
            out, "shuffle", KEEL_ARGS(KEEL_ARG_BOOL("reshuffle_each_iteration", again), *seed),
            &p->d, 1);
    return keel_dataset_apply(out, "shuffle",
                              KEEL_ARGS(KEEL_ARG_INT("buffer_size", p->a),
                                        KEEL_ARG_BOOL("reshuffle_each_iteration", again), *seed),
                              &p->d, 1);
}

static inline void expect_batches(const drawn *p, const listed *in, int64_t size, int end,
                                  listed *out)
{
    uint64_t row[64];
    int n = 0;
    (void)p;
    for (int i = 0; i < in->rows && list_room(out, size); i++) {
        row[n++] = in->row[i];
        if (n < size) continue;
        list_add(out, row, n, 0);
        n = 0;
    }
    out->ended = in->ended;
    if (!n || !in->ended || end == 1) return;
    for (int i = 0; end == 2 && n < size; i++) row[n++] = in->row[i % in->rows];
    list_add(out, row, n, 0);
}

static inline keel_status put_batch(drawn *p, keel_dataset **out)
{
    static const char *const ends[] = { "keep", "drop", "wrap", "error" };
    p->a = draw(&p->r, 1, 9);
    p->b = draw(&p->r, 0, chance(&p->r, 4) ? 3 : 2);
    return keel_dataset_apply(
        out, "batch", KEEL_ARGS(KEEL_ARG_INT("batch_size", p->a), KEEL_ARG_STR("end", ends[p->b])),
        &p->d, 1);
}

static inline void expect_batch(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)other;
    expect_batches(p, in, p->a, (int)p->b, out);
}

static inline keel_status put_rebatch(drawn *p, keel_dataset **out)
{
    p->a = draw(&p->r, 1, 9);
    p->b = draw(&p->r, 0, 1);
    return keel_dataset_apply(
        out, "rebatch",
        KEEL_ARGS(KEEL_ARG_INT("batch_size", p->a), KEEL_ARG_BOOL("drop_remainder", p->b)), &p->d,
        1);
}

static inline void expect_rebatch(const drawn *p, const listed *in, const listed *other,
                                  listed *out)
{
    (void)other;
    expect_batches(p, in, p->a, (int)p->b, out);
}

static inline keel_status put_unbatch(drawn *p, keel_dataset **out)
{
    return keel_dataset_unbatch(out, p->d);
}

static inline void expect_unbatch(const drawn *p, const listed *in, const listed *other,
                                  listed *out)
{
    (void)p;
    (void)other;
    for (int i = 0; i < in->rows && list_room(out, 1); i++) list_add(out, in->row + i, -1, 0);
    out->ended = in->ended;
}

static inline keel_status put_concatenate(drawn *p, keel_dataset **out)
{
    return of_two(p, out, "concatenate", NULL);
}

static inline void expect_concatenate(const drawn *p, const listed *in, const listed *other,
                                      listed *out)
{
    (void)p;
    for (int i = 0; i < in->n; i++) list_copy(out, in, i);
    for (int i = 0; in->ended && i < other->n && list_room(out, 64); i++) list_copy(out, other, i);
    out->ended = in->ended && other->ended;
}

static inline keel_status put_interleave(drawn *p, keel_dataset **out)
{
    p->a = draw(&p->r, 1, 4);
    return of_two(p, out, "interleave", KEEL_ARGS(KEEL_ARG_INT("block_length", p->a)));
}

static inline void expect_interleave(const drawn *p, const listed *in, const listed *other,
                                     listed *out)
{
    const listed *of[2] = { in, other };
    int at[2] = { 0, 0 };
    for (int k = 0; list_room(out, 64); k = 1 - k) {
        for (int64_t i = 0; i < p->a && at[k] < of[k]->n && list_room(out, 64); i++)
            list_copy(out, of[k], at[k]++);
        if (at[k] == of[k]->n && !of[k]->ended) return; /* what comes is not known */
        if (at[0] == in->n && at[1] == other->n) break;
    }
    out->ended = in->ended && other->ended;
}

static inline keel_status put_sample(drawn *p, keel_dataset **out)
{
    static const char *const weights[] = { "[1, 1]", "[1, 4]", "[0, 1]", "[0.2, 0.1]" };
    return of_two(p, out, "sample",
                  KEEL_ARGS(KEEL_ARG_JSON("weights", weights[draw(&p->r, 0, 3)]),
                            KEEL_ARG_BOOL("stop_on_empty_dataset", chance(&p->r, 2))));
}

static inline keel_status put_zip(drawn *p, keel_dataset **out)
{
    return of_two(p, out, "zip", NULL);
}

typedef struct drawn_map {
    int n_field;
    int64_t calls;
} drawn_map;

/* Copy all fields, and change the numbers of the first. */
static inline void map_all(const drawn_map *c, const keel_tensor *in, keel_tensor *out, float by,
                           float add)
{
    for (int i = 0; i < c->n_field; i++) {
        const int64_t n = keel_shape_count(&in[i].shape);
        memcpy(out[i].data, in[i].data, (size_t)n * keel_dtype_size(in[i].dtype));
        for (int64_t k = 0; !i && in[i].dtype == KEEL_FLOAT32 && k < n; k++) {
            float *v = (float *)out[i].data + k;
            if (*v != 0) *v = fmodf(*v * by + add, 4093) + 1;
        }
    }
}

static inline keel_status map_pure(void *context, const keel_tensor *in, keel_tensor *out,
                                   const keel_element_place *at)
{
    (void)at;
    map_all(context, in, out, 3, 5);
    return KEEL_OK;
}

static inline keel_status map_noise(void *context, const keel_tensor *in, keel_tensor *out,
                                    const keel_element_place *at)
{
    map_all(context, in, out, 1, (float)(int)(keel_element_uniform(at, 3) * 1000));
    return KEEL_OK;
}

static inline keel_status map_counts(void *context, const keel_tensor *in, keel_tensor *out,
                                     const keel_element_place *at)
{
    drawn_map *c = context;
    (void)at;
    map_all(c, in, out, 1, (float)(c->calls++ % 1000));
    return KEEL_OK;
}

static inline keel_status map_fails(void *context, const keel_tensor *in, keel_tensor *out,
                                    const keel_element_place *at)
{
    map_all(context, in, out, 1, 0);
    if (at->index * 7 % 5 == 3) {
        char text[64];
        snprintf(text, sizeof text, "element %lld is bad", (long long)at->index);
        return keel_error_set(KEEL_EDATA, text);
    }
    return KEEL_OK;
}

static inline keel_status put_function(drawn *p, keel_dataset **out, keel_map m)
{
    drawn_map *c = calloc(1, sizeof *c);
    c->n_field = keel_dataset_field_count(p->d);
    m.size = sizeof m;
    m.context = c;
    m.release = free;
    const keel_status s = keel_dataset_map(out, p->d, &m);
    if (s < 0) free(c);
    return s;
}

static inline keel_status put_map(drawn *p, keel_dataset **out)
{
    return put_function(p, out, (keel_map){ .call = map_pure });
}

static inline keel_status put_noise(drawn *p, keel_dataset **out)
{
    return put_function(p, out, (keel_map){ .call = map_noise, .random = true });
}

static inline keel_status put_in_order(drawn *p, keel_dataset **out)
{
    p->one_pass = true;
    return put_function(p, out, (keel_map){ .call = map_counts, .sequential = true });
}

/* A map that fails for some elements, and a stage that goes on. */
static inline keel_status put_errors(drawn *p, keel_dataset **out)
{
    keel_dataset *bad;
    p->a = draw(&p->r, 0, 3);
    keel_status s = put_function(p, &bad, (keel_map){ .call = map_fails, .name = "some fail" });
    if (s < 0) return s;
    if (p->a == 3) { /* nobody goes on */
        *out = bad;
        return KEEL_OK;
    }
    s = keel_dataset_apply(out, p->a ? "ignore_errors" : "substitute",
                           KEEL_ARGS(KEEL_ARG_INT("most", 100000)), &bad, 1);
    keel_dataset_destroy(bad);
    return s;
}

/* By value and place, so that an endless stream never loses all. */
static inline bool stays(int64_t number, int64_t index)
{
    return mixed((uint64_t)number, (uint64_t)index) % 4 != 1;
}

static inline keel_status filter_some(void *context, const keel_tensor *in, bool *keep,
                                      const keel_element_place *at)
{
    (void)context;
    const bool numbers = in[0].dtype == KEEL_FLOAT32 && keel_shape_count(&in[0].shape);
    *keep = stays(numbers ? (int64_t) * (const float *)in[0].data : 0, at->index);
    return KEEL_OK;
}

static inline keel_status put_filter(drawn *p, keel_dataset **out)
{
    return keel_dataset_filter(out, p->d,
                               &(keel_filter){ .size = sizeof(keel_filter), .call = filter_some });
}

static inline void expect_filter(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)p;
    (void)other;
    for (int i = 0; i < in->n; i++)
        if (stays(in->at[i].number, i)) list_copy(out, in, i);
    out->ended = in->ended;
}

static inline keel_status put_cache(drawn *p, keel_dataset **out)
{
    if (chance(&p->r, 2)) return keel_dataset_apply(out, "cache", NULL, &p->d, 1);
    return keel_dataset_apply(out, "cache", KEEL_ARGS(KEEL_ARG_INT("memory", draw(&p->r, 0, 3000))),
                              &p->d, 1);
}

static inline void expect_same(const drawn *p, const listed *in, const listed *other, listed *out)
{
    (void)p;
    (void)other;
    expect_some(in, 0, -1, 1, out);
}

static inline keel_status put_window(drawn *p, keel_dataset **out)
{
    return keel_dataset_apply(out, "window",
                              KEEL_ARGS(KEEL_ARG_INT("size", draw(&p->r, 1, 4)),
                                        KEEL_ARG_INT("shift", draw(&p->r, 1, 4)),
                                        KEEL_ARG_INT("stride", draw(&p->r, 1, 3))),
                              &p->d, 1);
}

static inline keel_status put_bucket(drawn *p, keel_dataset **out)
{
    return keel_dataset_apply(out, "bucket_by_sequence_length",
                              KEEL_ARGS(KEEL_ARG_JSON("bucket_boundaries", "[2, 4]"),
                                        KEEL_ARG_JSON("bucket_batch_sizes", "[4, 3, 2]"),
                                        KEEL_ARG_BOOL("drop_remainder", chance(&p->r, 3))),
                              &p->d, 1);
}

static inline keel_status drawn_all_stay(void *context, const keel_tensor *in, bool *keep,
                                         const keel_element_place *at)
{
    (void)context, (void)in, (void)at;
    *keep = true;
    return KEEL_OK;
}

#include "random_more_stages.h"

const random_stage random_stages[] = {
    { "take", 3, put_take, expect_take, false },
    { "skip", 2, put_skip, expect_skip, false },
    { "shard", 2, put_shard, expect_shard, false },
    { "repeat", 3, put_repeat, expect_repeat, false },
    { "shuffle", 5, put_shuffle, NULL, false },
    { "batch", 6, put_batch, expect_batch, false },
    { "rebatch", 3, put_rebatch, expect_rebatch, false },
    { "unbatch", 3, put_unbatch, expect_unbatch, false },
    { "concatenate", 2, put_concatenate, expect_concatenate, false },
    { "interleave", 2, put_interleave, expect_interleave, false },
    { "sample", 2, put_sample, NULL, false },
    { "zip", 1, put_zip, NULL, true },
    { "map", 3, put_map, NULL, false },
    { "noise", 3, put_noise, NULL, false },
    { "in_order", 1, put_in_order, NULL, false },
    { "errors", 2, put_errors, NULL, false },
    { "filter", 3, put_filter, expect_filter, false },
    { "cache", 2, put_cache, expect_same, false },
    { "window", 2, put_window, NULL, true },
    { "bucket_by_sequence_length", 2, put_bucket, NULL, false },
    MORE_RANDOM_STAGES{ NULL, 0, NULL, NULL, false },
};

static inline bool refused_without_files(const drawn *p);

static inline void drawn_stage(drawn *p)
{
    int sum = 0;
    keel_dataset *next = NULL;
    const random_stage *s = random_stages;
    for (int i = 0; random_stages[i].name; i++) sum += random_stages[i].weight;
    for (int64_t at = draw(&p->r, 1, sum); (at -= s->weight) > 0;) s++;
    keel_dataset_destroy(p->other);
    p->other = NULL;
    p->last = NULL;
    p->a = p->b = 0;
    const bool one_pass = p->one_pass;
    const keel_status made = refused_without_files(p) ? KEEL_EUNSUP : s->put(p, &next);
    if (made < 0) {
        if (!*keel_error()) fail_msg("%s | %s: refused without a word", p->text, s->name);
        p->a = p->b = 0;
        p->one_pass = one_pass;
        return;
    }
    keel_dataset_destroy(p->d);
    p->d = next;
    p->last = s;
    p->fits &= !s->breaks_fit;
    drawn_say(p, " | %s", s->name);
    if (p->a || p->b) drawn_say(p, " %lld %lld", (long long)p->a, (long long)p->b);
}

/* The first `depth` stages of a pipeline: the same for any depth up to there. */
static drawn pipeline_drawn(uint64_t seed, int depth)
{
    drawn p = { .seed = seed, .r = { mixed(seed, 77) } };
    drawn_source(&p);
    for (; p.depth < depth; p.depth++) {
        p.r.state = mixed(seed, (uint64_t)p.depth);
        drawn_stage(&p);
    }
    return p;
}

/* True if what a file made rows by number was a stream before, and the next stage refuses that: it
 * is refused here, too, or a pipeline would be another one as soon as its file is there. */
static inline bool refused_without_files(const drawn *p)
{
    const keel_applied *a = p->d->origin->applied;
    if (!a || !a->revived || !a->by_index) return false;
    const size_t n = strlen(drawn_folder);
    snprintf(drawn_folder + n, sizeof drawn_folder - n, "/none");
    mkdir(drawn_folder, 0700);
    drawn q = pipeline_drawn(p->seed, p->depth + 1);
    drawn_folder[n] = 0;
    const bool refused = !q.last;
    keel_dataset_destroy(q.d);
    keel_dataset_destroy(q.other);
    return refused;
}

static inline void pipeline_free(drawn *p)
{
    keel_dataset_destroy(p->d);
    keel_dataset_destroy(p->other);
    p->d = p->other = NULL;
}

#endif
