/* cache with a filename and snapshot: what a second pass and a second process get, which files are
 * refused, and what is there after a run that was interrupted or had no room. */
#include "must.h"
#include "base/memory.h"
#include "data/stage.h"
#include "tensor/shape.h"
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[200], path[256];

/* ---- pipelines ------------------------------------------------------------------------------- */

enum { ROWS = 11 };

static int64_t numbers[ROWS], lengths[ROWS + 1], ragged[ROWS * 3];
static keel_string words[ROWS];
static atomic_int calls;

static void fill(void)
{
    static char text[ROWS][16];
    for (int i = 0; i < ROWS; i++) {
        numbers[i] = 100 + 7 * i;
        lengths[i + 1] = lengths[i] + i % 4;
        for (int64_t k = lengths[i]; k < lengths[i + 1]; k++) ragged[k] = 10 * i + k;
        words[i] = (keel_string){ text[i], snprintf(text[i], sizeof text[i], "word %d", i * i) };
    }
}

static keel_status twice(void *context, const keel_tensor *in, keel_tensor *out,
                         const keel_element_place *at)
{
    const int64_t by = context ? *(int64_t *)context : 2;
    (void)at;
    calls++;
    for (int64_t i = 0; i < keel_shape_count(&in->shape); i++)
        ((int64_t *)out->data)[i] = by * ((const int64_t *)in->data)[i];
    return KEEL_OK;
}

static keel_status drawn(void *context, const keel_tensor *in, keel_tensor *out,
                         const keel_element_place *at)
{
    (void)context, (void)in;
    calls++;
    *(int64_t *)out->data = (int64_t)(keel_element_uniform(at, 0) * 1e9);
    return KEEL_OK;
}

static keel_status most(void *context, const keel_tensor *in, bool *keep,
                        const keel_element_place *at)
{
    (void)context, (void)at;
    calls++;
    *keep = keel_shape_count(&in->shape) && *(const int64_t *)in->data % 3;
    return KEEL_OK;
}

