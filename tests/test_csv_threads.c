/* A CSV that several threads read in parts is the one that a single thread reads: the same rows,
 * types, words, notes and errors, to the byte, wherever parts happen to end. */
#include "data_files.h"
#include "base/memory.h"
#include "data/sources/csv.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>
#include <zlib.h>

#define COUNT(list) (sizeof list / sizeof *list)
#define LIST(...)   ((const char *const[]){ __VA_ARGS__ })

static uint64_t seed;

/* splitmix64 */
static unsigned draw(unsigned below)
{
    uint64_t z = seed += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (unsigned)((z ^ z >> 31) % below);
}

/* All that a user can see of an opened table, or of its failure. */
typedef struct seen {
    char *data;
    size_t n, room;
} seen;

static void see(seen *s, const void *data, size_t n)
{
    if (s->n + n > s->room) {
        s->room = 2 * (s->n + n);
        s->data = realloc(s->data, s->room);
    }
    memcpy(s->data + s->n, data, n);
    s->n += n;
}

static void see_text(seen *s, const char *text)
{
    see(s, text, strlen(text) + 1);
}

static void note(void *context, const char *line)
{
    see_text(context, line);
}

static void see_array(seen *s, const keel_tensor *t)
{
    int64_t n = 1;
    see(s, &t->dtype, sizeof t->dtype);
    for (int i = 0; i < t->shape.rank; i++) {
        see(s, &t->shape.dim[i], sizeof t->shape.dim[i]);
        n *= t->shape.dim[i];
    }
    if (t->dtype != KEEL_STRING) see(s, t->data, (size_t)n * (t->dtype == KEEL_INT64 ? 8 : 4));
    for (int64_t i = 0; t->dtype == KEEL_STRING && i < n; i++) {
        const keel_string *text = (const keel_string *)t->data + i;
        see(s, text->data, (size_t)text->n_bytes + 1);
    }
}

static seen open_by(const char *path, const char *label, keel_dataset_options o, int n_threads,
                    uint64_t part_bytes)
{
    seen s = { 0 };
    keel_dataset *d = NULL;
    const int64_t live = keel_memory_live();
    o.note = note;
    o.note_context = &s;
    const keel_status status = keel_csv_open(&d, path, label, &o, n_threads, part_bytes);
    see(&s, &status, sizeof status);
    if (status < 0) see_text(&s, keel_error());
    for (int i = 0; d && i < keel_dataset_field_count(d); i++)
        see_array(&s, d->origin->source->tensor(d->origin->state, i));
    for (int64_t i = 0; d && i < keel_dataset_class_count(d); i++)
        see_text(&s, keel_dataset_class_name(d, i));
    keel_dataset_destroy(d);
    assert_int_equal(keel_memory_live(), live);
    return s;
}

static void same(const char *what, const char *path, const char *label,
                 const keel_dataset_options *o, const seen *want, int n_threads, uint64_t part)
{
    seen got = open_by(path, label, *o, n_threads, part);
    if (got.n != want->n || memcmp(got.data, want->data, got.n))
        fail_msg("%s: %d threads with parts of %llu bytes give another table than one (%zu and %zu "
                 "bytes)",
                 what, n_threads, (unsigned long long)part, got.n, want->n);
    free(got.data);
}

/* ---- files that are drawn ---------------------------------------------------------------------
 */

typedef struct text {
    char *data;
    size_t n, room;
} text;

static void put(text *t, const char *what)
{
    const size_t n = strlen(what);
    if (t->n + n + 1 > t->room) {
        t->room = 2 * (t->n + n + 1);
        t->data = realloc(t->data, t->room);
    }
    memcpy(t->data + t->n, what, n + 1);
    t->n += n;
}

enum { /* what a file has */
       QUOTED_LINES = 1,
       MISSING = 2,
       EMPTY_LINES = 4,
       CRLF = 8,
       BIG = 16,
       BARE_QUOTES = 32,
       WRONG = 64,
       LONG = 128,
};

