/* A pipeline drawn by chance begins with a source: arrays, a generator or a sequence. */
#ifndef KEEL_TESTS_RANDOM_SOURCES_H
#define KEEL_TESTS_RANDOM_SOURCES_H
#include "random_elements.h"
#include "data/source.h"

enum { DRAWN_ROWS = 40, DRAWN_WIDTH = 3, DRAWN_DEPTH = 6 };

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

#endif
