/* The least memory with which data can be read, without a model: keel_dataset_least_memory. */
#include "data/feed.h"
#include "data/feed_impl.h"
#include "tensor/dtype.h"
#include <string.h>

/* The source whose largest row takes most. */
static void find_largest(const keel_dataset *d, int64_t *most, keel_dataset_memory *out)
{
    const keel_applied *s = d->origin->applied;
    const keel_source *source = d->origin->source;
    for (int i = 0; s && i < s->n_parent; i++) find_largest(s->parent[i], most, out);
    if (s || !source->largest) return;
    int64_t n = source->needs ? source->needs(d->origin->state, NULL) : -1;
    if (n < 0 && source->at_least) n = source->at_least(d->origin->state, NULL);
    if (n <= *most) return;
    *most = n;
    source->largest(d->origin->state, out->row, sizeof out->row);
}

keel_status keel_dataset_least_memory(keel_dataset_memory *out, const keel_dataset *d,
                                      int64_t batch_size)
{
    keel_dtype want[KEEL_FIELDS_MAX];
    keel_dataset_memory m = { 0 };
    int64_t most = 0;
    if (!out || !d || batch_size < 0 || batch_size > INT32_MAX)
        return keel_fail(KEEL_EARG,
                         "least memory: out and dataset must not be NULL, and "
                         "batch_size must be 0 to %d",
                         INT32_MAX);
    const keel_data_spec *spec = &d->origin->spec;
    for (int i = 0; i < spec->n_field; i++) {
        const keel_data_field *f = &spec->field[i];
        const bool stays =
            f->dtype == KEEL_STRING ||
            (f->role == KEEL_ROLE_INPUT ? f->dtype == KEEL_UINT8 : !keel_dtype_is_real(f->dtype));
        want[i] = stays ? f->dtype : KEEL_FLOAT32;
    }
    const bool rows = (d->origin->source->read || spec->by_row) && !spec->batched;
    const keel_feed_options o = { .real = KEEL_FLOAT32,
                                  .want = want,
                                  .batch_size = batch_size ? batch_size
                                                : rows     ? 32
                                                           : 0,
                                  .epochs = 1 };
    KEEL_TRY(keel_feed_least(&m.n_bytes, &m.row_bytes, d, &o));
    m.known = !keel_feed_unknown(d);
    find_largest(d, &most, &m);
    *out = m;
    return KEEL_OK;
}
