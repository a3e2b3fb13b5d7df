/* A row that cannot be read is replaced by the next one that can, up to `most` different rows; so
 * batches keep their size, and every other row keeps its place. Which row stands for which depends
 * on the data alone. */
#include "base/memory.h"
#include "data/stage.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct substitute_args {
    int64_t most;
} substitute_args;

enum { TRIES = 16 };

typedef struct bad_rows {
    pthread_mutex_t lock;
    int64_t n;
    int64_t *index; /* [n], in the order in which they were met */
    keel_failure first;
} bad_rows;

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    if (!s->by_index || spec->batched)
        return keel_fail(KEEL_EUNSUP, "only rows that are read by number can be substituted: put "
                                      "it before filters and batches, or use ignore_errors");
    if (keel_spec_is_open(spec)) /* the length of a row is asked for before the row is read */
        return keel_fail(KEEL_EUNSUP, "rows that differ in length cannot be substituted: use "
                                      "ignore_errors");
    bad_rows *b = s->made = keel_calloc(1, sizeof *b);
    if (!b) return KEEL_ENOMEM;
    pthread_mutex_init(&b->lock, NULL);
    b->index = keel_calloc((size_t)((const substitute_args *)s->args)->most, sizeof *b->index);
    return b->index ? KEEL_OK : KEEL_ENOMEM;
}

static void release(keel_applied *s)
{
    bad_rows *b = s->made;
    pthread_mutex_destroy(&b->lock);
    keel_free(b->index);
    keel_free(b);
}

/* Count a row that failed, once. KEEL_EDATA: it is one too many. */
static keel_status note_row(const keel_applied *s, int64_t index, keel_status failed)
{
    const int64_t most = ((const substitute_args *)s->args)->most;
    bad_rows *b = s->made;
    bool known = false, room = true;
    pthread_mutex_lock(&b->lock);
    for (int64_t i = 0; i < b->n && !known; i++) known = b->index[i] == index;
    if (!known && (room = b->n < most)) {
        if (!b->n) keel_failure_take(&b->first, failed);
        b->index[b->n++] = index;
    }
    pthread_mutex_unlock(&b->lock);
    if (room) return KEEL_OK;
    return keel_fail_within(failed, "substitute: the failure after %lld rows that were substituted",
                            (long long)most);
}

static keel_status read(const keel_applied *s, keel_position at, const keel_row *row,
                        keel_scratch *scratch)
{
    keel_scratch *inner = keel_scratch_inner(scratch);
    const int64_t n = s->parent[0]->rows;
    keel_position there = keel_stage_into(s, 0, &at);
    if (!inner) return KEEL_ENOMEM;
    for (int i = 0;; i++) {
        const keel_status got = keel_dataset_read(s->parent[0], there, row, inner);
        if (got >= 0 || !keel_stage_may_pass(got)) return got;
        KEEL_TRY(note_row(s, there.index, got));
        if (i + 1 == TRIES || i + 1 >= n)
            return keel_fail_within(got, "substitute: %d rows in succession failed", i + 1);
        there.index = (there.index + 1) % n;
    }
}

static void note(const keel_applied *s, char *text, size_t size)
{
    bad_rows *b = s->made;
    pthread_mutex_lock(&b->lock);
    if (b->n)
        snprintf(text, size,
                 "%s: %lld rows could not be read and others stand for them, the "
                 "first (%lld) because: %.100s",
                 keel_dataset_name(s->parent[0]), (long long)b->n, (long long)b->index[0],
                 b->first.text);
    pthread_mutex_unlock(&b->lock);
}

#define T substitute_args
static const keel_field fields[] = {
    KEEL_INT(T, most, NULL, 1, 1e6, "different rows that may be substituted; one more fails"),
    { .key = NULL },
};

const keel_stage keel_stage_substitute = {
    .type = { .name = "substitute",
              .module = "keel.data",
              .help = "The next row that can be read in place of one that cannot.",
              .args_size = sizeof(substitute_args),
              .fields = fields },
    .n_parent = 1,
    .infer = infer,
    .read = read,
    .note = note,
    .release = release,
};
