/* tf.data's unique: each element the first time that it comes in a pass. What was seen is kept in
 * memory, in a table of hashes whose key is of the run, so that no data can be made to collide. */
#include "base/hash.h"
#include "base/memory.h"
#include "data/iter.h"
#include "data/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    (void)s;
    for (int i = 0; i < spec->n_field; i++)
        if (keel_dtype_is_real(spec->field[i].dtype))
            return keel_fail(KEEL_EUNSUP,
                             "'%s' is %s: only whole numbers and texts are compared, as in tf.data",
                             spec->field[i].path, keel_dtype_name(spec->field[i].dtype));
    spec->rows = spec->yields = -1;
    return KEEL_OK;
}

typedef struct unique_iter {
    struct seen {
        keel_element *e; /* NULL: free */
        uint64_t hash;
    } * at; /* [size]; size is a power of two */
    uint64_t size, n;
} unique_iter;

static int64_t table_bytes(uint64_t size)
{
    return (int64_t)(size * sizeof(struct seen));
}

static void end(keel_iter *it)
{
    unique_iter *w = it->own;
    keel_account_give(it->run->account, table_bytes(w->size));
    for (uint64_t i = 0; i < w->size; i++) keel_element_release(w->at[i].e);
    keel_free(w->at);
    *w = (unique_iter){ 0 };
}

/* The hash of an element is the hash of the hashes of its fields. */
static uint64_t hash_of(const keel_iter *it, const keel_element *e)
{
    const uint64_t key[2] = { it->at.seed, KEEL_STREAM_STAGES };
    uint64_t sum = 0;
    for (int i = 0; i < e->n_field; i++) {
        const keel_string *text = e->field[i].data;
        uint64_t part[2] = { sum, 0 };
        for (int d = 0; d < e->field[i].shape.rank; d++) {
            part[1] = (uint64_t)e->field[i].shape.dim[d];
            part[0] = keel_siphash(key, part, sizeof part);
        }
        if (it->spec->field[i].dtype != KEEL_STRING) {
            part[1] = keel_siphash(key, e->field[i].data, keel_element_bytes(e, it->spec, i));
            sum = keel_siphash(key, part, sizeof part);
            continue;
        }
        for (int64_t k = 0; k < keel_shape_count(&e->field[i].shape); k++) {
            part[1] = keel_siphash(key, text[k].data, (size_t)text[k].n_bytes);
            part[0] = keel_siphash(key, part, sizeof part);
        }
        sum = part[0];
    }
    return sum;
}

static bool equal(const keel_iter *it, const keel_element *a, const keel_element *b)
{
    for (int i = 0; i < a->n_field; i++) {
        if (!keel_shape_equal(&a->field[i].shape, &b->field[i].shape)) return false;
        const size_t n = keel_element_bytes(a, it->spec, i);
        if (it->spec->field[i].dtype != KEEL_STRING) {
            if (n && memcmp(a->field[i].data, b->field[i].data, n) != 0) return false;
            continue;
        }
        const keel_string *p = a->field[i].data, *q = b->field[i].data;
        for (int64_t k = 0; k < keel_shape_count(&a->field[i].shape); k++)
            if (p[k].n_bytes != q[k].n_bytes ||
                (p[k].n_bytes && memcmp(p[k].data, q[k].data, (size_t)p[k].n_bytes) != 0))
                return false;
    }
    return true;
}

static keel_status grow(unique_iter *w, keel_account *a)
{
    const uint64_t size = w->size ? 2 * w->size : 64;
    if (4 * (w->n + 1) <= 3 * w->size) return KEEL_OK;
    if (!keel_account_take(a, table_bytes(size))) return KEEL_ENOMEM;
    struct seen *at = keel_calloc(size, sizeof *at);
    if (!at) {
        keel_account_give(a, table_bytes(size));
        return KEEL_ENOMEM;
    }
    for (uint64_t i = 0; i < w->size; i++) {
        uint64_t k = w->at[i].hash & (size - 1);
        if (!w->at[i].e) continue;
        while (at[k].e) k = (k + 1) & (size - 1);
        at[k] = w->at[i];
    }
    keel_account_give(a, table_bytes(w->size));
    keel_free(w->at);
    w->at = at;
    w->size = size;
    return KEEL_OK;
}

static keel_status next(keel_iter *it, keel_element **out)
{
    unique_iter *w = it->own;
    for (;;) {
        keel_element *e;
        KEEL_TRY(
            grow(w, it->run->account)); /* first, so that no element is lost for want of memory */
        const keel_status s = keel_iter_next(it->parent[0], &e);
        if (s != KEEL_OK) return s;
        const uint64_t hash = hash_of(it, e);
        uint64_t k = hash & (w->size - 1);
        while (w->at[k].e && (w->at[k].hash != hash || !equal(it, w->at[k].e, e)))
            k = (k + 1) & (w->size - 1);
        if (w->at[k].e) {
            keel_element_release(e);
            continue;
        }
        w->at[k] = (struct seen){ keel_element_share(e), hash };
        w->n++;
        *out = e;
        return KEEL_OK;
    }
}

const keel_stage keel_stage_unique = {
    .type = { .name = "unique",
              .module = "keel.data",
              .help = "Each element once; all fields are compared." },
    .n_parent = 1,
    .no_index = true,
    .infer = infer,
    .iter_size = sizeof(unique_iter),
    .next = next,
    .end = end,
};
