/* Programs as data: exec:CMD. What they write is read, whatever they do wrong is one clear line,
 * and none of them outlives its dataset. */
#include "data_files.h"
#include "base/memory.h"
#include "data/feed.h"
#include "io/npy.h"
#include "tensor/shape.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT(list) (sizeof list / sizeof *list)

/* x [rows, 2] counts from `from`; y [rows] is from + row. */
static void write_pair(const char *x, const char *y, int64_t rows, float from)
{
    float at_x[64];
    int64_t at_y[32];
    for (int i = 0; i < 64; i++) at_x[i] = from + (float)i;
    for (int i = 0; i < 32; i++) at_y[i] = (int64_t)from + i;
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { rows, 2 } }, at_x };
    const keel_tensor ty = { KEEL_INT64, { 1, { rows } }, at_y };
    assert_int_equal(keel_npy_write(files_path(x), &tx), KEEL_OK);
    assert_int_equal(keel_npy_write(files_path(y), &ty), KEEL_OK);
}

static void write_header(const char *name, const char *dict, const char *rows)
{
    char file[256] = "\x93NUMPY\1";
    file[8] = (char)strlen(dict);
    strcpy(file + 10, dict);
    strcat(file + 10, rows);
    files_write(name, file, 10 + strlen(file + 10));
}

/* The spec of a shell command that runs in the folder of the files. */
static const char *spec_of(const char *command)
{
    static char spec[2048];
    const char *colon = strchr(command, ':');
    snprintf(spec, sizeof spec, "%.*scd %s; %s", (int)(colon - command) + 1, command, files_root,
             colon + 1);
    return spec;
}

static keel_status open_it(keel_dataset **d, const char *command)
{
    return keel_dataset_open(d, spec_of(command), NULL);
}

/* The first number of x of each row of an epoch. */
static int read_epoch(keel_feed *f, uint32_t epoch, float *x, float *y)
{
    keel_batch b;
    keel_status s;
    int n = 0;
    if (keel_feed_begin_epoch(f, epoch) < 0) fail_msg("%s", keel_error());
    while ((s = keel_feed_next(f, &b)) == KEEL_OK) {
        const float *at = keel_batch_field(&b, KEEL_ROLE_INPUT, 0);
        const int64_t *label = keel_batch_field(&b, KEEL_ROLE_TARGET, 0);
        for (int64_t i = 0; i < b.rows; i++, n++) {
            x[n] = at[2 * i];
            if (label) y[n] = (float)label[i];
        }
        keel_feed_release(f, &b);
    }
    if (s < 0) fail_msg("%s", keel_error());
    return n;
}

static keel_feed *feed_of(const keel_dataset *d, int64_t batch_size)
{
    keel_feed *f = NULL;
    const keel_feed_options o = { .batch_size = batch_size, .epochs = 3 };
    if (keel_feed_create(&f, d, &o) < 0) fail_msg("%s", keel_error());
    return f;
}

static void batches_come_in_their_order_and_again_for_each_pass(void **state)
{
    float x[64], y[64];
    files_begin();
    write_pair("a.npy", "b.npy", 3, 0);
    write_pair("c.npy", "d.npy", 8, 100); /* more rows than the first batch */
    write_pair("e.npy", "f.npy", 2, 200);
    for (int64_t size = 0; size < 8; size += 4) {
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        if (open_it(&d, "exec:cat a.npy b.npy c.npy d.npy e.npy f.npy") < 0)
            fail_msg("%s", keel_error());
        assert_int_equal(keel_dataset_rows(d), -1);
        keel_feed *f = feed_of(d, size);
        for (uint32_t e = 0; e < 3; e++) {
            assert_int_equal(read_epoch(f, e, x, y), 13);
            assert_true(x[0] == 0 && x[3] == 100 && x[10] == 114 && x[11] == 200);
            assert_true(y[0] == 0 && y[3] == 100 && y[10] == 107 && y[12] == 201);
        }
        keel_feed_destroy(f);
        keel_dataset_destroy(d);
        assert_int_equal(keel_memory_live(), live);
    }
    files_end();
}