static void put_number(text *t, int with)
{
    char cell[64];
    if (with & MISSING && !draw(9)) {
        put(t, draw(2) ? "" : "NA");
        return;
    }
    if (with & WRONG && !draw(400)) {
        put(t, "wrong");
        return;
    }
    if (with & BIG && draw(3))
        snprintf(cell, sizeof cell, "%u%09u", 1 + draw(900000), draw(1000000000));
    else if (with & BIG && draw(40))
        snprintf(cell, sizeof cell, "%u", draw(100000000));
    else
        snprintf(cell, sizeof cell, "%s%u.%0*u", draw(2) ? "-" : "", draw(1000), 1 + (int)draw(9),
                 draw(10));
    if (draw(7)) {
        put(t, cell);
        return;
    }
    put(t, "\"");
    put(t, cell);
    put(t, "\"");
}

static void put_word(text *t, int with)
{
    char word[32];
    snprintf(word, sizeof word, "w%u", draw(draw(4) ? 6 : 200));
    if (with & BARE_QUOTES && !draw(12)) strcat(word, "\"");
    if (!(with & QUOTED_LINES) || draw(3)) {
        put(t, word);
        return;
    }
    put(t, "\"");
    put(t, word);
    put(t, draw(2) ? "\n1,2,3,4\n" : draw(2) ? ", \"\"quoted\"\"" : "\r\n\n");
    for (unsigned i = with & LONG && !draw(20) ? 3000 : 0; i; i--) put(t, i % 60 ? "x" : "\n");
    put(t, "\"");
}

/* Columns a, b, w, y. */
static text draw_file(int with, int rows)
{
    text t = { 0 };
    const char *end = with & CRLF ? "\r\n" : "\n";
    if (draw(2)) put(&t, "\xef\xbb\xbf");
    put(&t, "a,b,w,y");
    put(&t, end);
    for (int i = 0; i < rows; i++) {
        put_number(&t, with);
        put(&t, ",");
        put_number(&t, with & ~MISSING);
        put(&t, ",");
        put_word(&t, with);
        put(&t, draw(2) ? ",1" : ",0");
        if (i + 1 < rows || draw(2)) put(&t, end);
        while (with & EMPTY_LINES && !draw(4)) put(&t, end);
    }
    return t;
}

static const char *write_gz(const char *name, const text *t)
{
    const char *path = files_path(name);
    gzFile f = gzopen(path, "wb1");
    assert_int_equal(gzwrite(f, t->data, (unsigned)t->n), (int)t->n);
    gzclose(f);
    return path;
}

static void any_threads_and_any_parts_give_the_table_of_one_thread(void **state)
{
    static const int threads[] = { 2, 7, 16 };
    static const uint64_t parts[] = { 1, 17, 64, 300, 5000 };
    static const keel_vocabulary open = { .column = "w" };
    static const char *const texts[] = { "n=a,b", "w" };
    files_begin();
    for (int round = 0; round < 150; round++) {
        seed = (uint64_t)round;
        const int with = (int)draw(256);
        keel_dataset_options o = KEEL_DATASET_OPTIONS;
        o.missing = (keel_missing)draw(4);
        o.missing_value = 0.1;
        o.vocabularies = &open;
        o.n_vocabulary = 1;
        const char *label = "y";
        if (draw(3) == 0) { /* the words are texts, and classes */
            o.n_vocabulary = 0;
            o.inputs = texts;
            o.n_input = 2;
        } else if (draw(3) == 0) {
            o.n_vocabulary = 0;
            o.inputs = texts;
            o.n_input = 1;
            label = "w";
        }
        text t = draw_file(with, 1 + (int)draw(300));
        const char *path = files_write("a.csv", t.data, t.n);
        const uint64_t part = parts[draw(COUNT(parts))];
        char what[64];
        snprintf(what, sizeof what, "file %d, kind %d", round, with);
        seen want = open_by(path, label, o, 1, part);
        for (size_t i = 0; i < COUNT(threads); i++)
            same(what, path, label, &o, &want, threads[i], part);
        free(want.data);
        free(t.data);
    }
    files_end();
}

