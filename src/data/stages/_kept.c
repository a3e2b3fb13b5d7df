/* See _kept.h: opening and reading. */
#include "data/stages/_kept_impl.h"
#include "base/memory.h"
#include "data/elements.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- opening --------------------------------------------------------------------------------- */

/* Rows can be found by number in a file: see _kept.h. Of the dims of a row only the first may be
 * open, as of all rows by number. */
static bool may_index(const keel_data_spec *spec)
{
    for (int i = 0; i < spec->n_field; i++) {
        const keel_shape *s = &spec->field[i].shape;
        if (spec->field[i].dtype == KEEL_STRING) return false;
        for (int d = 1; d < s->rank; d++)
            if (s->dim[d] == KEEL_DIM_OPEN) return false;
    }
    return !spec->batched;
}

/* True if both elements have the same bytes; e and the file's row i. */
static keel_status same_row(const keel_applied *s, const keel_kept *k, int64_t i, bool *same)
{
    const keel_data_spec *spec = &s->parent[0]->origin->spec;
    keel_scratch scratch[3] = { { { 0 } } };
    keel_element *now = NULL, *then = NULL;
    const void *a = NULL, *b = NULL;
    size_t n = 0, m = 0;
    uint64_t p[KEEL_ROW_DIMS] = { 0 }, q[KEEL_ROW_DIMS] = { 0 };
    keel_status r =
        keel_element_read(&now, s->parent[0], (keel_position){ .index = i }, NULL, &scratch[0]);
    *same = true;
    if (keel_stage_may_pass(r)) r = KEEL_END; /* it was read once: the file has it */
    if (r == KEEL_OK) r = keel_row_store_read(&then, &k->file, spec, i, NULL, &scratch[0]);
    if (r == KEEL_OK) r = keel_row_store_encode(now, spec, &scratch[1], &a, &n, p);
    if (r == KEEL_OK) r = keel_row_store_encode(then, spec, &scratch[2], &b, &m, q);
    if (r == KEEL_OK) *same = n == m && !memcmp(p, q, sizeof p) && !memcmp(a, b, n);
    keel_element_release(now);
    keel_element_release(then);
    for (int t = 0; t < 3; t++) keel_scratch_free(&scratch[t]);
    return r < 0 ? r : KEEL_OK;
}

/* Three rows are made again, so that a function in C or a file of a folder that has changed is
 * noticed, which no description tells. */
static keel_status compare(const keel_applied *s, const keel_kept *k)
{
    const int64_t n = k->file.count, rows[] = { 0, n / 2, n - 1 };
    if (!s->parent[0]->origin->source->read || k->random || n < 1) return KEEL_OK;
    for (int i = 0; i < 3; i++) {
        bool same;
        KEEL_TRY(same_row(s, k, rows[i], &same));
        if (!same)
            return keel_fail(KEEL_EDATA,
                             "%s is out of date: row %lld is no longer what the pipeline makes; "
                             "remove it, or give another name",
                             k->path, (long long)rows[i]);
    }
    return KEEL_OK;
}

static keel_status open_there(keel_applied *s, keel_data_spec *spec, keel_kept *k)
{
    KEEL_TRY(keel_row_file_open(&k->file, k->path));
    KEEL_TRY(keel_row_store_check(&k->file, s->parent[0], spec));
    if (spec->rows >= 0 && spec->rows != k->file.count)
        return keel_fail(KEEL_EDATA,
                         "%s has %lld elements, and here are %lld; remove it, or give "
                         "another name",
                         k->path, (long long)k->file.count, (long long)spec->rows);
    KEEL_TRY(compare(s, k));
    atomic_store(&k->ready, true);
    if (!may_index(spec)) return KEEL_OK;
    s->by_index = true;
    spec->rows = k->file.count;
    spec->yields = -1;
    spec->max_rows = 0;
    spec->shaped = spec->by_row = spec->by_pass = false;
    return KEEL_OK;
}

/* A folder that is not there, or not to be written, is found now and not after the first pass. */
static keel_status check_folder(const char *path)
{
    const char *end = strrchr(path, '/');
    char *folder = end ? keel_strndup(path, (size_t)(end - path) + 1) : keel_strdup(".");
    if (!folder) return KEEL_ENOMEM;
    const bool good = access(folder, W_OK | X_OK) == 0;
    keel_free(folder);
    return good ? KEEL_OK
                : keel_fail(KEEL_EIO, "%s: its folder is not there, or cannot be written", path);
}

