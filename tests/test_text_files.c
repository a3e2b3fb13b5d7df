/* JSON lines and lines of text: keys become fields, lists keep their shape, and what is wrong is
 * refused with its line and key. */
#include "table_files.h"
#include "keel/pipeline.h"
#include <zlib.h>

/* ---- JSON lines ------------------------------------------------------------------------------ */

static void keys_become_fields(void **state)
{
    files_begin();
    files_text("t.jsonl",
               "{\"id\": 7, \"image\": {\"pixels\": [[1, 2], [3, 4.5]]}, \"k\": \"dog\", "
               "\"text\": \"a b\", \"ok\": true}\n"
               "\r\n"
               "{\"k\": \"cat\", \"image\": {\"pixels\": [[5, 6], [7, 8]], \"z\": 0}, "
               "\"id\": 8.5, \"text\": \"\\u00e9\\n\", \"ok\": false}\r\n");
    keel_dataset_options o = options();
    o.inputs = LIST("x=image.pixels", "text", "n=id,ok");
    o.n_input = 3;
    o.label = "k";
    keel_dataset *d = opened("t.jsonl", &o);
    assert_int_equal(keel_dataset_rows(d), 2);
    keel_data_field f;
    assert_int_equal(keel_dataset_field(d, 0, &f), KEEL_OK);
    assert_int_equal(f.shape.rank, 2);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 2, 3, 4.5, 5, 6, 7, 8 }, 8);
    check_texts(d, 1, "a b|\xc3\xa9\n");
    check_field(d, 2, KEEL_FLOAT32, (double[]){ 7, 1, 8.5, 0 }, 4);
    check_field(d, 3, KEEL_INT32, (double[]){ 1, 0 }, 2);
    assert_string_equal(keel_dataset_class_name(d, 1), "dog");
    keel_dataset_destroy(d);
    files_end();
}

static void without_options_x_and_y_or_all_numbers_are_taken(void **state)
{
    files_begin();
    keel_dataset_options o = options();
    files_text("t.jsonl", "{\"y\": 1, \"x\": [1, 2], \"other\": \"text\"}\n"
                          "{\"x\": [3, 4], \"y\": 0, \"other\": 5}");
    keel_dataset *d = opened("t.jsonl", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 2, 3, 4 }, 4);
    check_field(d, 1, KEEL_INT32, (double[]){ 1, 0 }, 2);
    keel_dataset_destroy(d);
    files_text("t.jsonl",
               "{\"b\": 1, \"k\": 3, \"a\": 20000001}\n{\"a\": 4, \"b\": 5, \"k\": 6}\n");
    o.label = "k";
    d = opened("t.jsonl", &o);
    check_field(d, 0, KEEL_INT64, (double[]){ 1, 20000001, 5, 4 }, 4);
    keel_dataset_destroy(d);
    o.label = NULL;
    o.inputs = LIST("dense"); /* a model's name, which is no key */
    o.targets = LIST("out");
    o.n_input = o.n_target = 1;
    files_text("t.jsonl", "{\"x\": [1], \"y\": [1, 2]}\n");
    d = opened("t.jsonl", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1 }, 1);
    check_field(d, 1, KEEL_FLOAT32, (double[]){ 1, 2 }, 2);
    keel_dataset_destroy(d);
    files_end();
}

