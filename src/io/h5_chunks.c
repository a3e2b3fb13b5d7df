/* Rows of HDF5 arrays; see h5_data.h.
 *
 * A chunk is read and decoded outside of any lock, once for all threads that want it at that time,
 * and stays in the cache until the room is needed for others: the one used longest ago goes first.
 * In order, each chunk is decoded once in a pass; shuffled rows of an array larger than the cache
 * decode a chunk for nearly every row, which only smaller chunks can help. */
#include "base/memory.h"
#include "io/h5_data.h"
#include "tensor/shape.h"
#include <pthread.h>
#include <string.h>
#include <zlib.h>

enum { SLOTS = 4096, INFLATE = 8 << 10 /* zlib 1.2 takes so much without a window */ };
#define CACHE_BYTES ((size_t)256 << 20)

typedef struct slot {
    const keel_h5_array *array; /* NULL: it stands for no chunk */
    int64_t chunk;
    char *data;
    size_t n_bytes;
    int users;
    bool ready, failed, charged; /* charged: its bytes are taken from the account */
    uint64_t used;               /* the time of its last use */
} slot;

struct keel_h5_cache {
    pthread_mutex_t lock;
    pthread_cond_t decoded;
    keel_account *account; /* NULL: none */
    size_t n_bytes;
    uint64_t time;
    int n;
    slot slots[SLOTS];
};

keel_status keel_h5_cache_create(keel_h5_cache **out)
{
    keel_h5_cache *c = keel_calloc(1, sizeof *c);
    if (!c) return KEEL_ENOMEM;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->decoded, NULL);
    *out = c;
    return KEEL_OK;
}

void keel_h5_cache_destroy(keel_h5_cache *c)
{
    if (!c) return;
    for (int i = 0; i < c->n; i++) keel_free(c->slots[i].data);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->decoded);
    keel_free(c);
}

/* ---- filters --------------------------------------------------------------------------------- */

static keel_status bad(const keel_h5_data *d, size_t i, int64_t chunk, const char *what)
{
    return keel_fail(KEEL_EFORMAT, "%s: '%s', chunk %lld: %s", d->file.path,
                     keel_h5_data_name(d, i), (long long)chunk, what);
}

/* The sums of 16-bit words that HDF5 takes, big-endian words first. */
static uint32_t fletcher32(const unsigned char *p, size_t n_bytes)
{
    uint32_t a = 0, b = 0;
    size_t n = n_bytes / 2;
    while (n) {
        size_t run = n > 360 ? 360 : n;
        n -= run;
        for (; run; run--, p += 2) {
            a += (uint32_t)p[0] << 8 | p[1];
            b += a;
        }
        a = (a & 0xFFFF) + (a >> 16);
        b = (b & 0xFFFF) + (b >> 16);
    }
    if (n_bytes % 2) {
        a += (uint32_t)*p << 8;
        b += a;
        a = (a & 0xFFFF) + (a >> 16);
        b = (b & 0xFFFF) + (b >> 16);
    }
    a = (a & 0xFFFF) + (a >> 16);
    b = (b & 0xFFFF) + (b >> 16);
    return b << 16 | a;
}

static bool check_sum(const unsigned char *p, size_t *n_bytes)
{
    if (*n_bytes < 4) return false;
    *n_bytes -= 4;
    const unsigned char *s = p + *n_bytes;
    const uint32_t stored =
        s[0] | (uint32_t)s[1] << 8 | (uint32_t)s[2] << 16 | (uint32_t)s[3] << 24;
    return stored == fletcher32(p, *n_bytes);
}

static bool expand(unsigned char *out, size_t *n_out, const unsigned char *in, size_t n_in)
{
    z_stream z = { .next_in = (Bytef *)in, .avail_in = (uInt)n_in };
    if (inflateInit(&z) != Z_OK) return false;
    z.next_out = out;
    z.avail_out = (uInt)*n_out;
    const int r = inflate(&z, Z_FINISH);
    *n_out = z.total_out;
    inflateEnd(&z);
    return r == Z_STREAM_END;
}

