/* A callback that yields batches, as a Python generator does for Keras. */
#include "base/memory.h"
#include "data/source.h"
#include "tensor/shape.h"

typedef struct generator {
    keel_generator g;
    bool touched, ended;
    const char *name;
} generator;

static keel_status begin(void *state, uint32_t pass, const keel_chance *order)
{
    (void)pass;
    (void)order; /* a generator's order is its own */
    generator *g = state;
    if (!g->touched) return KEEL_OK;
    if (g->g.reset) {
        const keel_status s = g->g.reset(g->g.context);
        if (s != KEEL_OK)
            return keel_fail(KEEL_ECALLBACK, "%s: reset answered %s", g->name, keel_status_name(s));
        g->ended = false;
    } else if (g->ended) {
        return keel_fail(KEEL_EDATA, "%s is used up and has no reset: give it one", g->name);
    }
    return KEEL_OK;
}

static keel_status next(void *state, void *x, void *y, float *weight, int64_t *rows)
{
    generator *g = state;
    if (g->ended) return KEEL_END;
    g->touched = true;
    int64_t n = 0;
    const keel_status s = g->g.next(g->g.context, x, y, weight, g->g.max_rows, &n);
    if (s == KEEL_END) {
        g->ended = true;
        return KEEL_END;
    }
    if (s != KEEL_OK)
        return keel_fail(KEEL_ECALLBACK, "%s: next answered %s", g->name, keel_status_name(s));
    if (n < 0 || n > g->g.max_rows)
        return keel_fail(KEEL_ECALLBACK, "%s: next says %lld rows, but there is room for %lld",
                         g->name, (long long)n, (long long)g->g.max_rows);
    *rows = n;
    return KEEL_OK;
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
    .close = close,
};

keel_status keel_dataset_from_generator(keel_dataset **out, const keel_generator *from)
{
    if (!out || !from) return keel_fail(KEEL_EARG, "generator: NULL is none");
    if (from->size != sizeof *from)
        return keel_fail(KEEL_EARG, "generator: size must be sizeof(keel_generator)");
    const char *name = from->name ? from->name : "generator";
    if (!from->next) return keel_fail(KEEL_EARG, "%s: next is NULL", name);
    if (from->max_rows < 1 || from->rows < 0)
        return keel_fail(KEEL_EARG, "%s: max_rows must be at least 1 and rows not negative", name);
    if (from->endless && from->rows)
        return keel_fail(KEEL_EARG, "%s: it cannot be endless and have %lld rows", name,
                         (long long)from->rows);
    keel_data_spec spec = {
        .x = from->x_shape,
        .y = from->y_shape,
        .x_dtype = from->x_dtype,
        .y_dtype = from->y_dtype,
        .has_y = from->has_y,
        .has_weight = from->has_weight,
        .rows = from->rows ? from->rows : -1,
        .max_rows = from->max_rows,
        .yields = -1,
        .one_shot = !from->reset,
        .endless = from->endless,
    };
    generator *g = keel_calloc(1, sizeof *g);
    if (!g) return KEEL_ENOMEM;
    g->g = *from;
    g->g.release = NULL; /* a failed call leaves the context the caller's */
    KEEL_TRY(keel_dataset_create(out, &keel_source_generator, g, &spec, name));
    g->g.release = from->release;
    g->name = (*out)->origin->name;
    return KEEL_OK;
}