static void missing_keys_and_null_are_missing_values(void **state)
{
    files_begin();
    keel_dataset_options o = options();
    o.label = "y";
    files_text("t.jsonl", "{\"a\": null, \"b\": 1, \"y\": 0}\n{\"a\": 2, \"y\": 1}\n"
                          "{\"a\": 4, \"b\": 3, \"y\": 1}\n{\"a\": 9, \"b\": 2, \"y\": null}\n");
    refused("t.jsonl", &o, KEEL_EFORMAT, "t.jsonl:1: key 'a' has no value; such rows are left out");
    o.missing = KEEL_MISSING_DROP;
    keel_dataset *d = opened("t.jsonl", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 4, 3 }, 2);
    check_field(d, 1, KEEL_INT32, (double[]){ 1 }, 1);
    if (!strstr(notes, "t.jsonl: 3 rows left out, 1 kept")) fail_msg("%s", notes);
    keel_dataset_destroy(d);
    o.missing = KEEL_MISSING_MEAN;
    refused("t.jsonl", &o, KEEL_EFORMAT, "t.jsonl:4: no label in key 'y'");
    files_text("t.jsonl", "{\"a\": null, \"b\": 1, \"y\": 0}\n{\"a\": 2, \"y\": 1}\n"
                          "{\"a\": 4, \"b\": 4, \"y\": 1}\n");
    d = opened("t.jsonl", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 3, 1, 2, 2.5, 4, 4 }, 6);
    keel_dataset_destroy(d);
    files_text("t.jsonl", "{\"x\": [null, 1], \"y\": 0}\n{\"x\": [2, 3], \"y\": 0}\n");
    d = opened("t.jsonl", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 2, 1, 2, 3 }, 4);
    keel_dataset_destroy(d);
    files_text("t.jsonl", "{\"x\": null, \"y\": 0}\n{\"x\": [2, 3], \"y\": 0}\n");
    refused("t.jsonl", &o, KEEL_EFORMAT, "t.jsonl:1: key 'x' has no value; lists are not filled");
    o.missing = KEEL_MISSING_DROP;
    d = opened("t.jsonl", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 2, 3 }, 2);
    keel_dataset_destroy(d);
    files_end();
}

static void words_of_a_key_are_numbered(void **state)
{
    const keel_vocabulary own[] = { { .column = "p.c" } };
    files_begin();
    keel_dataset_options o = options();
    o.inputs = LIST("x=p.c,n");
    o.n_input = 1;
    o.vocabularies = own;
    o.n_vocabulary = 1;
    files_text("t.jsonl", "{\"p\": {\"c\": \"red\"}, \"n\": 1}\n{\"p\": {\"c\": \"blue\"}, \"n\": "
                          "2}\n{\"p.c\": 10, \"n\": 2}\n");
    keel_dataset *d = opened("t.jsonl", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 2, 1, 1, 2, 0, 2 }, 6);
    if (!strstr(notes, "words of key 'p.c': 0 10, 1 blue, 2 red")) fail_msg("%s", notes);
    keel_dataset_destroy(d);
    files_end();
}