static void a_program_knows_its_pass_and_its_fields(void **state)
{
    float x[64], y[64];
    files_begin();
    write_pair("0.npy", "y.npy", 3, 0);
    write_pair("1.npy", "y.npy", 3, 100);
    write_pair("2.npy", "y.npy", 3, 200);
    keel_dataset *d = NULL;
    if (open_it(&d, "exec(x,y):test $KEEL_FIELDS = x,y && cat $KEEL_EPOCH.npy y.npy") < 0)
        fail_msg("%s", keel_error());
    keel_feed *f = feed_of(d, 3);
    for (uint32_t e = 0; e < 3; e++) {
        assert_int_equal(read_epoch(f, e, x, y), 3);
        assert_true(x[0] == 100 * (float)e);
    }
    assert_int_equal(keel_feed_seek(f, 2, 1), KEEL_OK); /* a pass depends only on its number */
    assert_int_equal(read_epoch(f, 1, x, y), 3);
    assert_true(x[0] == 100);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    files_end();
}

static void fields_and_rows_can_be_named(void **state)
{
    float x[64], y[64];
    files_begin();
    write_pair("a.npy", "b.npy", 4, 7);
    keel_dataset *d = NULL;
    if (open_it(&d, "exec(x,rows=8):cat a.npy a.npy") < 0) fail_msg("%s", keel_error());
    assert_int_equal(keel_dataset_rows(d), 8);
    assert_int_equal(keel_dataset_field_count(d), 1);
    keel_feed *f = feed_of(d, 3);
    assert_int_equal(read_epoch(f, 0, x, y), 8);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    if (open_it(&d, "exec(sample_weight,x,y):cat b.npy a.npy b.npy") < 0)
        fail_msg("%s", keel_error());
    assert_true(keel_dataset_has_weight(d));
    keel_dataset_destroy(d);
    const char *const inputs[] = { "left", "right" };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.inputs = inputs;
    o.n_input = 2;
    if (keel_dataset_open(&d, spec_of("exec:cat a.npy a.npy b.npy"), &o) < 0)
        fail_msg("%s", keel_error());
    keel_data_field field;
    assert_int_equal(keel_dataset_field_count(d), 3);
    assert_int_equal(keel_dataset_field(d, 1, &field), KEEL_OK);
    assert_string_equal(field.path, "right");
    keel_dataset_destroy(d);
    files_end();
}

static void labels_become_what_the_model_takes(void **state)
{
    files_begin();
    write_pair("a.npy", "b.npy", 4, 1);
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    keel_dataset *d = NULL;
    keel_batch b;
    o.label_mode = KEEL_LABEL_CATEGORICAL;
    o.class_count = 5;
    if (keel_dataset_open(&d, spec_of("exec:cat a.npy b.npy"), &o) < 0)
        fail_msg("%s", keel_error());
    assert_int_equal(keel_dataset_y_shape(d).dim[0], 5);
    keel_feed *f = feed_of(d, 4);
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
    const float *y = keel_batch_field(&b, KEEL_ROLE_TARGET, 0);
    for (int i = 0; i < 20; i++) assert_true(y[i] == (i % 5 == i / 5 + 1 ? 1 : 0));
    keel_feed_release(f, &b);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    o.class_count = 4;
    if (keel_dataset_open(&d, spec_of("exec:cat a.npy b.npy"), &o) < 0)
        fail_msg("%s", keel_error());
    f = feed_of(d, 4);
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &b), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "label 4 of row 3 is not a class"));
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    o.class_count = 0;
    assert_int_equal(keel_dataset_open(&d, spec_of("exec:cat a.npy b.npy"), &o), KEEL_EUNSUP);
    files_end();
}

