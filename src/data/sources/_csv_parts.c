/* Reads a long CSV in parts, by several threads.
 *
 * Part k has the records that begin in bytes [k * n, (k + 1) * n) of the file. Where its first one
 * begins is guessed: behind the first line end before which the file has an even number of quotes.
 * A thread reads the bytes of a part, counts its quotes and line ends, takes its turn to learn
 * those of all parts before it, and then parses. Parts are joined in their order, each if it begins
 * where the one before it has ended; so every guess is checked. Where one was wrong (a quote inside
 * a value is a character), or a record is too long to look at without knowing that it is one, the
 * threads stop, and the caller's reader goes on from there. */
#include "base/clones.h"
#include "base/memory.h"
#include "data/pool.h"
#include "data/sources/csv.h"
#include "io/text_file.h"
#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum {
    LOOK = 1 << 12,      /* bytes behind a part that are read with it: the end of its last record */
    LOOK_MOST = 1 << 20, /* as many are read if it does not end there */
    EACH = 2, /* parts for each thread: one that is parsed, one that waits to be joined */
};

#define NOWHERE UINT64_MAX

typedef struct part { /* the place of one; it keeps its memory and its words for others */
    int64_t k;
    keel_csv_reader r; /* its names and uses are the whole's */
    char *text;
    size_t room, n_bytes; /* of text, without the KEEL_TEXT_PAD zero bytes behind it */
    uint64_t first;       /* the byte of the file that text begins with */
    uint64_t low, high;   /* its bytes in the file */
    uint64_t begin, end;  /* of its records; NOWHERE: none begins in it */
    enum { FREE, TAKEN, READ } is;
    bool given_up;
    keel_failure failure;
} part;

typedef struct parts {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    keel_csv_reader *whole;
    const keel_file *file;
    uint64_t from;                         /* where the first part begins */
    int64_t n_part, next, counted, joined; /* guarded by lock, as all that follows */
    bool odd;                              /* quotes, and the line, where the next part that is */
    int64_t line;                          /* counted begins */
    bool joining, stop;
    uint64_t place;     /* where the next record begins, and its line: known from joined parts; */
    int64_t place_line; /* of the thread that joins, as the next one */
    keel_failure failure;
    int n;
    part *at; /* [n] */
} parts;

/* ---- the text of a part -----------------------------------------------------------------------
 */

typedef struct counts {
    bool odd, zero; /* an odd number of quotes; a zero byte */
    int64_t lines;
} counts;

/* LANES bytes are compared at once, and each counts in a byte, which holds BLOCKS. */
enum { LANES = 64, BLOCKS = 255 };

typedef uint8_t lanes __attribute__((vector_size(LANES), aligned(1), may_alias));

static int64_t sum(const lanes *v)
{
    int64_t n = 0;
    for (int i = 0; i < LANES; i++) n += (*v)[i];
    return n;
}

KEEL_CLONES static counts count(const char *text, size_t n)
{
    counts c = { 0 };
    int64_t quotes = 0;
    size_t i = 0;
    while (n - i >= LANES) {
        const size_t left = (n - i) / LANES, blocks = left < BLOCKS ? left : BLOCKS;
        lanes lines_here = { 0 }, quotes_here = { 0 }, zero = { 0 };
        for (size_t k = 0; k < blocks; k++, i += LANES) {
            const lanes v = *(const lanes *)(const void *)(text + i);
            lines_here -= (lanes)(v == '\n'); /* true is -1 */
            quotes_here -= (lanes)(v == '"');
            zero |= (lanes)(v == 0);
        }
        c.lines += sum(&lines_here);
        quotes += sum(&quotes_here);
        c.zero |= sum(&zero) > 0;
    }
    for (; i < n; i++) {
        c.lines += text[i] == '\n';
        quotes += text[i] == '"';
        c.zero |= !text[i];
    }
    c.odd = quotes & 1;
    return c;
}

static keel_status check_text(const parts *all, bool zero)
{
    return zero ? keel_fail(KEEL_EFORMAT, "%s: not a text file", all->file->path) : KEEL_OK;
}

/* Read the file from p->first up to `end`, unchecked; what text has of it stays. */
static keel_status read_bytes(const parts *all, part *p, uint64_t end)
{
    const size_t n = (size_t)(end - p->first);
    if (n > p->room) {
        char *more = keel_grow(p->text, n + KEEL_TEXT_PAD, 1);
        if (!more) return KEEL_ENOMEM;
        p->text = more;
        p->room = n;
    }
    KEEL_TRY(
        keel_file_read_at(all->file, p->first + p->n_bytes, p->text + p->n_bytes, n - p->n_bytes));
    p->n_bytes = n;
    memset(p->text + n, 0, KEEL_TEXT_PAD);
    return KEEL_OK;
}

static keel_status read_to(const parts *all, part *p, uint64_t end)
{
    const size_t before = p->n_bytes;
    KEEL_TRY(read_bytes(all, p, end));
    return check_text(all, memchr(p->text + before, 0, p->n_bytes - before));
}

