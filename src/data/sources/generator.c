/* A callback that yields batches, as a Python generator does for Keras. */
#include "base/memory.h"
#include "data/source.h"
#include "data/sources/called.h"
#include <stddef.h>
#include <string.h>

typedef struct generator {
    keel_generator g;
    bool touched, ended;
    const char *name;
} generator;

static keel_status begin(void *state, uint32_t pass, const keel_chance *order)
{
    (void)pass;
    (void)order; /* a generator cannot be shuffled */
    generator *g = state;
    if (!g->touched) return KEEL_OK;
    if (g->g.reset) {
        const unsigned said = keel_error_count();
        const keel_status s = g->g.reset(g->g.context);
        if (s != KEEL_OK) return keel_callback_failed(said, s, "%s: reset", g->name);
        g->ended = false;
    } else if (g->ended) {
        return keel_fail(KEEL_EDATA, "%s is used up and has no reset: give it one", g->name);
    }
    return KEEL_OK;
}

static keel_status call_next(const keel_generator *g, void *const *field, int64_t *rows)
{
    if (g->n_field) return g->next_fields(g->context, field, g->max_rows, rows);
    return g->next(g->context, field[0], g->has_y ? field[1] : NULL,
                   g->has_weight ? field[1 + g->has_y] : NULL, g->max_rows, rows);
}

static keel_status next(void *state, void *const *field, int64_t *rows)
{
    generator *g = state;
    if (g->ended) return KEEL_END;
    g->touched = true;
    int64_t n = 0;
    const unsigned said = keel_error_count();
    const keel_status s = call_next(&g->g, field, &n);
    if (s == KEEL_END) {
        g->ended = true;
        return KEEL_END;
    }
    if (s != KEEL_OK) return keel_callback_failed(said, s, "%s: next", g->name);
    if (n < 0 || n > g->g.max_rows)
        return keel_fail(KEEL_ECALLBACK, "%s: next returned %lld rows, but max_rows is %lld",
                         g->name, (long long)n, (long long)g->g.max_rows);
    *rows = n;
    return KEEL_OK;
}

static keel_status next_shaped(void *state, const void **data, keel_shape *shape, int64_t *rows)
{
    generator *g = state;
    if (g->ended) return KEEL_END;
    g->touched = true;
    const unsigned said = keel_error_count();
    const keel_status s = g->g.next_row(g->g.context, data, shape);
    g->ended = s == KEEL_END;
    if (s != KEEL_OK && s != KEEL_END)
        return keel_callback_failed(said, s, "%s: next_row", g->name);
    *rows = 1;
    return s;
}

static void close(void *state)
{
    generator *g = state;
    if (g->g.release) g->g.release(g->g.context);
    keel_free(g);
}

const keel_source keel_source_generator = {
    .name = "generator",
    .begin = begin,
    .next = next,
    .next_shaped = next_shaped,
    .close = close,
};

keel_status keel_dataset_from_generator(keel_dataset **out, const keel_generator *given)
{
    keel_generator from = { 0 };
    if (!out || !given)
        return keel_fail(KEEL_EARG, "generator: out and generator must not be NULL");
    if (given->size < offsetof(keel_generator, n_field) || given->size > sizeof from)
        return keel_fail(KEEL_EARG, "generator: size must be sizeof(keel_generator)");
    memcpy(&from, given, given->size);
    const char *name = from.name ? from.name : "generator";
    if (from.next_row) from.max_rows = 1;
    if (from.n_field ? (!from.next_fields && !from.next_row) || !from.field : !from.next)
        return keel_fail(KEEL_EARG, "%s: next%s is NULL", name,
                         from.n_field ? "_fields or field" : "");
    if (from.next_row && (!from.n_field || from.next_fields))
        return keel_fail(KEEL_EARG, "%s: next_row needs fields, and replaces next_fields", name);
    if (from.max_rows < 1 || from.rows < 0)
        return keel_fail(KEEL_EARG,
                         "%s: max_rows must be at least 1, and rows must not be negative", name);
    if (from.endless && from.rows)
        return keel_fail(KEEL_EARG, "%s: it cannot be endless and have %lld rows", name,
                         (long long)from.rows);
    keel_data_spec spec = {
        .rows = from.rows ? from.rows : -1,
        .max_rows = from.max_rows,
        .yields = -1,
        .one_shot = !from.reset,
        .endless = from.endless,
        .shaped = from.next_row != NULL,
        .by_row = from.next_row != NULL,
    };
    const keel_data_field x = { .shape = from.x_shape, .dtype = from.x_dtype };
    const keel_data_field y = { .shape = from.y_shape, .dtype = from.y_dtype };
    KEEL_TRY(keel_spec_add_all(&spec, from.n_field, from.field, name));
    if (!from.n_field) keel_spec_add_xy(&spec, &x, from.has_y ? &y : NULL, from.has_weight);
    generator *g = keel_calloc(1, sizeof *g);
    if (!g) return KEEL_ENOMEM;
    g->g = from;
    g->g.release = NULL; /* after a failure the caller still owns the context */
    KEEL_TRY(keel_dataset_create(out, &keel_source_generator, g, &spec, name));
    g->g.release = from.release;
    g->name = (*out)->origin->name;
    return KEEL_OK;
}