static void a_bad_line_is_one_clear_line(void **state)
{
    static const struct {
        const char *text, *says;
        keel_status status;
    } bad[] = {
        { "", "t.jsonl: no rows", KEEL_EDATA },
        { "\n \n", "t.jsonl: no rows", KEEL_EDATA },
        { "{\"x\": 1}\n{\"x\": }\n", "t.jsonl:2: not JSON at byte ", KEEL_EFORMAT },
        { "{\"x\": 1}\n{\"x\": NaN}\n", "JSON has no NaN: write null", KEEL_EFORMAT },
        { "{\"x\": 1}\n{\"x\": -Infinity}\n", "t.jsonl:2: not JSON", KEEL_EFORMAT },
        { "{\"x\": 1}\n[1, 2]\n", "t.jsonl:2: a line must be an object", KEEL_EFORMAT },
        { "[\n{\"x\": 1}\n]\n", "one JSON value over several lines", KEEL_EFORMAT },
        { "{\"x\": 1}\n{\"x\": \"a\"}\n", "t.jsonl:2: key 'x' has 'a', which is not a number",
          KEEL_EFORMAT },
        { "{\"x\": 1}\n{\"x\": [1]}\n", "t.jsonl:2: key 'x' has a list where line 1 has a number",
          KEEL_EFORMAT },
        { "{\"x\": [1]}\n{\"x\": 1}\n", "t.jsonl:2: key 'x' has a number where line 1 has a list",
          KEEL_EFORMAT },
        { "{\"x\": [1, 2]}\n{\"x\": [1]}\n",
          "t.jsonl:2: key 'x' has a list of 1, where line 1 has 2; rows must have one shape",
          KEEL_ESHAPE },
        { "{\"x\": [[1], [2, 3]]}\n", "key 'x' has a list of 2, where line 1 has 1", KEEL_ESHAPE },
        { "{\"x\": [[1], 2]}\n", "t.jsonl:1: key 'x' has a number where", KEEL_EFORMAT },
        { "{\"x\": []}\n", "t.jsonl:1: key 'x' has an empty list", KEEL_EFORMAT },
        { "{\"x\": {\"z\": 1}}\n", "key 'x' has an object; name one of its keys, as 'x.KEY'",
          KEEL_EFORMAT },
        { "{\"x\": 1, \"x\": 2}\n", "duplicate object key", KEEL_EFORMAT },
        { "{\"x\": 1e39}\n", "which float32 cannot hold", KEEL_EFORMAT },
        { "{\"x\": 1e999}\n", "real number overflow", KEEL_EFORMAT },
        { "{\"x\": 99999999999999999999}\n", "too big integer", KEEL_EFORMAT },
        { "{\"x\": \"\\ud800\"}\n", "t.jsonl:1: not JSON", KEEL_EFORMAT },
        { "{\"x\": [[[[[[[[[[1]]]]]]]]]]}\n", "has lists in more than ", KEEL_EFORMAT },
        { "{\"y\": 1}\n", "no key except the label", KEEL_EFORMAT },
        { "{\"a\": [1], \"b\": 2}\n", "key 'a' has a list; an input of several keys takes one",
          KEEL_EUNSUP },
        { "{\"x\": 1, \"y\": [\"a\"]}\n", "key 'y' has 'a', which is not a number", KEEL_EFORMAT },
        { "{\"x\": 1, \"y\": 2}\n{\"x\": 1, \"y\": [2]}\n", "t.jsonl:2: key 'y' has a list where",
          KEEL_EFORMAT },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(bad); i++) {
        files_text("t.jsonl", bad[i].text);
        refused("t.jsonl", NULL, bad[i].status, bad[i].says);
    }
    files_write("t.jsonl", "{\"x\":\0 1}\n", 10);
    refused("t.jsonl", NULL, KEEL_EFORMAT, "t.jsonl: not a text file");
    keel_dataset_options o = options();
    o.inputs = LIST("a=x", "b=x");
    o.n_input = 2;
    files_text("t.jsonl", "{\"x\": 1}\n");
    refused("t.jsonl", &o, KEEL_EARG, "key 'x' is requested twice");
    o.inputs = LIST("a=x");
    o.n_input = 1;
    o.label = "x";
    o.inputs = LIST("x"); /* by the name of a model's input */
    refused("t.jsonl", &o, KEEL_EARG, "key 'x' is requested twice");
    o.inputs = LIST("a=x"); /* what is learned may be an input, too */
    keel_dataset *d = opened("t.jsonl", &o);
    assert_int_equal(keel_dataset_field_count(d), 2);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1 }, 1);
    check_field(d, 1, KEEL_INT32, (double[]){ 1 }, 1);
    keel_dataset_destroy(d);
    o.label = NULL;
    o.n_input = 2;
    o.inputs = LIST("a=x", "b=z");
    refused("t.jsonl", &o, KEEL_EFORMAT, "t.jsonl:1: key 'z' has no value");
    files_end();
}

static void write_gz(const char *name, const char *text)
{
    gzFile f = gzopen(files_path(name), "wb");
    assert_true(gzwrite(f, text, (unsigned)strlen(text)) > 0 || !*text);
    gzclose(f);
}

static void several_files_are_one_table(void **state)
{
    files_begin();
    files_folder("set");
    files_text("set/b.jsonl", "\xef\xbb\xbf{\"x\": 3}\n");
    write_gz("set/a.ndjson.gz", "{\"x\": 1}\n{\"x\": 2}\n");
    keel_dataset *d = opened("set", NULL);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 2, 3 }, 3);
    keel_dataset_destroy(d);
    files_text("set/c.jsonl", "{\"x\": \"three\"}\n");
    refused("set", NULL, KEEL_EFORMAT, "c.jsonl:1: key 'x' has 'three'");
    files_end();
}

/* ---- lines of text --------------------------------------------------------------------------- */