/* The name of a stage whose function has a state from pass to pass, or NULL. */
static const char *sequential(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    const char *name = NULL;
    if (s && s->stage->is_sequential && s->stage->is_sequential(s)) name = s->stage->type.name;
    for (int i = 0; s && i < s->n_parent && !name; i++) name = sequential(s->parent[i]);
    return name;
}

keel_status keel_kept_infer(keel_applied *s, keel_data_spec *spec, const char *path, bool deflate)
{
    const char *name = sequential(s->parent[0]);
    if (!*path) return keel_fail(KEEL_EARG, "the name of the file is empty");
    if (name)
        return keel_fail(KEEL_EUNSUP,
                         "the function of %s, which comes before, has a state from pass to pass: "
                         "a run that finds the file would go on differently",
                         name);
    if (spec->endless) return keel_fail(KEEL_EUNSUP, "data without end cannot be kept in a file");
    keel_kept *k = s->made = keel_calloc(1, sizeof *k);
    if (!k) return KEEL_ENOMEM;
    k->path = path;
    k->deflate = deflate;
    k->random = keel_stage_draws(s->parent[0]);
    k->file.file.fd = -1;
    pthread_mutex_init(&k->lock, NULL);
    spec->one_shot = false; /* the second pass reads the file */
    if (!may_index(spec))
        s->by_index = false;
    else
        s->revived |= !s->by_index;
    s->drawn_once |= k->random;
    if (access(path, F_OK) == 0) return open_there(s, spec, k);
    KEEL_TRY(check_folder(path));
    if (!s->by_index) return KEEL_OK;
    k->left = spec->rows;
    k->done = keel_calloc((size_t)spec->rows, sizeof *k->done);
    return k->done ? KEEL_OK : KEEL_ENOMEM;
}

void keel_kept_release(keel_applied *s)
{
    keel_kept *k = s->made;
    keel_row_writer_abort(k->writer);
    keel_row_file_close(&k->file);
    pthread_mutex_destroy(&k->lock);
    keel_free(k->done);
    keel_free(k);
}

void keel_kept_note(const keel_applied *s, char *text, size_t size)
{
    keel_kept *k = s->made;
    const int64_t all = s->parent[0]->rows;
    pthread_mutex_lock(&k->lock);
    if (atomic_load(&k->ready))
        ;
    else if (atomic_load(&k->stopped))
        snprintf(text, size, "%s was not written, and the data was read anew in each pass: %.200s",
                 k->path, k->failed.text);
    else if (k->done && k->left < all)
        snprintf(text, size,
                 "%s was not written, since %lld of %lld rows were never read: a later run reads "
                 "the data anew",
                 k->path, (long long)k->left, (long long)all);
    else if (k->given_up)
        snprintf(text, size,
                 "%s was not written, since no pass was read to its end: a later run reads the "
                 "data anew",
                 k->path);
    pthread_mutex_unlock(&k->lock);
}

/* ---- by number ------------------------------------------------------------------------------- */

/* The first pass of what comes before, wherever this stage stands. */
static keel_position first_pass(const keel_applied *s, keel_position at)
{
    keel_position there = keel_stage_into(s, 0, &at);
    there.pass = 0;
    return there;
}

/* Who reads a row without a run (to describe the data) has another seed, and writes nothing. */
static bool is_wanted(keel_kept *k, const keel_position *at, const keel_scratch *scratch)
{
    if (!scratch->trail || atomic_load(&k->stopped)) return false;
    return !atomic_load(&k->done[at->index]) || keel_kept_may_begin_anew(k, at->seed);
}

keel_status keel_kept_read(const keel_applied *s, keel_position at, const keel_row *row,
                           keel_scratch *scratch)
{
    keel_kept *k = s->made;
    keel_scratch *inner = keel_scratch_inner(scratch);
    const keel_position there = first_pass(s, at);
    keel_element *e;
    keel_status r = KEEL_OK;
    if (!inner) return KEEL_ENOMEM;
    if (atomic_load(&k->ready)) {
        KEEL_TRY(keel_row_store_read(&e, &k->file, s->spec, at.index, NULL, scratch));
    } else if (is_wanted(k, &at, scratch)) {
        KEEL_TRY(keel_element_read(&e, s->parent[0], there, NULL, inner));
        r = keel_kept_write(s, k, e, there, scratch);
    } else {
        return keel_dataset_read(s->parent[0], there, row, inner);
    }
    if (r >= 0) r = keel_elements_write(e, s->spec, row);
    keel_element_release(e);
    return r;
}

