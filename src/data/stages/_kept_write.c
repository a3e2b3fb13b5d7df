/* Writing what cache and snapshot keep in a file; see _kept.h. */
#include "data/stages/_kept_impl.h"
#include "base/memory.h"
#include <stdlib.h>
#include <unistd.h>

keel_status keel_kept_open_writer(const keel_applied *s, keel_kept *k)
{
    if (k->writer) return KEEL_OK;
    return keel_row_writer_create(&k->writer, k->path, keel_row_store_dims(s->spec));
}

/* A file that appeared meanwhile is that of another run: it is read if it is the same, and never
 * overwritten. */
static keel_status open_written(const keel_applied *s, keel_kept *k, const keel_data_spec *spec,
                                int64_t count)
{
    KEEL_TRY(keel_row_file_open(&k->file, k->path));
    KEEL_TRY(keel_row_store_check(&k->file, s->parent[0], spec));
    if (k->file.count == count) return KEEL_OK;
    return keel_fail(KEEL_EDATA, "%s has %lld elements, and here are %lld", k->path,
                     (long long)k->file.count, (long long)count);
}

/* All `count` elements are written: the file is read from now on. */
keel_status keel_kept_commit(const keel_applied *s, keel_kept *k, int64_t count)
{
    keel_data_spec spec = keel_stage_spec(s->parent[0]);
    char *head = keel_row_store_head(s->parent[0], &spec);
    if (!head) return KEEL_ENOMEM;
    keel_row_writer *w = k->writer;
    k->writer = NULL;
    keel_status r = KEEL_OK;
    const bool there = access(k->path, F_OK) == 0;
    if (there)
        keel_row_writer_abort(w);
    else
        r = keel_row_writer_commit(w, count, head);
    if (there && k->random) /* its rows may be others, and those of this run must stay */
        r = keel_fail(KEEL_EDATA, "another run, which drew for itself, was done first");
    free(head);
    if (r >= 0 && (r = open_written(s, k, &spec, count)) < 0) keel_row_file_close(&k->file);
    if (r >= 0) atomic_store(&k->ready, true);
    return r;
}

/* What was written is given up; the next one to write begins anew. */
void keel_kept_give_up(const keel_applied *s, keel_kept *k)
{
    keel_row_writer_abort(k->writer);
    k->writer = NULL;
    k->owner = NULL;
    if (!k->done) return;
    k->left = s->parent[0]->rows;
    for (int64_t i = 0; i < k->left; i++) atomic_store(&k->done[i], false);
}

/* The elements are there also where the file cannot be written, so the run goes on without it.
 * Returns the failures that end it. */
keel_status keel_kept_written(const keel_applied *s, keel_kept *k, keel_status r)
{
    if (r >= 0) return r;
    keel_kept_give_up(s, k);
    if (r == KEEL_ENOMEM) return r;
    keel_failure_take(&k->failed, r);
    atomic_store(&k->stopped, true);
    return KEEL_OK;
}

/* Rows of two runs that draw other random numbers do not go into one file: the later run begins
 * anew, some times, since two at once would never end. */
bool keel_kept_may_begin_anew(keel_kept *k, uint64_t seed)
{
    enum { ANEW = 8 };
    return k->random && atomic_load(&k->seed) != seed && atomic_load(&k->begun_anew) < ANEW;
}

static bool may_write(const keel_applied *s, keel_kept *k, uint64_t seed)
{
    if (!k->random || atomic_load(&k->seed) == seed) return true;
    if (!keel_kept_may_begin_anew(k, seed)) return false;
    if (k->writer) {
        atomic_fetch_add(&k->begun_anew, 1);
        keel_kept_give_up(s, k);
    }
    atomic_store(&k->seed, seed);
    return true;
}

/* Write element `at`; scratch buffers 0 and 1 are used. */
keel_status keel_kept_write(const keel_applied *s, keel_kept *k, const keel_element *e,
                            keel_position at, keel_scratch *scratch)
{
    const int64_t row = at.index;
    const keel_data_spec *spec = s->spec;
    uint64_t dims[KEEL_ROW_DIMS];
    keel_row_packed packed;
    const void *data;
    size_t n;
    KEEL_TRY(keel_row_store_encode(e, spec, scratch, &data, &n, dims));
    KEEL_TRY(keel_row_pack(&packed, data, n, k->deflate, scratch));
    pthread_mutex_lock(&k->lock);
    keel_status r = KEEL_OK;
    if (atomic_load(&k->stopped)) {
        ; /* another thread has met it first */
    } else if (!k->done) {
        r = keel_row_writer_add(k->writer, row, &packed, dims);
    } else if (!atomic_load(&k->ready) && may_write(s, k, at.seed) && !atomic_load(&k->done[row])) {
        r = keel_kept_open_writer(s, k);
        if (r >= 0) r = keel_row_writer_add(k->writer, row, &packed, dims);
        if (r >= 0) {
            atomic_store(&k->done[row], true);
            k->left--;
        }
        if (r >= 0 && !k->left) r = keel_kept_commit(s, k, s->parent[0]->rows);
    }
    r = keel_kept_written(s, k, r);
    pthread_mutex_unlock(&k->lock);
    return r;
}