/* tf.data.TextLineDataset gives the same, except that it leaves out each carriage return. */
static void lines_are_rows_of_one_text(void **state)
{
    files_begin();
    files_folder("set");
    files_text("set/a.txt", "a\r\n\nb c\n\r\nlast");
    write_gz("set/b.txt.gz", "\xef\xbb\xbf"
                             "packed\n");
    files_text("set/c", "other\n\n");
    char spec[600];
    keel_dataset *d = opened("set/a.txt", NULL);
    assert_int_equal(keel_dataset_rows(d), 5);
    check_texts(d, 0, "a||b c||last");
    keel_dataset_destroy(d);
    d = opened("set", NULL);
    check_texts(d, 0, "a||b c||last|packed");
    keel_dataset_destroy(d);
    snprintf(spec, sizeof spec, "lines:%s", files_path("set/[ac]*"));
    assert_int_equal(keel_dataset_open(&d, spec, NULL), KEEL_OK);
    check_texts(d, 0, "a||b c||last|other|");
    keel_dataset *t = NULL, *v = NULL;
    assert_int_equal(keel_dataset_split(d, 0.5, 1, &t, &v), KEEL_OK);
    check_texts(v, 0, "|last|other|");
    keel_dataset_destroy(t);
    keel_dataset_destroy(v);
    keel_dataset_destroy(d);
    keel_dataset_options o = options();
    o.inputs = LIST("words");
    o.n_input = 1;
    d = opened("set/a.txt", &o);
    keel_data_field f;
    assert_int_equal(keel_dataset_field(d, 0, &f), KEEL_OK);
    assert_string_equal(f.path, "words");
    keel_dataset_destroy(d);
    o.n_input = 0;
    o.label = "y";
    refused("set/a.txt", &o, KEEL_EARG, "lines of text have no label 'y'");
    o.label = NULL;
    files_text("set/a.txt", "");
    refused("set/a.txt", &o, KEEL_EDATA, "a.txt: no rows");
    refused("set/none.txt", &o, KEEL_EIO, "none.txt");
    files_end();
}

static void long_lines_cross_the_buffer(void **state)
{
    enum { N = 300000 };
    files_begin();
    char *text = malloc(3 * N + 10);
    for (int k = -2; k < 3; k++) {
        const int first = (1 << 18) + k;
        memset(text, 'a', (size_t)first);
        text[first] = '\n';
        memset(text + first + 1, 'b', N);
        text[first + 1 + N] = 0;
        files_text("t.txt", text);
        keel_dataset *d = opened("t.txt", NULL);
        assert_int_equal(keel_dataset_rows(d), 2);
        keel_feed *feed = NULL;
        keel_batch b;
        const keel_feed_options o = { .want = (keel_dtype[]){ KEEL_STRING }, .batch_size = 2 };
        if (keel_feed_create(&feed, d, &o) < 0) fail_msg("%s", keel_error());
        assert_int_equal(keel_feed_begin_epoch(feed, 0), KEEL_OK);
        assert_int_equal(keel_feed_next(feed, &b), KEEL_OK);
        const keel_string *s = b.field[0];
        assert_int_equal(s[0].n_bytes, first);
        assert_int_equal(s[1].n_bytes, N);
        assert_true(s[0].data[first - 1] == 'a' && s[1].data[0] == 'b' && s[1].data[N - 1] == 'b');
        keel_feed_release(feed, &b);
        keel_feed_destroy(feed);
        keel_dataset_destroy(d);
    }
    free(text);
    files_end();
}

