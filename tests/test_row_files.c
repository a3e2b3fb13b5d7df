/* Predictions that several processes write into one .npy file: the bytes are those of one process,
 * whatever pages rows lie on and whoever sees the file; after a failure there is none. Processes
 * are threads here. */
#include "process_works.h"
#include "io/npy_write.h"
#include "io/file.h"
#include "base/memory.h"
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUTPUTS = 2 };

/* Rows of 20 bytes, and rows of so many numbers that they are longer than a page. */
static keel_model *two_outputs(int wide)
{
    keel_model *m;
    keel_symbol x, out[OUTPUTS];
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_input(m, KEEL_DIMS(SIDE, SIDE, 3), NULL, &x));
    x = must_call(m, "Flatten", NULL, x);
    out[0] = dense(m, x, CLASSES, "softmax");
    out[1] = dense(m, x, wide, "tanh");
    must(keel_model_outputs(m, out, OUTPUTS));
    return m;
}

typedef struct writer {
    process p; /* first */
    char path[OUTPUTS][300];
    keel_tensor made[OUTPUTS];
    int64_t batch;
} writer;

static keel_status write_files(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    writer *w = (writer *)p;
    const char *path[OUTPUTS] = { w->path[0], w->path[1] };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = w->batch };
    (void)callbacks;
    const keel_status st = keel_strategy_reproducible(s, 16);
    return st < 0 ? st : keel_predict_npy(p->outcome.model, s, p->data, &o, path, w->made);
}

/* Writer i of n; those of the set `blind` name files in a folder that is not there. */
static void run_writers(writer *w, int n, int wide, int64_t batch, const char *folder, int blind)
{
    static const recipe plain = { "plain",   products, KEEL_FLOAT32, NULL, "adam",
                                  KEEL_KEEP, 40,       16,           false };
    thread_group group;
    thread_group_begin(&group, n);
    for (int i = 0; i < n; i++) {
        w[i] = (writer){ .batch = batch };
        w[i].p = (process){ .recipe = &plain,
                            .group = thread_group_of(&group, i),
                            .data = rows_of(&plain),
                            .outcome.model = two_outputs(wide),
                            .lanes = 1 + i % 2,
                            .workers = 1,
                            .timeout = PATIENT,
                            .run = write_files };
        for (int k = 0; k < OUTPUTS; k++)
            snprintf(w[i].path[k], sizeof w[i].path[k], "%s%s/%d.npy", folder,
                     blind >> i & 1 ? "/nowhere" : "", k);
    }
    live_together(live, w, sizeof *w, n);
    thread_group_end(&group);
}

static void end_writers(writer *w, int n)
{
    for (int i = 0; i < n; i++) {
        forget(&w[i].p.outcome);
        keel_dataset_destroy(w[i].p.data);
    }
}

static void is_in_file(const char *path, const keel_tensor *want)
{
    char header[KEEL_NPY_HEADER_MOST], *bytes;
    size_t n_bytes, size = sizeof(float);
    const size_t begin = keel_npy_header_write(header, want->dtype, &want->shape);
    for (int d = 0; d < want->shape.rank; d++) size *= (size_t)want->shape.dim[d];
    must(keel_file_read(path, 1 << 30, (void **)&bytes, &n_bytes));
    assert_int_equal(n_bytes, begin + size);
    assert_memory_equal(bytes, header, begin);
    assert_memory_equal(bytes + begin, want->data, size);
    keel_free(bytes);
}

/* An empty folder of that name. */
static void test_folder(char *out, size_t size, const char *name, int number)
{
    const char *tmp = getenv("KEEL_TEST_TMP");
    snprintf(out, size, "%s/%s%d-%d", tmp ? tmp : "/tmp", name, number, (int)getpid());
    assert_int_equal(mkdir(out, 0777), 0);
}

static int files_in(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void one_file_has_the_rows_of_all_processes(void **unused)
{
    static const struct {
        int n, wide, blind;
        int64_t batch;
    } cases[] = {
        { 1, 3000, 0, 32 }, { 2, 3000, 0, 32 }, { 3, 3000, 0, 40 },
        { 4, 3000, 4, 32 }, { 7, 1100, 0, 75 }, { 8, 1024, 0, 25 },
        { 3, 3000, 6, 32 }, { 3, 1, 0, 9 },     { 4, 20000, 2, 16 },
    };
    (void)unused;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char folder[256];
        writer w[THREADS_MAX];
        keel_strategy *s;
        keel_tensor want[OUTPUTS];
        const int n = cases[c].n;
        test_folder(folder, sizeof folder, "files", (int)c);
        run_writers(w, n, cases[c].wide, cases[c].batch, folder, cases[c].blind);
        for (int i = 0; i < n; i++)
            if (w[i].p.status < 0) fail_msg("case %d, process %d: %s", (int)c, i, w[i].p.error);
        must(keel_strategy_create(&s, "cpu:0"));
        must(keel_strategy_reproducible(s, 16));
        const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = cases[c].batch };
        must(keel_predict_outputs(w[0].p.outcome.model, s, w[0].p.data, &o, want));
        for (int k = 0; k < OUTPUTS; k++) {
            is_in_file(w[0].path[k], &want[k]);
            assert_int_equal(w[n - 1].made[k].shape.dim[0], ROWS);
            keel_tensor_free(&want[k]);
        }
        assert_int_equal(files_in(folder), OUTPUTS);
        keel_strategy_destroy(s);
        end_writers(w, n);
    }
}

static void a_file_that_cannot_be_written_fails_for_all(void **unused)
{
    char folder[256];
    writer w[3];
    (void)unused;
    test_folder(folder, sizeof folder, "failed", 0);
    run_writers(w, 3, 10, 32, folder, 1); /* process 0 has no such folder */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(w[i].p.status, KEEL_EIO);
        assert_non_null(strstr(w[i].p.error, "cannot be created"));
    }
    assert_int_equal(files_in(folder), 0);
    end_writers(w, 3);
}

static void a_file_without_a_path_is_refused(void **unused)
{
    const char *const half[OUTPUTS] = { "half.npy" };
    static const recipe plain = { "plain",   products, KEEL_FLOAT32, NULL, "adam",
                                  KEEL_KEEP, 40,       16,           false };
    keel_model *m = two_outputs(10);
    keel_dataset *d = rows_of(&plain);
    keel_strategy *s;
    (void)unused;
    must(keel_strategy_create(&s, "cpu:0"));
    assert_int_equal(keel_predict_npy(m, s, d, NULL, NULL, NULL), KEEL_EARG);
    assert_int_equal(keel_predict_npy(m, s, d, NULL, half, NULL), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "output 1"));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void all_headers_of_an_array_have_one_length(void **unused)
{
    static const int64_t rows[] = { 0, 9, 10, 123456, 99999999999, INT64_MAX };
    (void)unused;
    for (int rank = 1; rank <= KEEL_RANK_MAX; rank++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            char header[KEEL_NPY_HEADER_MOST];
            keel_shape shape = { rank, { rows[i], 21, 7, 1234567, 8, 9 } }, first = shape;
            first.dim[0] = 0;
            const size_t n = keel_npy_header_write(header, KEEL_FLOAT64, &first);
            assert_int_equal(keel_npy_header_write(header, KEEL_FLOAT64, &shape), n);
            assert_int_equal(n % 64, 0);
            assert_int_equal(header[n - 1], '\n');
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file_has_the_rows_of_all_processes),
        cmocka_unit_test(a_file_that_cannot_be_written_fails_for_all),
        cmocka_unit_test(a_file_without_a_path_is_refused),
        cmocka_unit_test(all_headers_of_an_array_have_one_length),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