static keel_dataset *then(keel_dataset *d, const char *stage, const keel_arg *args)
{
    keel_dataset *out;
    must(keel_dataset_apply(&out, stage, args, &d, 1));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *mapped(keel_dataset *d, keel_map m)
{
    keel_dataset *out;
    m.size = sizeof m;
    must(keel_dataset_map(&out, d, &m));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *filtered(keel_dataset *d)
{
    keel_dataset *out;
    must(keel_dataset_filter(&out, d, &(keel_filter){ .size = sizeof(keel_filter), .call = most }));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *rows(int64_t n)
{
    keel_dataset *d;
    const keel_tensor x = { KEEL_INT64, { 1, { n } }, numbers };
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    return d;
}

static keel_dataset *fields(bool text)
{
    keel_dataset *d;
    keel_array_field f[2] = { { .path = "x" }, { .path = "t" } };
    if (text) {
        f[0].array = (keel_tensor){ KEEL_INT64, { 1, { ROWS } }, numbers };
        f[1].array = (keel_tensor){ KEEL_STRING, { 1, { ROWS } }, words };
    } else {
        f[0].array = (keel_tensor){ KEEL_INT64, { 1, { lengths[ROWS] } }, ragged };
        f[0].row_splits = (keel_tensor){ KEEL_INT64, { 1, { ROWS + 1 } }, lengths };
    }
    must(keel_dataset_from_fields(&d, f, text ? 2 : 1));
    return d;
}

static keel_status give(void *context, void *const *field, int64_t capacity, int64_t *n)
{
    int64_t *at = context;
    *n = *at + 3 > ROWS ? ROWS - *at : 3;
    (void)capacity;
    if (!*n) return KEEL_END;
    memcpy(field[0], numbers + *at, (size_t)*n * sizeof *numbers);
    *at += *n;
    calls++;
    return KEEL_OK;
}

static keel_dataset *given_once(void)
{
    static const keel_data_field x = { .path = "x", .dtype = KEEL_INT64 };
    keel_dataset *d;
    int64_t *at = calloc(1, sizeof *at);
    must(keel_dataset_from_generator(&d, &(keel_generator){ .size = sizeof(keel_generator),
                                                            .context = at,
                                                            .max_rows = 3,
                                                            .n_field = 1,
                                                            .field = &x,
                                                            .next_fields = give,
                                                            .release = free }));
    return d;
}

enum { BY_NUMBER, STREAM, RAGGED, RAGGED_STREAM, TEXTS, BATCHES, ONCE, DRAWN, SHUFFLED, KINDS };

static const char *const kinds[] = {
    "rows by number",    "a stream",      "rows that differ in length",
    "a stream of them",  "texts",         "batches",
    "a generator, once", "drawn numbers", "a shuffle that stays",
};

static keel_dataset *source(int kind)
{
    switch (kind) {
    case BY_NUMBER:
        return mapped(rows(ROWS), (keel_map){ .call = twice });
    case STREAM:
        return filtered(rows(ROWS));
    case RAGGED:
        return fields(false);
    case RAGGED_STREAM:
        return filtered(fields(false));
    case TEXTS:
        return filtered(fields(true));
    case BATCHES:
        return then(filtered(rows(ROWS)), "batch", KEEL_ARGS(KEEL_ARG_INT("batch_size", 3)));
    case ONCE:
        return given_once();
    case DRAWN:
        return mapped(rows(ROWS), (keel_map){ .call = drawn, .random = true });
    default:
        return then(rows(ROWS), "shuffle",
                    KEEL_ARGS(KEEL_ARG_BOOL("reshuffle_each_iteration", false)));
    }
}

enum { CACHE, SNAPSHOT, DEFLATED, WAYS };

static keel_status keep(keel_dataset **out, keel_dataset *d, int way)
{
    if (way == CACHE)
        return keel_dataset_apply(out, "cache", KEEL_ARGS(KEEL_ARG_STR("filename", path)), &d, 1);
    return keel_dataset_apply(
        out, "snapshot",
        KEEL_ARGS(KEEL_ARG_STR("path", path),
                  KEEL_ARG_STR("compression", way == DEFLATED ? "GZIP" : "NONE")),
        &d, 1);
}

static keel_dataset *kept(int kind, int way)
{
    keel_dataset *d = source(kind), *out;
    must(keep(&out, d, way));
    keel_dataset_destroy(d);
    return out;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct text {
    size_t n;
    char at[4096];
} text;

static void add_field(text *t, const keel_tensor *x)
{
    for (int64_t i = 0; i < keel_shape_count(&x->shape); i++) {
        const keel_string *s = (const keel_string *)x->data + i;
        if (x->dtype == KEEL_STRING)
            t->n += (size_t)snprintf(t->at + t->n, sizeof t->at - t->n, "%.*s,", (int)s->n_bytes,
                                     s->data);
        else if (x->dtype == KEEL_INT64)
            t->n += (size_t)snprintf(t->at + t->n, sizeof t->at - t->n, "%lld,",
                                     (long long)((const int64_t *)x->data)[i]);
    }
    t->at[t->n++] = ' ';
    t->at[t->n] = 0;
}

/* Up to `most_rows` elements of a pass, or the failure. */
static keel_status read_some(text *t, const keel_dataset *d, uint64_t seed, uint64_t pass,
                             int threads, int most_rows)
{
    const keel_reader_options o = { KEEL_READER_OPTIONS.size, .seed = seed, .pass = pass,
                                    .threads = threads };
    keel_reader *r = NULL;
    const keel_tensor *x;
    t->n = 0;
    t->at[0] = 0;
    keel_status s = keel_reader_create(&r, d, &o);
    while (s == KEEL_OK && most_rows-- && (s = keel_reader_next(r, &x)) == KEEL_OK)
        for (int i = 0; i < keel_dataset_field_count(d); i++) add_field(t, &x[i]);
    keel_reader_destroy(r);
    return s < 0 ? s : KEEL_OK;
}

static text *read_all(const keel_dataset *d, uint64_t seed, uint64_t pass, int threads)
{
    static text all[4];
    static int at;
    text *t = &all[at++ % 4];
    must(read_some(t, d, seed, pass, threads, 1000));
    return t;
}

static bool is_there(void)
{
    return access(path, F_OK) == 0;
}

/* Files in the folder. */
static int files(void)
{
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int forget(void **unused)
{
    (void)unused;
    unlink(path);
    assert_int_equal(files(), 0);
    return 0;
}

/* ---- passes and processes -------------------------------------------------------------------- */

static void later_passes_and_processes_read_the_file(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < KINDS; kind++)
        for (int way = kind == DRAWN ? SNAPSHOT : CACHE; way < WAYS; way++) {
            forget(NULL);
            keel_dataset *d = kept(kind, way), *plain = source(kind);
            const text *want = read_all(plain, 5, 0, 2), *first;
            keel_dataset_destroy(plain);
            first = read_all(d, 5, 0, 3);
            assert_string_equal(first->at, want->at);
            if (!is_there()) fail_msg("%s: no file", kinds[kind]);
            assert_int_equal(files(), 1);
            calls = 0;
            assert_string_equal(read_all(d, 5, 1, 3)->at, want->at);
            assert_int_equal(calls, 0);
            keel_dataset_destroy(d);
            fflush(NULL);
            const pid_t child = fork();
            if (!child) {
                d = kept(kind, way);
                const int looked = calls; /* at three rows, to see whether they are the same */
                const text *again = read_all(d, 6, 4, -1);
                const bool good = !strcmp(again->at, want->at) && looked <= 3 && calls == looked;
                keel_dataset_destroy(d);
                _exit(good ? 0 : 1);
            }
            int status;
            assert_int_equal(waitpid(child, &status, 0), child);
            if (status) fail_msg("%s, %d: another process gets other rows", kinds[kind], way);
        }
}

static void behind_a_stream_whose_file_is_there_rows_are_by_number(void **unused)
{
    (void)unused;
    for (int kind = STREAM; kind <= RAGGED_STREAM; kind += RAGGED_STREAM - STREAM) {
        forget(NULL);
        keel_dataset *d = kept(kind, CACHE), *all;
        assert_int_equal(keel_dataset_shuffle(&all, d, 0), KEEL_EARG);
        const text *want = read_all(d, 1, 0, 2);
        keel_dataset_destroy(d);
        d = kept(kind, CACHE);
        assert_true(keel_dataset_cardinality(d) > 0);
        must(keel_dataset_shuffle(&all, d, 0));
        assert_int_equal(read_all(all, 1, 0, 2)->n, want->n);
        keel_dataset_destroy(all);
        text rest;
        keel_reader *r;
        const keel_tensor *x;
        must(keel_reader_create(&r, d,
                                &(keel_reader_options){ KEEL_READER_OPTIONS.size, .index = 2 }));
        rest.n = 0;
        must(keel_reader_next(r, &x));
        add_field(&rest, x);
        keel_reader_destroy(r);
        assert_non_null(strstr(want->at, rest.at));
        keel_dataset_destroy(d);
    }
}

/* ---- files that are not taken ---------------------------------------------------------------- */

static void refused(keel_dataset *d, int way, const char *says)
{
    keel_dataset *out = NULL;
    const keel_status s = keep(&out, d, way);
    if (s >= 0) fail_msg("taken, although: %s", says);
    if (!strstr(keel_error(), says)) fail_msg("'%s' is not in: %s", says, keel_error());
    keel_dataset_destroy(d);
}

static void a_file_of_another_pipeline_is_refused_with_what_differs(void **unused)
{
    (void)unused;
    static int64_t three = 3;
    keel_dataset *d = kept(BY_NUMBER, SNAPSHOT);
    read_all(d, 0, 0, 1);
    keel_dataset_destroy(d);
    refused(mapped(then(rows(ROWS), "skip", KEEL_ARGS(KEEL_ARG_INT("count", 0))),
                   (keel_map){ .call = twice }),
            SNAPSHOT, "its stages were map(,), and here they are map(,skip(");
    refused(mapped(rows(ROWS - 1), (keel_map){ .call = twice }), SNAPSHOT,
            "its sources were arrays of 11 rows, and here they are arrays of 10 rows");
    refused(mapped(rows(ROWS), (keel_map){ .call = twice, .context = &three }), CACHE,
            "out of date: row 0");
    refused(source(RAGGED), SNAPSHOT, "its fields were input x");
    for (int i = 0; i < 2; i++) {
        keel_dataset *all = i ? rows(ROWS) : source(BY_NUMBER), *half, *rest;
        must(keel_dataset_split(all, 0.5, 0, &half, &rest));
        keel_dataset_destroy(all);
        keel_dataset_destroy(half);
        refused(i ? mapped(rest, (keel_map){ .call = twice }) : rest, SNAPSHOT, "(part ");
    }
    d = kept(BY_NUMBER, SNAPSHOT); /* it is still there and whole */
    read_all(d, 0, 0, 1);
    keel_dataset_destroy(d);
}

static void drawn_rows_are_known_by_rows_of_their_source(void **unused)
{
    (void)unused;
    keel_dataset *d = kept(DRAWN, SNAPSHOT);
    read_all(d, 0, 0, 1);
    keel_dataset_destroy(d);
    numbers[ROWS - 1]++;
    refused(source(DRAWN), SNAPSHOT, "its sources were arrays of 11 rows (contents ");
    numbers[ROWS - 1]--;
    d = kept(DRAWN, SNAPSHOT);
    keel_dataset_destroy(d);
}

static void write_lines(const char *name, const char *lines)
{
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fputs(lines, f);
    fclose(f);
}

static void files_that_rows_name_are_known_by_their_sizes(void **unused)
{
    (void)unused;
    char shards[220], one[240];
    snprintf(shards, sizeof shards, "%s/shards", folder);
    snprintf(one, sizeof one, "%s/1.csv", shards);
    assert_int_equal(mkdir(shards, 0700), 0);
    write_lines(one, "a,b\n1,2\n3,4\n");
    char spec[240];
    snprintf(spec, sizeof spec, "files:%s/*.csv", shards);
    for (int changed = 0; changed < 2; changed++) {
        keel_dataset *d, *out;
        must(keel_dataset_open(&d, spec, NULL));
        d = then(d, "flat_map", NULL);
        if (changed) {
            refused(d, SNAPSHOT, "its sources were list_files of 1 rows (names, sizes and times");
            break;
        }
        must(keep(&out, d, SNAPSHOT));
        read_some(&(text){ 0 }, out, 0, 0, 1, 1000);
        keel_dataset_destroy(out);
        keel_dataset_destroy(d);
        write_lines(one, "a,b\n1,2\n3,4\n5,6\n");
    }
    unlink(one);
    rmdir(shards);
}

static void what_cannot_be_kept_is_refused(void **unused)
{
    (void)unused;
    refused(then(rows(3), "repeat", NULL), CACHE, "without end");
    refused(source(DRAWN), CACHE, "behind map, which draws random numbers");
    refused(mapped(rows(3), (keel_map){ .call = twice, .sequential = true }), SNAPSHOT,
            "has a state from pass to pass");
    char there[256];
    strcpy(there, path);
    snprintf(path, sizeof path, "%s/none/file", folder);
    refused(rows(3), CACHE, "its folder is not there");
    snprintf(path, sizeof path, "%s", folder);
    refused(rows(3), CACHE, folder);
    path[0] = 0;
    refused(rows(3), SNAPSHOT, "name of the file is empty");
    strcpy(path, there);
}

static void *load(size_t *n)
{
    static unsigned char bytes[1 << 14];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    *n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return bytes;
}

static void store(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* The rows, or an error; never others. */
static void it_is_told(int kind, int way, const char *want, const char *what, size_t at)
{
    keel_dataset *d = source(kind), *out = NULL;
    text t;
    keel_status s = keep(&out, d, way);
    if (s >= 0) s = read_some(&t, out, 0, 0, -1, 1000);
    if (s >= 0 && strcmp(t.at, want)) fail_msg("%s %zu: other rows: %s", what, at, t.at);
    if (s < 0 && !strstr(keel_error(), path)) fail_msg("%s %zu: %s", what, at, keel_error());
    keel_dataset_destroy(out);
    keel_dataset_destroy(d);
}

static void a_damaged_file_gives_an_error_or_the_right_rows(void **unused)
{
    (void)unused;
    static const int some[] = { STREAM, RAGGED, TEXTS, BATCHES };
    for (int i = 0; i < 4; i++)
        for (int way = SNAPSHOT; way < WAYS; way++) {
            static unsigned char bytes[1 << 14];
            char want[4096];
            size_t n;
            forget(NULL);
            keel_dataset *d = kept(some[i], way);
            strcpy(want, read_all(d, 0, 0, -1)->at);
            keel_dataset_destroy(d);
            memcpy(bytes, load(&n), sizeof bytes);
            for (size_t k = 0; k < n; k++) {
                const unsigned char was = bytes[k];
                bytes[k] ^= (unsigned char)(1 << k % 8);
                store(bytes, n);
                it_is_told(some[i], way, want, "byte", k);
                bytes[k] = was;
            }
            for (size_t k = 0; k < n; k++) {
                store(bytes, k);
                it_is_told(some[i], way, want, "cut at", k);
            }
        }
}

/* ---- writing --------------------------------------------------------------------------------- */

static void a_pass_that_is_left_leaves_no_file(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < KINDS; kind++) {
        text t;
        char note[400];
        keel_dataset *d = kept(kind, SNAPSHOT);
        must(read_some(&t, d, 0, 0, -1, 2)); /* nobody reads ahead */
        keel_stage_note(d, note, sizeof note);
        assert_false(is_there());
        if (kind != RAGGED && !strstr(note, "was not written, since"))
            fail_msg("%s: %s", kinds[kind], note);
        if (kind != ONCE) {
            read_all(d, 0, 0, 2);
            assert_true(is_there());
        }
        keel_dataset_destroy(d);
        assert_int_equal(files(), kind != ONCE);
        forget(NULL);
    }
}

static void rows_of_two_seeds_do_not_go_into_one_file(void **unused)
{
    (void)unused;
    static const int some[] = { DRAWN, SHUFFLED };
    for (int i = 0; i < 2; i++) {
        text t;
        keel_dataset *d = kept(some[i], SNAPSHOT), *plain = source(some[i]);
        must(read_some(&t, d, 1, 0, -1, 4));
        const text *want = read_all(plain, 2, 0, 1), *got = read_all(d, 2, 0, 2);
        assert_string_equal(got->at, want->at);
        assert_true(is_there());
        assert_string_equal(read_all(d, 1, 3, 2)->at, want->at); /* the file has the numbers */
        keel_dataset_destroy(d);
        keel_dataset_destroy(plain);
        forget(NULL);
    }
}

static void several_runs_at_once_get_the_same(void **unused)
{
    (void)unused;
    enum { RUNS = 4 };
    for (int kind = 0; kind < ONCE; kind++) {
        keel_dataset *plain = source(kind);
        const text *want = read_all(plain, 0, 0, 1);
        keel_dataset_destroy(plain);
        pid_t child[RUNS];
        fflush(NULL);
        for (int i = 0; i < RUNS; i++)
            if (!(child[i] = fork())) {
                keel_dataset *d = kept(kind, CACHE);
                bool good = true;
                for (uint64_t pass = 0; pass < 3; pass++)
                    good &= !strcmp(read_all(d, 0, pass, 2)->at, want->at);
                keel_dataset_destroy(d);
                _exit(good ? 0 : 1);
            }
        for (int i = 0; i < RUNS; i++) {
            int status;
            assert_int_equal(waitpid(child[i], &status, 0), child[i]);
            if (status) fail_msg("%s: run %d ends with %d", kinds[kind], i, status);
        }
        assert_int_equal(files(), 1);
        keel_dataset *d = kept(kind, CACHE);
        assert_string_equal(read_all(d, 0, 0, 2)->at, want->at);
        keel_dataset_destroy(d);
        forget(NULL);
    }
}

static void a_full_disk_ends_no_run_and_is_told(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < KINDS; kind++) {
        fflush(NULL);
        const pid_t child = fork();
        if (!child) {
            keel_dataset *plain = source(kind), *d = kept(kind, SNAPSHOT);
            const text *want = read_all(plain, 0, 0, 1);
            char note[500];
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 100, 100 });
            bool good = !strcmp(read_all(d, 0, 0, 2)->at, want->at);
            keel_stage_note(d, note, sizeof note);
            good &= strstr(note, "was not written, and") && !is_there() && !files();
            if (kind == ONCE) { /* it serves no second pass */
                text t;
                good &= read_some(&t, d, 0, 1, 2, 99) == KEEL_EIO && strstr(keel_error(), path);
            } else {
                good &= !strcmp(read_all(d, 0, 1, 2)->at, want->at);
            }
            keel_dataset_destroy(d);
            keel_dataset_destroy(plain);
            _exit(good ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status) fail_msg("%s: %d", kinds[kind], status);
        assert_int_equal(files(), 0);
    }
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < KINDS; kind++)
        for (int there = 0; there < 2; there++) {
            keel_dataset *d;
            text want, t;
            if (there) forget(NULL);
            d = kept(kind, DEFLATED);
            must(read_some(&want, d, 0, 0, 1, 99));
            keel_dataset_destroy(d);
            const int64_t before = keel_memory_live();
            keel_status s = KEEL_ENOMEM;
            for (int64_t i = 0; s < 0; i += 1 + i / 20) {
                if (!there) unlink(path);
                keel_dataset *from = source(kind);
                keel_memory_fail_at(i);
                s = keep(&d, from, DEFLATED);
                if (s >= 0) {
                    s = read_some(&t, d, 0, 0, 1, 99);
                    keel_dataset_destroy(d);
                }
                keel_memory_fail_at(-1);
                keel_dataset_destroy(from);
                if (s < 0 && s != KEEL_ENOMEM)
                    fail_msg("%s, allocation %d: %s", kinds[kind], (int)i, keel_error());
                if (s >= 0) assert_string_equal(t.at, want.at);
                assert_int_equal(keel_memory_live(), before);
                assert_int_equal(files(), is_there());
            }
            unlink(path);
        }
}

int main(void)
{
    const char *tmp = access("/dev/shm", W_OK) ? getenv("KEEL_TEST_TMP") : "/dev/shm";
#define TEST(name) cmocka_unit_test_setup_teardown(name, forget, forget)
    const struct CMUnitTest test[] = {
        TEST(later_passes_and_processes_read_the_file),
        TEST(behind_a_stream_whose_file_is_there_rows_are_by_number),
        TEST(a_file_of_another_pipeline_is_refused_with_what_differs),
        TEST(drawn_rows_are_known_by_rows_of_their_source),
        TEST(files_that_rows_name_are_known_by_their_sizes),
        TEST(what_cannot_be_kept_is_refused),
        TEST(a_damaged_file_gives_an_error_or_the_right_rows),
        TEST(a_pass_that_is_left_leaves_no_file),
        TEST(rows_of_two_seeds_do_not_go_into_one_file),
        TEST(several_runs_at_once_get_the_same),
        TEST(a_full_disk_ends_no_run_and_is_told),
        TEST(every_allocation_may_fail),
    };
    snprintf(folder, sizeof folder, "%s/keel-kept.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/rows", folder);
    fill();
    const int failed = cmocka_run_group_tests(test, NULL, NULL);
    rmdir(folder);
    return failed;
}