static void every_failed_allocation_is_survived(void **state)
{
    static const keel_vocabulary own = { .column = "c" };
    files_begin();
    files_folder("set");
    files_text("set/a.jsonl", "{\"c\": \"a\", \"s\": \"t\", \"v\": [1, null], \"k\": \"z\"}\n"
                              "{\"c\": \"b\", \"s\": \"\", \"v\": [3, 20000001], \"k\": \"w\"}\n");
    write_gz("set/b.jsonl.gz", "{\"c\": \"b\", \"s\": \"u\", \"v\": [0.5, 1], \"k\": \"w\"}\n");
    write_gz("t.txt.gz", "a\nb\n");
    for (int kind = 0; kind < 3; kind++) {
        bool done = false;
        for (int n = 0; !done; n++) {
            const int64_t live = keel_memory_live();
            keel_dataset *d = NULL;
            keel_dataset_options o = options();
            o.inputs = LIST("c", "s", "v");
            o.n_input = kind < 2 ? 3 : 0;
            o.label = kind < 2 ? "k" : NULL;
            o.vocabularies = &own;
            o.n_vocabulary = 1;
            o.missing = kind ? KEEL_MISSING_DROP : KEEL_MISSING_MEAN;
            keel_memory_fail_at(n);
            const keel_status s =
                keel_dataset_open(&d, files_path(kind < 2 ? "set" : "t.txt.gz"), &o);
            keel_memory_fail_at(-1);
            done = s >= 0;
            if (!done && s != KEEL_ENOMEM) fail_msg("call %d: %d, %s", n, s, keel_error());
            keel_dataset_destroy(d);
            assert_int_equal(keel_memory_live(), live);
            assert_in_range(n, 0, 500);
        }
    }
    files_end();
}

/* ---- names of rows --------------------------------------------------------------------------- */

/* The rows of a directory that stages, written as "name argument number", have read. */
static keel_dataset *staged(const char *stages)
{
    char copy[96], *rest;
    keel_dataset *d = opened("set", NULL), *next;
    snprintf(copy, sizeof copy, "%s", stages);
    for (char *part = strtok_r(copy, "|", &rest); part; part = strtok_r(NULL, "|", &rest)) {
        char name[32], key[32], value[32];
        const bool wraps = strstr(part, " wrap") != NULL;
        assert_int_equal(sscanf(part, " %31s %31s %31s", name, key, value), 3);
        assert_int_equal(keel_dataset_apply(&next, name,
                                            KEEL_ARGS(KEEL_ARG_JSON(key, value),
                                                      wraps ? (keel_arg)KEEL_ARG_STR("end", "wrap")
                                                            : (keel_arg){ 0 }),
                                            &d, 1),
                         KEEL_OK);
        keel_dataset_destroy(d);
        d = next;
    }
    return d;
}

/* keel predict writes them beside its predictions. */
static void a_row_has_the_name_of_its_file_behind_stages(void **state)
{
    static const struct {
        const char *stages, *names; /* of the first rows; -: none */
    } cases[] = {
        { "skip count 0", "0 1 2 3 4 -" },
        { "skip count 2", "2 3 4 - -" },
        { "batch batch_size 2", "0 1 2 3 4 -" },
        { "skip count 1 | batch batch_size 3", "1 2 3 4 -" },
        { "batch batch_size 3 wrap", "0 1 2 3 4 0 -" },
        { "batch batch_size 2 | prefetch buffer_size 1", "0 1 2 3 4 -" },
        { "batch batch_size 2 | skip count 1", "- -" }, /* which rows they are is not followed */
    };
    files_begin();
    files_folder("set");
    files_folder("set/a");
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "set/a/%d.txt", i);
        files_text(name, "text");
    }
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char got[64] = "";
        size_t at = 0;
        keel_dataset *d = staged(cases[k].stages);
        for (int64_t i = 0; i < (int64_t)(strlen(cases[k].names) + 1) / 2; i++) {
            const char *name = keel_dataset_row_name(d, i);
            at += (size_t)snprintf(got + at, sizeof got - at, "%s%c", i ? " " : "",
                                   name ? strrchr(name, '/')[1] : '-');
        }
        if (strcmp(got, cases[k].names) != 0) fail_msg("%s: %s", cases[k].stages, got);
        keel_dataset_destroy(d);
    }
    files_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_become_fields),
        cmocka_unit_test(without_options_x_and_y_or_all_numbers_are_taken),
        cmocka_unit_test(missing_keys_and_null_are_missing_values),
        cmocka_unit_test(words_of_a_key_are_numbered),
        cmocka_unit_test(a_bad_line_is_one_clear_line),
        cmocka_unit_test(several_files_are_one_table),
        cmocka_unit_test(lines_are_rows_of_one_text),
        cmocka_unit_test(long_lines_cross_the_buffer),
        cmocka_unit_test(every_failed_allocation_is_survived),
        cmocka_unit_test(a_row_has_the_name_of_its_file_behind_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