/* Means are sums of parts, so they have the same bits for a packed file, which one thread reads. */
static void a_packed_file_gives_the_same_means(void **state)
{
    files_begin();
    files_folder("set");
    for (int round = 0; round < 20; round++) {
        seed = (uint64_t)round + 1000;
        text t = draw_file(MISSING | EMPTY_LINES, 400);
        keel_dataset_options o = KEEL_DATASET_OPTIONS;
        o.missing = KEEL_MISSING_MEAN;
        o.inputs = LIST("a", "b");
        o.n_input = 2;
        files_write("set/a.csv", t.data, t.n);
        char folder[300];
        snprintf(folder, sizeof folder, "%s", files_path("set"));
        seen plain = open_by(folder, "y", o, 7, 200);
        remove(files_path("set/a.csv"));
        write_gz("set/a.csv.gz", &t);
        seen gz = open_by(folder, "y", o, 7, 200);
        remove(files_path("set/a.csv.gz"));
        const char *notes = strchr(plain.data, '\0') + 1; /* the note names the file */
        const char *others = strchr(gz.data, '\0') + 1;
        const size_t n = plain.n - (size_t)(notes - plain.data);
        assert_int_equal(n, gz.n - (size_t)(others - gz.data));
        assert_memory_equal(notes, others, n);
        free(plain.data);
        free(gz.data);
        free(t.data);
    }
    files_end();
}

/* An empty line is a row there, with an empty text, except at the end of the file. */
static void empty_lines_of_a_single_column_are_rows_in_every_part(void **state)
{
    static const int threads[] = { 2, 7 };
    static const uint64_t parts[] = { 1, 5, 64 };
    static const char *const ends[] = { "", "\n", "\n\n" };
    files_begin();
    for (size_t end = 0; end < COUNT(ends); end++) {
        text t = { 0 };
        keel_dataset_options o = KEEL_DATASET_OPTIONS;
        o.inputs = LIST("w");
        o.n_input = 1;
        seed = end;
        put(&t, "w\n");
        for (int i = 0; i < 200; i++) put(&t, draw(3) ? "\n" : "word\n");
        put(&t, "last");
        put(&t, ends[end]);
        const char *path = files_write("a.csv", t.data, t.n);
        keel_dataset *d;
        seen want = open_by(path, NULL, o, 1, 64);
        if (keel_csv_open(&d, path, NULL, &o, 7, 5) < 0) fail_msg("%s", keel_error());
        assert_int_equal(keel_dataset_rows(d), 201);
        keel_dataset_destroy(d);
        for (size_t i = 0; i < COUNT(threads); i++)
            for (size_t k = 0; k < COUNT(parts); k++)
                same("one column", path, NULL, &o, &want, threads[i], parts[k]);
        free(want.data);
        free(t.data);
    }
    files_end();
}

/* ---- errors -----------------------------------------------------------------------------------
 */

static void the_first_wrong_line_is_named(void **state)
{
    static const struct {
        const char *what, *line, *says;
    } cases[] = {
        { "a word among numbers", "1,x,w,0\n", ":%d: column 'b' has 'x', which is not a number" },
        { "too few fields", "1,2\n", ":%d: 2 fields, but the header has 4" },
        { "text behind a quote", "\"1\"2,3,w,0\n", ":%d: something follows a closed quote" },
        { "a quote that is never closed", "1,2,\"w,0\n", ":%d: a quote is never closed" },
        { "a carriage return", "1,2,w\rx,0\n", ":%d: a carriage return inside a line" },
        { "no text", "1,2,w\1,0\n", ": not a text file" },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int at = 3; at < 900; at += 127) {
            text t = { 0 };
            keel_dataset_options o = KEEL_DATASET_OPTIONS;
            char says[128];
            o.inputs = LIST("n=a,b", "w");
            o.n_input = 2;
            put(&t, "a,b,w,y\n");
            const bool open = strstr(cases[i].says, "never"); /* no other quotes then */
            for (int line = 2; line < 1000; line++)
                if (line == at || (!open && (line == at + 90 || line == at + 95)))
                    put(&t, cases[i].line);
                else
                    put(&t, line % 5 || open ? "1,2,w,1\n" : "3,4.5,\"v, 1\",0\n");
            for (size_t k = 0; k < t.n; k++)
                if (t.data[k] == 1) t.data[k] = 0;
            const char *path = files_write("a.csv", t.data, t.n);
            seen want = open_by(path, "y", o, 1, 100);
            snprintf(says, sizeof says, cases[i].says, at);
            if (!strstr(want.data + sizeof(keel_status), says))
                fail_msg("%s: \"%s\"", cases[i].what, want.data + sizeof(keel_status));
            for (int n = 2; n <= 16; n += 7) same(cases[i].what, path, "y", &o, &want, n, 100);
            free(want.data);
            free(t.data);
        }
    files_end();
}