static void batches_in_fortran_order_are_turned(void **state)
{
    float x[64], y[64];
    files_begin();
    write_pair("a.npy", "b.npy", 2, 0);
    write_header("f.npy", "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 1)}", "acbd");
    keel_dataset *d = NULL;
    keel_batch b;
    if (open_it(&d, "exec:cat f.npy b.npy") < 0) fail_msg("%s", keel_error());
    keel_feed *f = feed_of(d, 2);
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
    assert_memory_equal(keel_batch_field(&b, KEEL_ROLE_INPUT, 0), "abcd", 4);
    keel_feed_release(f, &b);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    write_header("g.npy", "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 2)}",
                 "@@@@AAAABBBBCCCC");
    if (open_it(&d, "exec:cat g.npy b.npy") < 0) fail_msg("%s", keel_error());
    f = feed_of(d, 2);
    assert_int_equal(read_epoch(f, 0, x, y), 2);
    assert_true(x[0] > 3 && x[0] < 3.1 && x[1] > 12 && x[1] < 12.1); /* @@@@ and AAAA */
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    files_end();
}

static void a_bad_first_batch_is_one_clear_line(void **state)
{
    static const struct {
        const char *what, *spec, *says;
        keel_status status;
    } bad[] = {
        { "no program", "exec: ", "give a program", KEEL_EARG },
        { "a wrong list", "exec(x,,y):cat", "a name or value is missing", KEEL_EARG },
        { "a name twice", "exec(x,x):cat", "a second time", KEEL_EARG },
        { "a type in the list", "exec(x=uint8):cat", "the list has names and rows", KEEL_EARG },
        { "no input", "exec(a,y):cat a.npy b.npy",
          "no array named x; there are 'a', 'y' (--inputs chooses)", KEEL_EFORMAT },
        { "a status", "exec:cat a.npy b.npy >&2; exit 3", "ended with status 3", KEEL_EIO },
        { "its last words", "exec:echo one >&2; echo two words >&2; false",
          "ended with status 1: two words", KEEL_EIO },
        { "a signal", "exec:kill -9 $$", "ended by signal 9", KEEL_EIO },
        { "no such program", "exec:./no-such-program", "status 127", KEEL_EIO },
        { "nothing", "exec:true", "ended without a batch", KEEL_EDATA },
        { "a text", "exec:echo Hello, world", "begins with 'Hello, world'", KEEL_EFORMAT },
        { "cut in a header", "exec:head -c 40 a.npy", "'x' of batch 1: the program ended",
          KEEL_EFORMAT },
        { "cut in its rows", "exec:head -c 150 a.npy", "'x' of batch 1: the program ended",
          KEEL_EFORMAT },
        { "x alone", "exec:cat a.npy", "'y' of batch 1: the program ended", KEEL_EFORMAT },
        { "cut, and a status", "exec:head -c 40 a.npy; exit 4", "ended with status 4", KEEL_EIO },
        { "other rows", "exec:cat a.npy d.npy", "'y' of batch 1: 3 rows, but 'x' has 4",
          KEEL_ESHAPE },
        { "no rows", "exec:cat n.npy m.npy", "its first batch has no rows", KEEL_EDATA },
        { "one number", "exec:cat s.npy", "one number", KEEL_ESHAPE },
        { "texts", "exec:cat t.npy b.npy", "has texts", KEEL_EUNSUP },
        { "a huge count", "exec:cat h.npy; sleep 100", "more than the 1073741824", KEEL_EFORMAT },
    };
    files_begin();
    write_pair("a.npy", "b.npy", 4, 0);
    write_pair("c.npy", "d.npy", 3, 0);
    write_pair("n.npy", "m.npy", 0, 0);
    const float one = 1;
    const keel_tensor scalar = { KEEL_FLOAT32, { 0 }, (void *)&one };
    assert_int_equal(keel_npy_write(files_path("s.npy"), &scalar), KEEL_OK);
    write_header("h.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824,)}", "");
    write_header("t.npy", "{'descr': '|S1', 'fortran_order': False, 'shape': (4,)}", "abcd");
    for (size_t i = 0; i < COUNT(bad); i++) {
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        const keel_status s = strcmp(bad[i].spec, "exec: ") ? open_it(&d, bad[i].spec)
                                                            : keel_dataset_open(&d, "exec: ", NULL);
        if (s != bad[i].status || d || !strstr(keel_error(), bad[i].says))
            fail_msg("%s: %d, %s", bad[i].what, (int)s, keel_error());
        assert_int_equal(keel_memory_live(), live);
    }
    files_end();
}