static uint64_t no_more_than(uint64_t n, uint64_t most)
{
    return n < most ? n : most;
}

static keel_status read_text(const parts *all, part *p, int64_t k, counts *c)
{
    const uint64_t size = all->whole->part_bytes, end = all->file->n_bytes;
    const uint64_t number = all->from / size + (uint64_t)k;
    p->low = k ? number * size : all->from;
    p->high = no_more_than((number + 1) * size, end);
    p->first = p->low - (k > 0); /* whether a line ends before it */
    p->n_bytes = 0;
    *c = (counts){ 0 };
    KEEL_TRY(read_bytes(all, p, no_more_than(p->high + LOOK, end)));
    *c = count(p->text + (p->low - p->first), (size_t)(p->high - p->low));
    const size_t counted = (size_t)(p->high - p->first); /* of the rest zeros are still to find */
    const bool zero = c->zero || (k && !*p->text);
    return check_text(all, zero || memchr(p->text + counted, 0, p->n_bytes - counted));
}

/* Wait for the parts before this one, and tell the ones behind it. */
static void take_turn(parts *all, int64_t k, const counts *c, bool *odd, int64_t *line)
{
    pthread_mutex_lock(&all->lock);
    while (all->counted != k) pthread_cond_wait(&all->changed, &all->lock);
    *odd = all->odd;
    *line = all->line;
    all->odd ^= c->odd;
    all->line += c->lines;
    all->counted++;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

/* Where the first record of a part begins that is not the file's first one; NULL: none does. */
static char *find_record(const part *p, bool odd, int64_t *line)
{
    char *at = p->text, *const high = at + (p->high - p->first);
    if (*at == '\n' && !odd) return at + 1;
    for (at++; at + 1 < high; at++) {
        odd ^= *at == '"';
        if (*at != '\n') continue;
        ++*line;
        if (!odd) return at + 1;
    }
    return NULL;
}

/* ---- the rows of a part -----------------------------------------------------------------------
 */

/* Add the records that are at hand; false: the last one may go on behind the text. */
static keel_status add_records(part *p, bool last, bool *done)
{
    keel_csv *c = &p->r.cut;
    keel_status s;
    while ((s = keel_csv_next(c)) == KEEL_OK) KEEL_TRY(keel_csv_add_row(&p->r));
    *done = c->at >= c->until || last;
    return s < 0 ? s : KEEL_OK;
}

static keel_status parse(const parts *all, part *p, char *begin, int64_t line)
{
    keel_csv *c = &p->r.cut;
    const uint64_t end = all->file->n_bytes;
    size_t at = (size_t)(begin - p->text);
    keel_csv_begin(c, all->whole->cut.path, all->whole->cut.separator);
    c->n_columns = all->whole->n_columns;
    c->next_line = line;
    for (bool done = false; !done;) {
        const uint64_t behind = p->first + p->n_bytes;
        keel_csv_give(c, p->text + at, p->n_bytes - at, behind == end);
        c->until = p->text + (p->high - p->first);
        p->r.end = p->text + p->n_bytes + KEEL_TEXT_PAD;
        KEEL_TRY(add_records(p, behind == end, &done));
        at = (size_t)(c->at - p->text);
        if (done) break;
        p->given_up = behind - p->high >= LOOK_MOST;
        if (p->given_up) return KEEL_OK;
        KEEL_TRY(read_to(all, p, no_more_than(p->high + 8 * (behind - p->high), end)));
    }
    p->end = p->first + at;
    return KEEL_OK;
}

/* What is read of a part is used only if all before it was, so that no failure is told too soon. */
static void read_part(parts *all, part *p, int64_t k)
{
    counts c;
    bool odd;
    int64_t line;
    p->given_up = false;
    p->begin = p->end = NOWHERE;
    p->failure.status = KEEL_OK;
    keel_status s = read_text(all, p, k, &c);
    if (s < 0) keel_failure_take(&p->failure, s);
    take_turn(all, k, &c, &odd, &line);
    if (s < 0) return;
    char *begin = k ? find_record(p, odd, &line) : p->text;
    if (!begin) return;
    p->begin = p->first + (uint64_t)(begin - p->text);
    if ((s = parse(all, p, begin, line)) < 0) keel_failure_take(&p->failure, s);
}

/* ---- joining ----------------------------------------------------------------------------------
 */

/* A table that is as large from the begin has its memory in huge pages, which moving it would break
 * up. The rows behind the first part are taken to be as long as its rows. */
static void expect_rows(const parts *all, const part *p)
{
    keel_table *t = &all->whole->table;
    const double each = (double)(p->end - p->begin) / (double)(p->r.table.n_rows + 1);
    const double rows = 1.02 * (double)(all->file->n_bytes - p->begin) / each;
    if (rows < (double)INT32_MAX) keel_table_expect(t, t->n_rows + (int64_t)rows);
}

/* Of the part that is next in order. Only one thread is here at a time; others read. False: it was
 * guessed wrong, or has failed, and no other one is joined. */
static bool join(parts *all, part *p)
{
    const bool none = p->begin == NOWHERE;
    if (none && p->failure.status >= 0 && all->place >= p->high) return true; /* inside a record */
    if (p->given_up || (none ? p->failure.status >= 0 : p->begin != all->place)) return false;
    all->failure = p->failure;
    if (none) return false;
    if (!all->joined) expect_rows(all, p);
    const keel_status s = keel_table_join(&all->whole->table, &p->r.table);
    if (s < 0) keel_failure_take(&all->failure, s);
    all->place = p->end;
    all->place_line = p->r.cut.next_line;
    return all->failure.status >= 0;
}

/* With the lock held. The place of part k, if it was read; or of no part, with any k. */
static part *find(const parts *all, int is, int64_t k)
{
    for (int i = 0; i < all->n; i++)
        if ((int)all->at[i].is == is && (is == FREE || all->at[i].k == k)) return &all->at[i];
    return NULL;
}

/* With the lock held, which is released while a part is joined. */
static void join_in_order(parts *all)
{
    if (all->joining) return;
    all->joining = true;
    while (!all->stop && all->joined < all->next) {
        part *p = find(all, READ, all->joined);
        if (!p) break;
        pthread_mutex_unlock(&all->lock);
        const bool joined = join(all, p);
        pthread_mutex_lock(&all->lock);
        all->stop = !joined;
        p->is = FREE;
        all->joined++;
        pthread_cond_broadcast(&all->changed);
    }
    all->joining = false;
}

typedef struct worker {
    keel_task task; /* first, so that a task is its worker */
    parts *all;
} worker;

/* A part that is waited for is being read, by a thread that has it. */
static void work(keel_task *task, struct keel_scratch *scratch)
{
    parts *all = ((worker *)(void *)task)->all;
    part *p = NULL;
    (void)scratch;
    pthread_mutex_lock(&all->lock);
    while (!all->stop && all->next < all->n_part) {
        if (!p || p->is != FREE) p = find(all, FREE, 0); /* the last one is in this core's cache */
        if (!p) {
            pthread_cond_wait(&all->changed, &all->lock);
            continue;
        }
        const int64_t k = p->k = all->next++;
        p->is = TAKEN;
        pthread_mutex_unlock(&all->lock);
        read_part(all, p, k);
        pthread_mutex_lock(&all->lock);
        p->is = READ;
        join_in_order(all);
    }
    pthread_mutex_unlock(&all->lock);
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static keel_status begin_parts(parts *all)
{
    if (!(all->at = keel_calloc((size_t)all->n, sizeof *all->at))) return KEEL_ENOMEM;
    for (int i = 0; i < all->n; i++) {
        keel_csv_reader *r = &all->at[i].r;
        *r = *all->whole;
        r->cut = (keel_csv){ 0 };
        r->table = (keel_table){ 0 };
    }
    for (int i = 0; i < all->n; i++)
        KEEL_TRY(keel_table_begin_parts(&all->at[i].r.table, &all->whole->table));
    return KEEL_OK;
}

static void free_parts(parts *all)
{
    for (int i = 0; all->at && i < all->n; i++) {
        keel_table_free(&all->at[i].r.table);
        keel_csv_free(&all->at[i].r.cut);
        keel_free(all->at[i].text);
    }
    keel_free(all->at);
}

static keel_status run(parts *all, int n_threads)
{
    keel_pool *pool = NULL;
    worker *w = keel_calloc((size_t)n_threads, sizeof *w);
    if (!w) return KEEL_ENOMEM;
    const keel_status s = keel_pool_create(&pool, n_threads - 1, true, NULL, NULL);
    for (int i = 0; s >= 0 && i < n_threads; i++) {
        w[i] = (worker){ .task.run = work, .all = all };
        keel_pool_add(pool, &w[i].task);
    }
    for (int i = 0; s >= 0 && i < n_threads; i++) keel_pool_wait(pool, &w[i].task, NULL);
    keel_pool_destroy(pool);
    keel_free(w);
    return s;
}

keel_status keel_csv_read_parts(keel_csv_reader *r, const keel_file *file, uint64_t *place,
                                int64_t *line)
{
    const uint64_t size = r->part_bytes;
    parts all = { .whole = r,
                  .file = file,
                  .from = *place,
                  .place = *place,
                  .n_part = (int64_t)((file->n_bytes - 1) / size - *place / size + 1),
                  .line = *line,
                  .place_line = *line };
    const int n_threads = r->n_threads < all.n_part ? r->n_threads : (int)all.n_part;
    all.n = EACH * n_threads;
    pthread_mutex_init(&all.lock, NULL);
    pthread_cond_init(&all.changed, NULL);
    keel_status s = begin_parts(&all);
    if (s >= 0) s = run(&all, n_threads);
    if (s >= 0 && all.failure.status < 0) s = keel_failure_raise(&all.failure);
    free_parts(&all);
    pthread_cond_destroy(&all.changed);
    pthread_mutex_destroy(&all.lock);
    *place = all.place;
    *line = all.place_line;
    return s;
}