/* All first bytes of the elements, then all second ones, and so on. */
static void unshuffle(unsigned char *out, const unsigned char *in, size_t n_bytes, size_t size)
{
    const size_t count = n_bytes / size;
    for (size_t k = 0; k < size; k++)
        for (size_t i = 0; i < count; i++) out[i * size + k] = in[k * count + i];
    memcpy(out + count * size, in + count * size, n_bytes - count * size);
}

/* zlib has no allocator of ours, so its memory is taken while it works. */
static keel_status inflate_chunk(const keel_h5_data *d, size_t i, int64_t chunk, unsigned char *out,
                                 size_t *n_out, const unsigned char *in, size_t n_in,
                                 keel_account *a)
{
    if (!keel_account_take(a, INFLATE)) return KEEL_ENOMEM;
    const bool good = expand(out, n_out, in, n_in);
    keel_account_give(a, INFLATE);
    return good ? KEEL_OK : bad(d, i, chunk, "its compressed bytes are damaged");
}

/* Undo the filters: `bytes`, n of them, become out [a->chunk_bytes]; both are used for what stands
 * between. `bytes` has room for as much as out, and 4 bytes. */
static keel_status decode(const keel_h5_data *d, size_t i, int64_t chunk, unsigned char *bytes,
                          size_t n, unsigned char *out, keel_account *account)
{
    const keel_h5_array *a = &d->arrays[i];
    const keel_h5_chunk *c = &a->chunks[chunk];
    unsigned char *from = bytes, *to = out;
    const size_t room = a->chunk_bytes + 4; /* a checksum below a compression */
    for (int f = a->n_filters - 1; f >= 0; f--) {
        if (c->left_out >> f & 1) continue;
        if (a->filter[f] == KEEL_H5_FLETCHER32) {
            if (!check_sum(from, &n)) return bad(d, i, chunk, "its checksum is wrong");
            continue;
        }
        if (a->filter[f] == KEEL_H5_DEFLATE) {
            size_t n_out = room;
            KEEL_TRY(inflate_chunk(d, i, chunk, to, &n_out, from, n, account));
            n = n_out;
        } else {
            if (n > room) return bad(d, i, chunk, "it has more bytes than its array says");
            unshuffle(to, from, n, a->type.element_bytes);
        }
        unsigned char *other = from;
        from = to;
        to = other;
    }
    if (n != a->chunk_bytes) return bad(d, i, chunk, "it has other bytes than its array says");
    if (from != out) memcpy(out, from, n);
    return KEEL_OK;
}

/* Read and decode a chunk to out, which has room for it and 4 bytes. */
static keel_status load(const keel_h5_data *d, size_t i, int64_t chunk, unsigned char *out,
                        keel_scratch *s)
{
    const keel_h5_array *a = &d->arrays[i];
    if (!a->chunked) { /* a block of contiguous rows, of which the last may be short */
        const size_t all = (size_t)keel_shape_count(&a->shape) * a->type.element_bytes;
        const size_t at = (size_t)chunk * a->chunk_bytes, rest = all - at;
        return keel_file_read_at(&d->file, a->at + at, out,
                                 rest < a->chunk_bytes ? rest : a->chunk_bytes);
    }
    const keel_h5_chunk *c = &a->chunks[chunk];
    if (!c->at) return bad(d, i, chunk, "it was never written; write all rows of the array");
    if (!a->n_filters) return keel_file_read_at(&d->file, c->at, out, a->chunk_bytes);
    const size_t room = a->chunk_bytes + 4 > c->n_bytes ? a->chunk_bytes + 4 : c->n_bytes;
    unsigned char *bytes = keel_scratch_reserve(s, 0, room);
    if (!bytes) return KEEL_ENOMEM;
    KEEL_TRY(keel_file_read_at(&d->file, c->at, bytes, c->n_bytes));
    return decode(d, i, chunk, bytes, c->n_bytes, out, s->account);
}

/* ---- the cache ------------------------------------------------------------------------------- */