static void a_bad_later_batch_is_one_clear_line(void **state)
{
    static const struct {
        const char *what, *command, *says;
    } bad[] = {
        { "a status at the end", "cat a.npy b.npy; echo why >&2; exit 5", "status 5: why" },
        { "another type", "cat a.npy b.npy b.npy b.npy",
          "'x' of batch 2: int64, but the first batch had float32" },
        { "another shape", "cat a.npy b.npy w.npy b.npy",
          "'x' of batch 2: rows of shape (3,), but the first batch had (2,)" },
        { "half a batch", "cat a.npy b.npy a.npy", "'y' of batch 2: the program ended" },
        { "a bad weight", "cat a.npy b.npy", "weight" },
    };
    files_begin();
    write_pair("a.npy", "b.npy", 4, -1);
    float wide[12] = { 0 };
    const keel_tensor w = { KEEL_FLOAT32, { 2, { 4, 3 } }, wide };
    assert_int_equal(keel_npy_write(files_path("w.npy"), &w), KEEL_OK);
    for (size_t i = 0; i < COUNT(bad); i++) {
        char spec[256];
        keel_dataset *d = NULL;
        keel_batch b;
        keel_status s;
        snprintf(spec, sizeof spec, "exec%s:%s",
                 strstr(bad[i].says, "weight") ? "(x,sample_weight)" : "", bad[i].command);
        if (open_it(&d, spec) < 0) fail_msg("%s: %s", bad[i].what, keel_error());
        keel_feed *f = feed_of(d, 4);
        assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
        while ((s = keel_feed_next(f, &b)) == KEEL_OK) keel_feed_release(f, &b);
        if (s >= 0 || !strstr(keel_error(), bad[i].says))
            fail_msg("%s: %d, %s", bad[i].what, (int)s, keel_error());
        assert_true(keel_feed_next(f, &b) < 0); /* it does not go on in the middle */
        keel_feed_destroy(f);
        keel_dataset_destroy(d);
    }
    files_end();
}

/* Whether a process runs; one that is dead, but not yet reaped, does not. */
static bool runs(const char *file)
{
    char path[64], text[512] = "";
    long pid = 0;
    FILE *f = fopen(files_path(file), "r");
    if (!f || fscanf(f, "%ld", &pid) != 1) fail_msg("%s has no number", file);
    fclose(f);
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (!(f = fopen(path, "r"))) return false;
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    const char *end = strrchr(text, ')');
    return end && end[1] && end[2] != 'Z' && end[2] != 'X';
}

