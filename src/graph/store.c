/* See store.h. */
#include "graph/store.h"
#include "base/memory.h"
#include "base/round.h"
#include "device/lanes.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int64_t align_elements(int64_t n, size_t element)
{
    return keel_round_up(n, (int64_t)(64 / element));
}

static void place(keel_store *s, keel_variable v)
{
    keel_store_weight *w = &s->weight[v];
    w->offset = s->n_master;
    s->n_master += align_elements(w->count, keel_dtype_size(s->real));
}

/* Elements of a tile: whole rows of the weight, seen as a matrix, unless a row is longer than a
 * tile. */
static int64_t tile_of(const keel_store_weight *w)
{
    const keel_shape *s = &w->info.spec.shape;
    int64_t last = s->rank > 0 ? s->dim[s->rank - 1] : 1;
    for (int d = w->info.lead; w->info.lead && d < s->rank - 1; d++) last *= s->dim[d];
    return last < KEEL_TILE ? KEEL_TILE / last * last : last;
}

int64_t keel_store_tile(const keel_store *s, keel_variable v)
{
    return tile_of(&s->weight[v]);
}

static int by_offset(const void *a, const void *b)
{
    const keel_tile *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

keel_status keel_store_tiles(const keel_store *s, const bool *trains, keel_tile **out, int *n)
{
    int64_t most = 0;
    int made = 0;
    for (int v = 0; v < s->n_weight; v++)
        if (trains[v])
            most += (s->weight[v].count + tile_of(&s->weight[v]) - 1) / tile_of(&s->weight[v]);
    if (most > INT_MAX) return keel_fail(KEEL_EUNSUP, "weights of more than %d tiles", INT_MAX);
    keel_tile *tile = keel_calloc((size_t)most, sizeof *tile);
    if (!tile) return KEEL_ENOMEM;
    for (int v = 0; v < s->n_weight; v++) {
        const keel_store_weight *w = &s->weight[v];
        for (int64_t i = 0; trains[v] && i < w->count; i += tile_of(w))
            tile[made++] = (keel_tile){
                .variable = v,
                .offset = w->offset + i,
                .count = w->count - i < tile_of(w) ? w->count - i : tile_of(w),
            };
    }
    qsort(tile, (size_t)made, sizeof *tile, by_offset);
    *out = tile;
    *n = made;
    return KEEL_OK;
}

keel_status keel_store_create(keel_store **out, keel_dtype real, const keel_weight_info *info,
                              int n, const keel_variable *order, int n_order)
{
    const size_t element = keel_dtype_size(real);
    keel_status status = KEEL_ENOMEM;
    bool *placed = NULL;
    keel_store *s = keel_calloc(1, sizeof *s);
    if (!s) return status;
    s->real = real;
    s->n_weight = n;
    s->moves = 1;
    if (!(s->weight = keel_calloc((size_t)n, sizeof *s->weight))) goto out;
    if (!(placed = keel_calloc((size_t)n, sizeof *placed))) goto out;
    for (int v = 0; v < n; v++)
        s->weight[v] =
            (keel_store_weight){ .info = info[v], .count = keel_shape_count(&info[v].spec.shape) };
    for (int i = 0; i < n_order; i++)
        if (!placed[order[i]]) {
            placed[order[i]] = true;
            place(s, order[i]);
        }
    for (int v = 0; v < n; v++)
        if (!placed[v]) place(s, v);
    if (!(s->master = keel_aligned_calloc((size_t)s->n_master, element))) goto out;
    status = KEEL_OK;
    *out = s;
    s = NULL;
out:
    keel_free(placed);
    keel_store_destroy(s);
    return status;
}

static void free_copy(struct keel_store_copy *c)
{
    if (c->copy.release) c->copy.release(c->copy.plan);
    keel_free(c->copy.data);
    keel_free(c);
}

void keel_store_destroy(keel_store *s)
{
    if (!s) return;
    for (int i = 0; i < s->n_derived; i++) free_copy(s->derived[i]);
    keel_free(s->derived);
    keel_free(s->master);
    keel_free(s->weight);
    keel_free(s);
}

void *keel_store_data(const keel_store *s, keel_variable v)
{
    return s->master + s->weight[v].offset * (int64_t)keel_dtype_size(s->real);
}

int64_t keel_store_bytes(const keel_store *s)
{
    int64_t n = s->n_master * (int64_t)keel_dtype_size(s->real);
    for (int i = 0; i < s->n_derived; i++) n += (int64_t)s->derived[i]->copy.bytes;
    return n;
}

static int64_t columns_of(const keel_store_weight *w)
{
    const keel_shape *shape = &w->info.spec.shape;
    return shape->rank > 0 ? shape->dim[shape->rank - 1] : 1;
}

/* Adds a copy to those of its weight, or takes it away. A tile must be whole groups of its rows. */
static void count_copy(keel_store *s, const struct keel_store_copy *c, int by)
{
    keel_store_weight *w = &s->weight[c->variable];
    const bool whole = c->copy.refresh_rows &&
                       (tile_of(w) >= w->count || tile_of(w) % (c->copy.rows * columns_of(w)) == 0);
    w->n_copy += by;
    if (whole) w->n_copy_by_tile += by;
}

keel_status keel_store_join(keel_store *s, uint64_t *user)
{
    if (!~s->users) return keel_fail(KEEL_EUNSUP, "more than 64 programs of one model");
    *user = ~s->users & (s->users + 1); /* the lowest free bit */
    s->users |= *user;
    return KEEL_OK;
}

void keel_store_leave(keel_store *s, uint64_t user)
{
    int kept = 0;
    s->users &= ~user;
    for (int i = 0; i < s->n_derived; i++) {
        s->derived[i]->users &= ~user;
        if (s->derived[i]->users) {
            s->derived[kept++] = s->derived[i];
            continue;
        }
        count_copy(s, s->derived[i], -1);
        free_copy(s->derived[i]);
    }
    s->n_derived = kept;
}

keel_status keel_store_derive(keel_store *s, uint64_t user, keel_variable v, keel_derived *want,
                              const keel_derived **got)
{
    struct keel_store_copy *c = NULL;
    for (int i = 0; i < s->n_derived; i++)
        if (s->derived[i]->variable == v && s->derived[i]->copy.key == want->key) {
            if (want->release) want->release(want->plan);
            s->derived[i]->users |= user;
            *got = &s->derived[i]->copy;
            return KEEL_OK;
        }
    if (s->n_derived == s->derived_capacity) {
        const int capacity = s->derived_capacity ? 2 * s->derived_capacity : 16;
        void *p = keel_grow(s->derived, (size_t)capacity, sizeof(*s->derived));
        if (!p) goto fail;
        s->derived = p;
        s->derived_capacity = capacity;
    }
    if (!(c = keel_calloc(1, sizeof *c))) goto fail;
    if (!(want->data = keel_aligned_calloc(want->bytes, 1))) goto fail;
    *c = (struct keel_store_copy){ .users = user, .variable = v, .copy = *want };
    s->derived[s->n_derived++] = c;
    count_copy(s, c, 1);
    c->copy.refresh(&c->copy, keel_store_data(s, v));
    *got = &c->copy;
    return KEEL_OK;
fail:
    if (want->release) want->release(want->plan);
    keel_free(c);
    return KEEL_ENOMEM;
}

bool keel_store_copies_by_tile(const keel_store *s, keel_variable v)
{
    const keel_store_weight *w = &s->weight[v];
    return w->n_copy > 0 && w->n_copy == w->n_copy_by_tile;
}

void keel_store_copy_tile(const keel_store *s, const keel_tile *tile)
{
    const keel_store_weight *w = &s->weight[tile->variable];
    const int64_t columns = columns_of(w);
    for (int i = 0; i < s->n_derived; i++) {
        const keel_derived *d = &s->derived[i]->copy;
        if (s->derived[i]->variable == tile->variable)
            d->refresh_rows(d, keel_store_data(s, tile->variable),
                            (tile->offset - w->offset) / columns, tile->count / columns);
    }
}

static bool is_made(const keel_store *s, int copy, const bool *made)
{
    const keel_variable v = s->derived[copy]->variable;
    return made && made[v] && keel_store_copies_by_tile(s, v);
}

bool keel_store_has_to_refresh(const keel_store *s, const bool *made)
{
    for (int i = 0; i < s->n_derived; i++)
        if (!is_made(s, i, made)) return true;
    return false;
}

void keel_store_refresh(keel_store *s, int worker, int n_worker, const bool *made)
{
    size_t bytes[KEEL_LANES_MAX] = { 0 };
    if (n_worker == 1) keel_store_moved(s);
    for (int i = 0; i < s->n_derived; i++) {
        const keel_derived *d = &s->derived[i]->copy;
        int least = 0;
        if (is_made(s, i, made)) continue;
        for (int w = 1; w < n_worker; w++)
            if (bytes[w] < bytes[least]) least = w;
        bytes[least] += d->bytes;
        if (least == worker) d->refresh(d, keel_store_data(s, s->derived[i]->variable));
    }
}