static void forget(slot *s)
{
    if (s->array) s->array->slot[s->chunk] = 0;
    s->array = NULL;
}

/* With the lock held: take n bytes from the account, if it has more than what rows need. */
static bool take_bytes(const keel_h5_cache *c, size_t n)
{
    keel_account *a = c->account;
    if (c->n_bytes + n > CACHE_BYTES) return false;
    return !a ||
           (keel_account_room(a) - a->reserve >= (int64_t)n && keel_account_try(a, (int64_t)n));
}

static void give_bytes(keel_h5_cache *c, slot *s)
{
    if (s->charged) keel_account_give(c->account, (int64_t)s->n_bytes);
    s->charged = false;
}

static void free_data(keel_h5_cache *c, slot *s)
{
    c->n_bytes -= s->n_bytes;
    keel_free(s->data);
    s->data = NULL;
    s->used = 0;
    give_bytes(c, s);
}

/* With the lock held: a slot of n bytes that nobody uses and that stands for no chunk; NULL: there
 * is none. */
static slot *make_room(keel_h5_cache *c, size_t n)
{
    for (;;) {
        slot *oldest = NULL, *empty = c->n < SLOTS ? &c->slots[c->n] : NULL;
        for (int i = 0; i < c->n; i++) {
            slot *s = &c->slots[i];
            if (!s->data)
                empty = s;
            else if (!s->users && (!oldest || s->used < oldest->used))
                oldest = s;
        }
        if (empty && take_bytes(c, n)) {
            if (!(empty->data = keel_calloc(n, 1))) {
                keel_account_give(c->account, (int64_t)n);
                return NULL;
            }
            empty->n_bytes = n;
            empty->charged = c->account != NULL;
            c->n_bytes += n;
            if (empty == &c->slots[c->n]) c->n++;
            return empty;
        }
        if (!oldest) return NULL;
        forget(oldest);
        if (oldest->n_bytes == n && (oldest->charged || !c->account)) return oldest;
        free_data(c, oldest);
    }
}

/* What the cache has is let go at the begin and at the end of a run, so that no bytes stand for
 * two. Chunks that are in use just then, by a run with another account, are not counted. */
void keel_h5_data_charge(const keel_h5_data *d, keel_account *a, bool on)
{
    keel_h5_cache *c = d->cache;
    pthread_mutex_lock(&c->lock);
    if (on ? !c->account : c->account == a) {
        for (int i = 0; i < c->n; i++) {
            slot *s = &c->slots[i];
            if (s->users) {
                give_bytes(c, s);
            } else if (s->data) {
                forget(s);
                free_data(c, s);
            }
        }
        c->account = on ? a : NULL;
    }
    pthread_mutex_unlock(&c->lock);
}

void keel_h5_data_needs(const keel_h5_data *d, size_t i, int64_t *stored, int64_t *decoded)
{
    const keel_h5_array *a = &d->arrays[i];
    *stored = *decoded = a->n_chunks ? (int64_t)a->chunk_bytes + 4 : 0;
    if (!a->chunked || !a->n_filters) *stored = 0;
    for (int64_t k = 0; *stored && k < a->n_chunks; k++)
        if ((int64_t)a->chunks[k].n_bytes > *stored) *stored = (int64_t)a->chunks[k].n_bytes;
    if (*stored) *stored += INFLATE;
}

/* Decode a chunk to a new slot, in which it has one user. NULL: there is no room or it failed. */
static slot *fill_slot(const keel_h5_data *d, size_t i, int64_t chunk, keel_scratch *scratch)
{
    keel_h5_cache *c = d->cache;
    const keel_h5_array *a = &d->arrays[i];
    slot *s = make_room(c, a->chunk_bytes + 4);
    if (!s) return NULL;
    s->array = a;
    s->chunk = chunk;
    s->users = 1;
    s->ready = s->failed = false;
    a->slot[chunk] = (int32_t)(s - c->slots) + 1;
    pthread_mutex_unlock(&c->lock);
    const keel_status r = load(d, i, chunk, (unsigned char *)s->data, scratch);
    pthread_mutex_lock(&c->lock);
    s->ready = r >= 0;
    s->failed = r < 0;
    pthread_cond_broadcast(&c->decoded);
    if (r >= 0) return s;
    forget(s);
    s->users--;
    return NULL;
}

