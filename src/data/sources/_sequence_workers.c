/* See sequence.h. A ring of batches with memory of their own: those from `out` to `in` were given
 * to a pool. It has one more than there are threads, so that no thread waits while one is copied.
 */
#include "base/memory.h"
#include "data/pool.h"
#include "data/sources/sequence.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct entry {
    keel_task task; /* first, so that a task is its entry */
    keel_batches *of;
    char *field[KEEL_FIELDS_MAX];
    int64_t number, rows;
    keel_status status;
    bool told; /* its failure was given */
    keel_failure failure;
} entry;

struct keel_batches {
    keel_pool *pool;
    keel_get_batch *get;
    keel_batch_number *number;
    const void *state;
    int n_field;
    size_t bytes[KEEL_FIELDS_MAX]; /* of a row */
    uint64_t in, out;
    int n;
    entry at[];
};

static void run(keel_task *task, keel_scratch *scratch)
{
    entry *e = (entry *)(void *)task;
    (void)scratch;
    e->status = e->of->get(e->of->state, e->number, (void *const *)e->field, &e->rows);
    if (e->status < 0) keel_failure_take(&e->failure, e->status);
}

static int batches_of(int workers)
{
    return workers + 1;
}

static keel_status reserve(keel_batches *b, const keel_data_spec *spec)
{
    for (int i = 0; i < spec->n_field; i++) {
        size_t n;
        const size_t count = (size_t)keel_shape_count(&spec->field[i].shape);
        if (!keel_mul(count, keel_dtype_size(spec->field[i].dtype), &b->bytes[i]) ||
            !keel_mul(b->bytes[i], (size_t)spec->max_rows, &n))
            return keel_fail(KEEL_EARG, "sequence: a batch is larger than the address space");
        for (int k = 0; k < b->n; k++)
            if (!(b->at[k].field[i] = keel_aligned_calloc(1, n ? n : 1))) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

int64_t keel_batches_bytes(const keel_data_spec *spec, int workers)
{
    int64_t sum = 0, n;
    for (int i = 0; i < spec->n_field; i++)
        if (!keel_mul_i64(keel_shape_count(&spec->field[i].shape),
                          (int64_t)keel_dtype_size(spec->field[i].dtype), &n) ||
            !keel_mul_i64(n, spec->max_rows, &n) || !keel_mul_i64(n, batches_of(workers), &n) ||
            __builtin_add_overflow(sum, n, &sum))
            return INT64_MAX;
    return sum;
}

keel_status keel_batches_create(keel_batches **out, const keel_data_spec *spec, int workers,
                                keel_get_batch *get, keel_batch_number *number, const void *state)
{
    const int n = batches_of(workers);
    keel_batches *b = keel_calloc(1, sizeof *b + (size_t)n * sizeof *b->at);
    if (!b) return KEEL_ENOMEM;
    b->get = get;
    b->number = number;
    b->state = state;
    b->n_field = spec->n_field;
    b->n = n;
    for (int i = 0; i < n; i++) {
        b->at[i].of = b;
        b->at[i].task.run = run;
    }
    keel_status s = reserve(b, spec);
    if (s >= 0) s = keel_pool_create(&b->pool, workers - 1, true, NULL, NULL);
    if (s < 0) {
        keel_batches_destroy(b);
        return s;
    }
    *out = b;
    return KEEL_OK;
}

static void get_ahead(keel_batches *b, int64_t n)
{
    while (b->in < (uint64_t)n && b->in - b->out < (uint64_t)b->n) {
        entry *e = &b->at[b->in % (uint64_t)b->n];
        e->number = b->number(b->state, (int64_t)b->in++);
        e->told = false;
        keel_pool_add(b->pool, &e->task);
    }
}

keel_status keel_batches_next(keel_batches *b, int64_t n, void *const *field, int64_t *rows)
{
    get_ahead(b, n);
    if (b->in == b->out) return KEEL_END;
    entry *e = &b->at[b->out % (uint64_t)b->n];
    if (e->told) { /* get it again: the cause may have gone */
        e->told = false;
        keel_pool_add(b->pool, &e->task);
    }
    keel_pool_wait(b->pool, &e->task, NULL);
    if (e->status < 0) {
        e->told = true;
        return keel_failure_raise(&e->failure);
    }
    for (int i = 0; i < b->n_field; i++)
        if (e->rows) memcpy(field[i], e->field[i], (size_t)e->rows * b->bytes[i]);
    *rows = e->rows;
    b->out++;
    return KEEL_OK;
}

void keel_batches_rewind(keel_batches *b)
{
    for (; b->out < b->in; b->out++)
        keel_pool_wait(b->pool, &b->at[b->out % (uint64_t)b->n].task, NULL);
    b->in = b->out = 0;
}

void keel_batches_destroy(keel_batches *b)
{
    if (!b) return;
    if (b->pool) keel_batches_rewind(b);
    keel_pool_destroy(b->pool);
    for (int k = 0; k < b->n; k++)
        for (int i = 0; i < b->n_field; i++) keel_free(b->at[k].field[i]);
    keel_free(b);
}
