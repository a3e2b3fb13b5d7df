/* Batches by number, as keras.utils.Sequence: each is read once in a pass, in plain or shuffled
 * order, the short one included; by several threads if the sequence allows it. */
#include "base/memory.h"
#include "data/source.h"
#include "data/pool.h"
#include "data/sources/called.h"
#include "data/sources/sequence.h"
#include <stddef.h>
#include <string.h>

typedef struct sequence {
    keel_sequence q;
    const char *name;
    int64_t at, n; /* batches given so far, and in the whole pass */
    bool shuffled, over;
    keel_permutation order;
    int workers;
    keel_batches *batches; /* of several workers; made by the first `begin` */
    const keel_data_spec *spec;
} sequence;

static keel_status ask_length(const keel_sequence *q, const char *name, int64_t *n)
{
    const int64_t length = q->length(q->context);
    if (length < 1 || length > INT64_C(1) << 48)
        return keel_fail(KEEL_ECALLBACK,
                         "%s: length returned %lld; a sequence has at least 1 batch", name,
                         (long long)length);
    *n = length;
    return KEEL_OK;
}

static keel_status call_get(const keel_sequence *q, int64_t i, void *const *field, int64_t *rows)
{
    if (q->n_field) return q->get_fields(q->context, i, field, q->max_rows, rows);
    return q->get(q->context, i, field[0], q->has_y ? field[1] : NULL,
                  q->has_weight ? field[1 + q->has_y] : NULL, q->max_rows, rows);
}

/* The number of the k-th batch of the pass. */
static int64_t number(const void *state, int64_t k)
{
    const sequence *q = state;
    return q->shuffled ? (int64_t)keel_permutation_at(&q->order, (uint64_t)k) : k;
}

/* The number of the next batch. */
static keel_status which(sequence *q, int64_t *i)
{
    if (q->at >= q->n) {
        if (!q->over && q->q.on_epoch_end) {
            const unsigned said = keel_error_count();
            const keel_status s = q->q.on_epoch_end(q->q.context);
            if (s != KEEL_OK) return keel_callback_failed(said, s, "%s: on_epoch_end", q->name);
        }
        q->over = true;
        return KEEL_END;
    }
    *i = number(q, q->at);
    return KEEL_OK;
}

static keel_status answered(const sequence *q, unsigned said, int64_t i, keel_status s, int64_t n)
{
    if (s != KEEL_OK)
        return keel_callback_failed(said, s, "%s: get of batch %lld", q->name, (long long)i);
    if (n < 0 || n > q->q.max_rows)
        return keel_fail(KEEL_ECALLBACK, "%s: batch %lld has %lld rows, but max_rows is %lld",
                         q->name, (long long)i, (long long)n, (long long)q->q.max_rows);
    return KEEL_OK;
}

static keel_status get(const void *state, int64_t i, void *const *field, int64_t *rows)
{
    const sequence *q = state;
    int64_t n = 0;
    const unsigned said = keel_error_count();
    keel_status s = call_get(&q->q, i, field, &n);
    s = answered(q, said, i, s, n);
    if (s >= 0) *rows = n;
    return s;
}

static void rest(void *state)
{
    const sequence *q = state;
    if (q->batches) keel_batches_rewind(q->batches);
}

static keel_status begin(void *state, uint32_t pass, const keel_chance *order)
{
    (void)pass;
    sequence *q = state;
    rest(q);
    if (q->workers > 1 && !q->batches)
        KEEL_TRY(keel_batches_create(&q->batches, q->spec, q->workers, get, number, q));
    KEEL_TRY(ask_length(&q->q, q->name, &q->n));
    q->shuffled = order != NULL;
    if (order) keel_permutation_init(&q->order, (uint64_t)q->n, order);
    q->at = 0;
    q->over = false;
    return KEEL_OK;
}

static keel_status next(void *state, void *const *field, int64_t *rows)
{
    sequence *q = state;
    int64_t i = 0;
    keel_status s = which(q, &i);
    if (s != KEEL_OK) return s;
    s = q->batches ? keel_batches_next(q->batches, q->n, field, rows) : get(q, i, field, rows);
    if (s >= 0) q->at++;
    return s;
}