/* ---- costs ------------------------------------------------------------------------------------
 */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Quotes that make every guess wrong, or one record of the whole file, cost no more than a few
 * readings by one thread. */
static void hostile_quotes_cost_little(void **state)
{
    static const struct {
        const char *what, *first, *rest;
    } cases[] = {
        { "a quote that is never closed", "1,2,\"w,0\n", "1,2,w,0\n" },
        { "a quote inside a value", "1,2,w\",0\n", "1,2,\"w\n\",0\n" },
        { "a record as long as the file", "1,2,\"w", "\n\"\"" },
        { "line ends in quotes", "1,2,w,0\n", "1,2,\"\n\n\n\n\n\n\n\n\n\n\n\n\",0\n" },
    };
    enum { BYTES = 4 << 20 };
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        text t = { 0 };
        keel_dataset_options o = KEEL_DATASET_OPTIONS;
        o.inputs = LIST("n=a,b", "w");
        o.n_input = 2;
        put(&t, "a,b,w,y\n1,2,w,1\n");
        put(&t, cases[i].first);
        while (t.n < BYTES) put(&t, cases[i].rest);
        const char *path = files_write("a.csv", t.data, t.n);
        const double begin = seconds();
        seen want = open_by(path, "y", o, 1, KEEL_CSV_PART);
        const double one = seconds() - begin;
        same(cases[i].what, path, "y", &o, &want, 16, KEEL_CSV_PART);
        const double many = seconds() - begin - one;
        if (many > 6 * one + 0.5) fail_msg("%s: %.2f s, and %.2f s", cases[i].what, one, many);
        free(want.data);
        free(t.data);
    }
    files_end();
}

static void every_failed_allocation_is_survived(void **state)
{
    static const keel_vocabulary own = { .column = "w" };
    files_begin();
    seed = 5;
    text t = draw_file(MISSING, 60);
    const char *path = files_write("a.csv", t.data, t.n);
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.missing = KEEL_MISSING_MEAN;
    o.label = "y";
    o.vocabularies = &own;
    o.n_vocabulary = 1;
    int passed = 0;
    for (int n = 0; n < 400; n++) { /* which thread asks for the n-th block differs */
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        keel_memory_fail_at(n);
        const keel_status s = keel_csv_open(&d, path, "y", &o, 3, 100);
        keel_memory_fail_at(-1);
        if (s < 0 && s != KEEL_ENOMEM) fail_msg("call %d: %d, %s", n, s, keel_error());
        passed += s >= 0;
        keel_dataset_destroy(d);
        assert_int_equal(keel_memory_live(), live);
    }
    assert_in_range(passed, 1, 399);
    free(t.data);
    files_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_threads_and_any_parts_give_the_table_of_one_thread),
        cmocka_unit_test(a_packed_file_gives_the_same_means),
        cmocka_unit_test(empty_lines_of_a_single_column_are_rows_in_every_part),
        cmocka_unit_test(the_first_wrong_line_is_named),
        cmocka_unit_test(hostile_quotes_cost_little),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