/* A decoded chunk. *in: its slot, for `release`; NULL: it is in the scratch. */
static keel_status take(const keel_h5_data *d, size_t i, int64_t chunk, keel_scratch *scratch,
                        const char **data, slot **in)
{
    keel_h5_cache *c = d->cache;
    const keel_h5_array *a = &d->arrays[i];
    pthread_mutex_lock(&c->lock);
    slot *s = a->slot[chunk] ? &c->slots[a->slot[chunk] - 1] : NULL;
    if (s) {
        s->users++;
        while (!s->ready && !s->failed) pthread_cond_wait(&c->decoded, &c->lock);
        if (s->failed) {
            s->users--;
            s = NULL;
        }
    } else {
        s = fill_slot(d, i, chunk, scratch);
    }
    if (s) s->used = ++c->time;
    pthread_mutex_unlock(&c->lock);
    *in = s;
    *data = s ? s->data : NULL;
    if (s) return KEEL_OK;
    char *own = keel_scratch_reserve(scratch, 1, a->chunk_bytes + 4);
    if (!own) return KEEL_ENOMEM;
    *data = own;
    return load(d, i, chunk, (unsigned char *)own, scratch);
}

static void release(const keel_h5_data *d, slot *s)
{
    if (!s) return;
    pthread_mutex_lock(&d->cache->lock);
    s->users--;
    pthread_mutex_unlock(&d->cache->lock);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Copy the part of a row that lies in the chunk at `place` of the grid. */
static void copy_part(const keel_h5_array *a, const int64_t *place, int64_t row, const char *chunk,
                      char *out)
{
    const int rank = a->shape.rank, last = rank - 1;
    const size_t size = a->type.element_bytes;
    int64_t at[KEEL_RANK_MAX] = { 0 }, n[KEEL_RANK_MAX] = { 1 };
    for (int k = 1; k < rank; k++) {
        const int64_t left = a->shape.dim[k] - place[k] * a->chunk[k];
        n[k] = left < a->chunk[k] ? left : a->chunk[k];
    }
    const size_t line = rank > 1 ? (size_t)n[last] * size : size;
    for (;;) {
        size_t from = (size_t)(row % a->chunk[0]), to = 0;
        for (int k = 1; k < rank; k++) {
            from = from * (size_t)a->chunk[k] + (size_t)at[k];
            to = to * (size_t)a->shape.dim[k] + (size_t)(place[k] * a->chunk[k] + at[k]);
        }
        memcpy(out + to * size, chunk + from * size, line);
        int k = last - 1;
        for (; k > 0 && ++at[k] == n[k]; k--) at[k] = 0;
        if (k < 1) return;
    }
}

keel_status keel_h5_data_row(const keel_h5_data *d, size_t i, int64_t row, void *out,
                             keel_scratch *s)
{
    const keel_h5_array *a = &d->arrays[i];
    const int rank = a->shape.rank;
    if (!a->n_chunks) {
        const size_t n =
            (size_t)(keel_shape_count(&a->shape) / a->shape.dim[0]) * a->type.element_bytes;
        return keel_file_read_at(&d->file, a->at + (uint64_t)row * n, out, n);
    }
    int64_t place[KEEL_RANK_MAX] = { row / a->chunk[0] };
    for (;;) {
        int64_t index = 0;
        const char *chunk = NULL;
        slot *in = NULL;
        for (int k = 0; k < rank; k++) index = index * a->grid[k] + place[k];
        KEEL_TRY(take(d, i, index, s, &chunk, &in));
        copy_part(a, place, row, chunk, out);
        release(d, in);
        int k = rank - 1;
        for (; k > 0 && ++place[k] == a->grid[k]; k--) place[k] = 0;
        if (k < 1) return KEEL_OK;
    }
}