static void a_program_is_killed_with_its_dataset_and_all_it_started(void **state)
{
    files_begin();
    write_pair("a.npy", "b.npy", 4, 0);
    keel_dataset *d = NULL;
    if (open_it(&d, "exec:echo $$ >1; sleep 1000 & echo $! >2; cat a.npy b.npy; sleep 1000") < 0)
        fail_msg("%s", keel_error());
    assert_true(runs("1") && runs("2"));
    keel_feed *f = feed_of(d, 0);
    keel_batch b;
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
    keel_feed_release(f, &b);
    long pid = 0;
    FILE *file = fopen(files_path("1"), "r");
    assert_int_equal(fscanf(file, "%ld", &pid), 1);
    fclose(file);
    /* The feed's thread waits for the program, so it must end first, as if killed by hand. */
    assert_int_equal(kill(-getpgid((pid_t)pid), SIGKILL), 0);
    assert_true(keel_feed_next(f, &b) < 0);
    assert_non_null(strstr(keel_error(), "ended by signal 9"));
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    assert_int_equal(open_it(&d, "exec:echo $$ >1; sleep 1000 & echo $! >2; cat a.npy b.npy; "
                                 "sleep 1000"),
                     KEEL_OK);
    keel_dataset_destroy(d);
    /* Only the guard is reaped: what it has started dies when the kernel comes to it. */
    for (int i = 0; i < 200 && (runs("1") || runs("2")); i++) usleep(10000);
    assert_false(runs("1"));
    assert_false(runs("2"));
    assert_int_equal(open_it(&d, "exec:sleep 1000 & echo $! >2; cat a.npy b.npy"), KEEL_OK);
    keel_dataset_destroy(d);
    for (int i = 0; i < 200 && runs("2"); i++) usleep(10000);
    assert_false(runs("2"));
    files_end();
}

static void a_program_ends_with_the_process_that_started_it(void **state)
{
    files_begin();
    write_pair("a.npy", "b.npy", 4, 0);
    for (int killed = 0; killed < 2; killed++) {
        int status;
        const pid_t child = fork();
        if (child == 0) {
            keel_dataset *d;
            if (open_it(&d,
                        "exec:echo $$ >1; sleep 1000 & echo $! >2; cat a.npy b.npy; sleep 1000"))
                _exit(1);
            if (killed) raise(SIGKILL);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(killed ? WTERMSIG(status) : status, killed ? SIGKILL : 0);
        for (int i = 0; i < 500 && (runs("1") || runs("2")); i++) usleep(10000);
        assert_false(runs("1"));
        assert_false(runs("2"));
    }
    files_end();
}

static void much_said_on_the_error_output_stops_nobody(void **state)
{
    float x[64], y[64];
    files_begin();
    write_pair("a.npy", "b.npy", 4, 0);
    keel_dataset *d = NULL;
    if (open_it(&d, "exec:head -c 300000 /dev/zero >&2; cat a.npy b.npy; "
                    "head -c 300000 /dev/zero >&2") < 0)
        fail_msg("%s", keel_error());
    keel_feed *f = feed_of(d, 4);
    assert_int_equal(read_epoch(f, 0, x, y), 4);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    files_end();
}

static void each_failed_allocation_is_reported_and_nothing_leaks(void **state)
{
    files_begin();
    write_pair("a.npy", "b.npy", 4, 0);
    bool done = false;
    for (int64_t i = 0; !done; i++) {
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        keel_memory_fail_at(i);
        keel_status s = open_it(&d, "exec(x,y,sample_weight):cat a.npy b.npy b.npy");
        keel_memory_fail_at(-1);
        done = s >= 0;
        if (s < 0) assert_int_equal(s, KEEL_ENOMEM);
        keel_dataset_destroy(d);
        assert_int_equal(keel_memory_live(), live);
        assert_true(i < 100);
    }
    files_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_come_in_their_order_and_again_for_each_pass),
        cmocka_unit_test(a_program_knows_its_pass_and_its_fields),
        cmocka_unit_test(fields_and_rows_can_be_named),
        cmocka_unit_test(labels_become_what_the_model_takes),
        cmocka_unit_test(batches_in_fortran_order_are_turned),
        cmocka_unit_test(a_bad_first_batch_is_one_clear_line),
        cmocka_unit_test(a_bad_later_batch_is_one_clear_line),
        cmocka_unit_test(a_program_is_killed_with_its_dataset_and_all_it_started),
        cmocka_unit_test(a_program_ends_with_the_process_that_started_it),
        cmocka_unit_test(much_said_on_the_error_output_stops_nobody),
        cmocka_unit_test(each_failed_allocation_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