int64_t keel_kept_length(const keel_applied *s, int i, keel_position at)
{
    const keel_kept *k = s->made;
    if (atomic_load(&k->ready)) return keel_row_store_length(&k->file, s->spec, i, at.index);
    return keel_dataset_length(s->parent[0], i, first_pass(s, at));
}

int keel_kept_length_from(const keel_applied *s, int *i)
{
    (void)i;
    return atomic_load(&((const keel_kept *)s->made)->ready) ? -1 : 0;
}

/* ---- streams --------------------------------------------------------------------------------- */

static keel_status supply(keel_iter *it, keel_position *at, keel_element **in)
{
    keel_kept_iter *w = it->own;
    (void)in;
    if (w->next >= ((const keel_kept *)it->applied->made)->file.count) return KEEL_END;
    *at = it->at;
    at->index = w->next++;
    return KEEL_OK;
}

static keel_status make(keel_iter *it, keel_position at, keel_element *in, keel_element **out,
                        keel_scratch *scratch)
{
    const keel_kept *k = it->applied->made;
    (void)in;
    KEEL_TRY(keel_row_store_read(out, &k->file, it->spec, at.index, it->run->account, scratch));
    (*out)->place = (keel_spot){ .from = it->dataset, .at = at };
    return KEEL_OK;
}

keel_status keel_kept_begin(keel_iter *it)
{
    keel_kept_iter *w = it->own;
    keel_kept *k = it->applied->made;
    keel_status r = KEEL_OK;
    if (atomic_load(&k->ready)) return keel_window_create(&w->window, it, supply, make, false);
    if (atomic_load(&k->stopped) && it->parent[0]->spec->one_shot) /* it serves no second pass */
        return keel_failure_raise(&k->failed);
    KEEL_TRY(keel_iter_begin(it->parent[0], 0));
    pthread_mutex_lock(&k->lock);
    if (!k->owner && !atomic_load(&k->ready) && !atomic_load(&k->stopped)) {
        r = keel_kept_written(it->applied, k, keel_kept_open_writer(it->applied, k));
        w->writes = k->writer != NULL; /* of several that read at once, the first */
        if (w->writes) k->owner = it;
    }
    pthread_mutex_unlock(&k->lock);
    return r;
}

static void stop_writing(keel_iter *it)
{
    keel_kept_iter *w = it->own;
    keel_kept *k = it->applied->made;
    if (!w->writes) return;
    w->writes = false;
    pthread_mutex_lock(&k->lock);
    k->given_up = true;
    if (k->owner == it) keel_kept_give_up(it->applied, k);
    pthread_mutex_unlock(&k->lock);
}

static keel_status finish(keel_iter *it)
{
    keel_kept_iter *w = it->own;
    keel_kept *k = it->applied->made;
    keel_status r = KEEL_OK;
    pthread_mutex_lock(&k->lock);
    if (k->owner == it) {
        r = keel_kept_written(it->applied, k, keel_kept_commit(it->applied, k, w->next));
        k->owner = NULL;
    }
    pthread_mutex_unlock(&k->lock);
    w->writes = false;
    return r < 0 ? r : KEEL_END;
}

keel_status keel_kept_next(keel_iter *it, keel_element **out)
{
    keel_kept_iter *w = it->own;
    keel_position at = it->at;
    keel_status s = KEEL_OK;
    if (w->window) return keel_window_next(w->window, out);
    if (!w->in) s = keel_iter_next(it->parent[0], &w->in);
    if (s == KEEL_END && w->writes) return finish(it);
    if (s != KEEL_OK) return s;
    at.index = w->next;
    if (w->writes) s = keel_kept_write(it->applied, it->applied->made, w->in, at, &w->scratch);
    if (s < 0) { /* asked again, it goes on without the file */
        stop_writing(it);
        return s;
    }
    w->next++;
    *out = w->in;
    w->in = NULL;
    return KEEL_OK;
}

/* A pass without an element that failed is not all of the data: it is not kept. */
void keel_kept_pass(keel_iter *it)
{
    keel_kept_iter *w = it->own;
    if (w->window) {
        keel_window_pass(w->window);
        return;
    }
    stop_writing(it);
    keel_iter_pass(it->parent[0]);
}

void keel_kept_end(keel_iter *it)
{
    keel_kept_iter *w = it->own;
    stop_writing(it);
    keel_window_destroy(w->window);
    keel_scratch_free(&w->scratch);
    keel_element_release(w->in);
    *w = (keel_kept_iter){ 0 };
}