static keel_status next_shaped(void *state, const void **data, keel_shape *shape, int64_t *rows)
{
    sequence *q = state;
    int64_t i = 0;
    keel_status s = which(q, &i);
    if (s != KEEL_OK) return s;
    const unsigned said = keel_error_count();
    s = q->q.get_shaped(q->q.context, i, data, shape, rows);
    s = answered(q, said, i, s, *rows);
    if (s >= 0) q->at++;
    return s;
}

static int64_t keeps(const void *state)
{
    const sequence *q = state;
    return q->workers > 1 ? keel_batches_bytes(q->spec, q->workers) : 0;
}

static void close(void *state)
{
    sequence *q = state;
    keel_batches_destroy(q->batches);
    if (q->q.release) q->q.release(q->q.context);
    keel_free(q);
}

const keel_source keel_source_sequence = {
    .name = "sequence",
    .begin = begin,
    .next = next,
    .next_shaped = next_shaped,
    .rest = rest,
    .keeps = keeps,
    .close = close,
};

keel_status keel_dataset_from_sequence(keel_dataset **out, const keel_sequence *given)
{
    keel_sequence from = { 0 };
    if (!out || !given) return keel_fail(KEEL_EARG, "sequence: out and sequence must not be NULL");
    if (given->size < offsetof(keel_sequence, n_field) || given->size > sizeof from)
        return keel_fail(KEEL_EARG, "sequence: size must be sizeof(keel_sequence)");
    memcpy(&from, given, given->size);
    const char *name = from.name ? from.name : "sequence";
    const bool has_get = from.n_field ? from.get_fields || from.get_shaped : from.get != NULL;
    if (!from.length || !has_get || (from.n_field && !from.field))
        return keel_fail(KEEL_EARG, "%s: length and get%s must not be NULL", name,
                         from.n_field ? "_fields and field" : "");
    if (from.max_rows < 1 || from.rows < 0)
        return keel_fail(KEEL_EARG,
                         "%s: max_rows must be at least 1, and rows must not be negative", name);
    if (from.get_shaped && (!from.n_field || from.get_fields))
        return keel_fail(KEEL_EARG, "%s: get_shaped needs fields, and replaces get_fields", name);
    if (from.workers < -1 || from.workers > KEEL_WORKERS_MAX)
        return keel_fail(KEEL_EARG, "%s: workers are -1 to %d", name, KEEL_WORKERS_MAX);
    if (from.get_shaped && from.workers != 0 && from.workers != 1)
        return keel_fail(KEEL_EARG,
                         "%s: get_shaped is called by one thread at a time: leave workers out, or "
                         "use get_fields",
                         name);
    keel_data_spec spec = { .rows = from.rows ? from.rows : -1,
                            .max_rows = from.max_rows,
                            .shaped = from.get_shaped != NULL,
                            .by_pass = !from.on_epoch_end };
    const keel_data_field x = { .shape = from.x_shape, .dtype = from.x_dtype };
    const keel_data_field y = { .shape = from.y_shape, .dtype = from.y_dtype };
    KEEL_TRY(keel_spec_add_all(&spec, from.n_field, from.field, name));
    if (!from.n_field) keel_spec_add_xy(&spec, &x, from.has_y ? &y : NULL, from.has_weight);
    KEEL_TRY(ask_length(&from, name, &spec.yields));
    sequence *q = keel_calloc(1, sizeof *q);
    if (!q) return KEEL_ENOMEM;
    q->q = from;
    q->q.release = NULL; /* after a failure the caller still owns the context */
    KEEL_TRY(keel_dataset_create(out, &keel_source_sequence, q, &spec, name));
    q->q.release = from.release;
    q->name = (*out)->origin->name;
    q->spec = &(*out)->origin->spec;
    q->workers = from.workers < 0 ? keel_reading_threads() : from.workers;
    return KEEL_OK;
}
