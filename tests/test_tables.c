/* Tables: missing values, words, truth values, dates, several files, and what a table costs when it
 * is hostile. */
#include "table_files.h"
#include "golden.h"
#include <zlib.h>

/* ---- missing values -------------------------------------------------------------------------- */

static const char with_holes[] = "a,b,y\n"
                                 "1,2,0\n"
                                 "NA,4,1\n"
                                 "3,,1\n"
                                 "5,9,0\n";

static void a_missing_value_is_refused_dropped_or_filled(void **state)
{
    static const struct {
        keel_missing missing;
        double value;
        int64_t rows;
        double x[8], y[4];
        const char *note;
    } good[] = {
        { KEEL_MISSING_DROP,
          0,
          2,
          { 1, 2, 5, 9 },
          { 0, 0 },
          "t.csv: 2 rows left out, 2 kept: a value is missing (first: " },
        { KEEL_MISSING_FILL,
          -1,
          4,
          { 1, 2, -1, 4, 3, -1, 5, 9 },
          { 0, 1, 1, 0 },
          "t.csv: 2 missing values filled (first: " },
        { KEEL_MISSING_MEAN,
          0,
          4,
          { 1, 2, 3, 4, 3, 5, 5, 9 },
          { 0, 1, 1, 0 },
          "t.csv:3, column 'a')" },
    };
    files_begin();
    files_text("t.csv", with_holes);
    keel_dataset_options o = options();
    o.label = "y";
    refused("t.csv", &o, KEEL_EFORMAT,
            "t.csv:3: column 'a' has 'NA', a missing value, which is not a number; such rows are "
            "left out with --missing drop, and values filled with --missing mean or a number");
    for (size_t i = 0; i < COUNT(good); i++) {
        o = options();
        o.label = "y";
        o.missing = good[i].missing;
        o.missing_value = good[i].value;
        keel_dataset *d = opened("t.csv", &o);
        assert_int_equal(keel_dataset_rows(d), good[i].rows);
        check_field(d, 0, KEEL_FLOAT32, good[i].x, 2 * good[i].rows);
        check_field(d, 1, KEEL_INT32, good[i].y, good[i].rows);
        if (!strstr(notes, good[i].note)) fail_msg("%s", notes);
        keel_dataset_destroy(d);
    }
    files_end();
}

static void every_word_that_pandas_reads_as_missing_is(void **state)
{
    static const char *const words[] = {
        "",     "#N/A",   "#N/A N/A", "#NA",     "-1.#IND", "-1.#QNAN", "-NaN",
        "-nan", "1.#IND", "NULL",     "1.#QNAN", "<NA>",    "N/A",      "NA",
        "NaN",  "None",   "n/a",      "nan",     "null",    "\"\"",     "\"NA\"",
    };
    static const char *const none[] = { "na", "-", "?", "Null", "nil", " NA", "missing" };
    char text[64];
    files_begin();
    keel_dataset_options o = options();
    o.missing = KEEL_MISSING_FILL;
    o.missing_value = 7;
    for (size_t i = 0; i < COUNT(words); i++) {
        snprintf(text, sizeof text, "a,b\n1,2\n%s,3\n", words[i]);
        files_text("t.csv", text);
        keel_dataset *d = opened("t.csv", &o);
        check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 2, 7, 3 }, 4);
        keel_dataset_destroy(d);
    }
    for (size_t i = 0; i < COUNT(none); i++) {
        snprintf(text, sizeof text, "a,b\n1,2\n%s,3\n", none[i]);
        files_text("t.csv", text);
        refused("t.csv", &o, KEEL_EFORMAT, "which is not a number");
    }
    files_end();
}

static void a_mean_makes_whole_numbers_real_only_if_it_is_not_one(void **state)
{
    files_begin();
    keel_dataset_options o = options();
    o.missing = KEEL_MISSING_MEAN;
    o.inputs = LIST("a", "b");
    o.n_input = 2;
    files_text("t.csv", "a,b\n20000001,1\n,\n20000003,2\n20000006,2\n");
    keel_dataset *d = opened("t.csv", &o);
    check_field(d, 1, KEEL_FLOAT32, (double[]){ 1, (float)(5.0 / 3), 2, 2 }, 4);
    keel_data_field f;
    assert_int_equal(keel_dataset_field(d, 0, &f), KEEL_OK);
    assert_int_equal(f.dtype, KEEL_FLOAT32); /* 60000010 / 3 */
    keel_dataset_destroy(d);
    files_text("t.csv", "a,b\n20000001,1\n,\n20000003,2\n");
    d = opened("t.csv", &o);
    check_field(d, 0, KEEL_INT64, (double[]){ 20000001, 20000002, 20000003 }, 3);
    keel_dataset_destroy(d);
    files_text("t.csv", "a,b\n1,\n2,NA\n");
    refused("t.csv", &o, KEEL_EDATA, "nothing to take the mean of: no row has a value where ");
    o.missing = KEEL_MISSING_DROP;
    refused("t.csv", &o, KEEL_EDATA, "each of its 2 rows has a missing value (first: ");
    files_end();
}

/* What a column has is not known before its first value. */
static void a_column_that_begins_without_values_has_what_comes_first(void **state)
{
    static const struct {
        const char *rows, *texts; /* NULL: it is refused, for its line 2 */
    } cases[] = {
        { ",0\nx,1\n,2\n", "|x|" }, { ",0\n,1\nx,2\n7,3\n", "||x|7" },
        { ",0\n,1\n", "|" },        { "NA,0\nx,1\n", "NA|x" },
        { ",0\n7,1\n", NULL },      { ",0\nNA,1\n7,2\nx,3\n", NULL },
    };
    char text[100], texts[100];
    keel_data_field f;
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        keel_dataset_options o = options();
        o.inputs = LIST("a", "b");
        o.n_input = 2;
        snprintf(text, sizeof text, "a,b\n%s", cases[i].rows);
        files_text("t.csv", text);
        if (!cases[i].texts) {
            refused("t.csv", &o, KEEL_EFORMAT, "t.csv:2: column 'a' has '");
            refused("t.csv", &o, KEEL_EFORMAT, "filled with --missing mean or a number");
            continue;
        }
        keel_dataset *d = opened("t.csv", &o);
        assert_int_equal(keel_dataset_field(d, 0, &f), KEEL_OK);
        assert_int_equal(f.dtype, KEEL_STRING);
        read_field(d, 0, NULL, texts, sizeof texts);
        assert_string_equal(texts, cases[i].texts);
        keel_dataset_destroy(d);
    }
    files_end();
}

/* A missing label is not filled; one NA among numbers does not make class names of them. */
static void targets_are_dropped_or_refused_but_not_filled(void **state)
{
    static const char *const texts[] = { "a,y\n1,0\n2,\n3,1\n", "a,y\n1,0\n2,NA\n3,1\n" };
    files_begin();
    for (int i = 0; i < 2; i++) {
        keel_dataset_options o = options();
        o.label = "y";
        files_text("t.csv", texts[i]);
        refused("t.csv", &o, KEEL_EFORMAT,
                i ? "t.csv:3: column 'y' has 'NA'" : "t.csv:3: no label");
        o.missing = KEEL_MISSING_MEAN;
        refused("t.csv", &o, KEEL_EFORMAT, i ? "targets are not filled" : "t.csv:3: no label");
        o.missing = KEEL_MISSING_DROP;
        keel_dataset *d = opened("t.csv", &o);
        check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 3 }, 2);
        check_field(d, 1, KEEL_INT32, (double[]){ 0, 1 }, 2);
        keel_dataset_destroy(d);
    }
    keel_dataset_options o = options();
    o.label = "y";
    files_text("t.csv", "a,y\n1,dog\n2,None\n3,cat\n"); /* among names it is one */
    keel_dataset *d = opened("t.csv", &o);
    check_field(d, 1, KEEL_INT32, (double[]){ 2, 0, 1 }, 3);
    keel_dataset_destroy(d);
    o.label = NULL;
    o.targets = LIST("t=y,z");
    o.n_target = 1;
    o.missing = KEEL_MISSING_FILL;
    files_text("t.csv", "a,y,z\n1,2,3\n2,,5\n");
    refused("t.csv", &o, KEEL_EFORMAT,
            "t.csv:3: column 'y' has '', a missing value, which is not a "
            "number; targets are not filled");
    files_end();
}

static void a_text_is_missing_only_for_drop(void **state)
{
    files_begin();
    keel_dataset_options o = options();
    o.inputs = LIST("s", "n");
    o.n_input = 2;
    files_text("t.csv", "s,n\nred,1\n,2\nNA,3\n");
    o.missing = KEEL_MISSING_MEAN;
    keel_dataset *d = opened("t.csv", &o);
    check_texts(d, 0, "red||NA");
    keel_dataset_destroy(d);
    o.missing = KEEL_MISSING_DROP;
    d = opened("t.csv", &o);
    check_texts(d, 0, "red");
    keel_dataset_destroy(d);
    files_text("t.csv", "s,n\n,1\nNA,2\nred,3\nblue,\n"); /* the first row shows nothing */
    d = opened("t.csv", &o);
    check_texts(d, 0, "red");
    keel_dataset_destroy(d);
    files_text("t.csv", "s,n\n,\n4,2\n5,3\n");
    o.missing = KEEL_MISSING_MEAN;
    d = opened("t.csv", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 4.5, 4, 5 }, 3);
    keel_dataset_destroy(d);
    files_end();
}

/* Means are added up in double, as there; words are numbered as categories sorted by bytes. */
static void a_table_is_that_of_pandas_to_the_bit(void **state)
{
    static const char *const kinds[] = { "drop", "mean", "constant" };
    const keel_vocabulary own = { .column = "word" };
    json_t *golden = golden_load("tables.json");
    files_begin();
    files_text("t.csv", golden_text(golden, "text"));
    for (int i = 0; i < 3; i++) {
        const json_t *want = json_object_get(golden, kinds[i]),
                     *y = json_object_get(golden, "drop_y");
        double x[256] = { 0 };
        keel_dataset_options o = options();
        o.label = "y";
        o.vocabularies = &own;
        o.n_vocabulary = 1;
        o.missing = i == 0 ? KEEL_MISSING_DROP : i == 1 ? KEEL_MISSING_MEAN : KEEL_MISSING_FILL;
        o.missing_value = -2.5;
        for (size_t k = 0; k < json_array_size(want); k++)
            x[k] = json_number_value(json_array_get(want, k));
        keel_dataset *d = opened("t.csv", &o);
        check_field(d, 0, KEEL_FLOAT32, x, (int64_t)json_array_size(want));
        for (size_t k = 0; k < json_array_size(y); k++)
            x[k] = json_number_value(json_array_get(y, k));
        if (i == 0) check_field(d, 1, KEEL_INT32, x, (int64_t)json_array_size(y));
        keel_dataset_destroy(d);
    }
    files_end();
    json_decref(golden);
}

/* ---- words, truth and dates ------------------------------------------------------------------ */

static void a_vocabulary_makes_numbers_of_texts(void **state)
{
    static const char *const known[] = { "red", "green", "blue" };
    const keel_vocabulary own = { .column = "c" }, given = { "c", known, 3 };
    files_begin();
    files_text("t.csv", "a,c,y\n1,red,0\n2,blue,1\n3,\"a, b\",1\n,zebra,0\n4,red,0\n");
    keel_dataset_options o = options();
    o.label = "y";
    o.missing = KEEL_MISSING_DROP;
    o.n_vocabulary = 1;
    o.vocabularies = &own;
    keel_dataset *d = opened("t.csv", &o); /* the zebra was left out */
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 2, 2, 1, 3, 0, 4, 2 }, 8);
    if (!strstr(notes, "t.csv: words of column 'c': 0 a, b, 1 blue, 2 red")) fail_msg("%s", notes);
    keel_dataset_destroy(d);
    o.vocabularies = &given;
    refused("t.csv", &o, KEEL_EDATA,
            "t.csv:4: column 'c' has 'a, b', which is not one of the 3 words of its vocabulary");
    files_text("t.csv", "c,y\ngreen,0\nblue,1\n,1\n");
    d = opened("t.csv", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 2 }, 2);
    keel_dataset_destroy(d);
    o.missing = KEEL_MISSING_MEAN;
    refused("t.csv", &o, KEEL_EFORMAT,
            "t.csv:4: column 'c' has '', a missing value, which is not a "
            "number; words are not filled");
    o.vocabularies = &(keel_vocabulary){ .column = "d" };
    refused("t.csv", &o, KEEL_EARG,
            "a vocabulary is given for 'd', which is no column of an input");
    o.vocabularies = &(keel_vocabulary){ .column = "y" };
    refused(
        "t.csv", &o, KEEL_EARG,
        "a vocabulary is given for 'y', which is no column of an input; words of a label column "
        "need none");
    o.vocabularies = &(keel_vocabulary){ "c", LIST("a", "b", "a"), 3 };
    refused("t.csv", &o, KEEL_EARG, "the vocabulary of 'c' has 'a' twice");
    o.vocabularies = (keel_vocabulary[]){ { .column = "c" }, { .column = "c" } };
    o.n_vocabulary = 2;
    refused("t.csv", &o, KEEL_EARG, "column 'c' has two vocabularies");
    o.missing = (keel_missing)9;
    refused("t.csv", &o, KEEL_EARG, "missing");
    files_end();
}

static void true_and_false_are_one_and_zero(void **state)
{
    files_begin();
    keel_dataset_options o = options();
    files_text("t.csv", "a,b\ntrue,False\nFALSE,TRUE\nTrue,false\n");
    keel_dataset *d = opened("t.csv", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 0, 0, 1, 1, 0 }, 6);
    keel_dataset_destroy(d);
    o.inputs = LIST("a"); /* named, and its first value is no number: texts */
    o.n_input = 1;
    d = opened("t.csv", &o);
    check_texts(d, 0, "true|FALSE|True");
    keel_dataset_destroy(d);
    files_end();
}

static void dates_are_refused_by_name(void **state)
{
    static const char *const dates[] = { "2024-01-31",          "31.1.2024",   "1/31/24",
                                         "2024-01-31 12:30:00", "31-Jan-2024", "12:30",
                                         "2024-01-31T12:30Z",   "12:30:59" };
    static const char *const none[] = { "1-2", "2024-", "1.2.3.4x", "12:3", "a-b-c", "1--2" };
    char text[64];
    files_begin();
    for (size_t i = 0; i < COUNT(dates) + COUNT(none); i++) {
        const bool date = i < COUNT(dates);
        snprintf(text, sizeof text, "a,b\n1,%s\n", date ? dates[i] : none[i - COUNT(dates)]);
        files_text("t.csv", text);
        refused("t.csv", NULL, KEEL_EFORMAT, "t.csv:2: column 'b' has '");
        if (!strstr(keel_error(), "looks like a date") == date) fail_msg("%s", keel_error());
    }
    files_end();
}

static void numbers_are_decimal(void **state)
{
    static const struct {
        const char *text;
        double want;
    } good[] = {
        { "1e5", 1e5 }, { "+1", 1 },    { "-.5", -.5 }, { "5.", 5 }, { "1E-3", (float)1e-3 },
        { " 7 ", 7 },   { "\t8\t", 8 }, { "0001", 1 },  { "-0", 0 },
    };
    static const char *const bad[] = { "inf",
                                       "-inf",
                                       "Infinity",
                                       "0x10",
                                       "1e",
                                       "1_000",
                                       "1 2",
                                       "1e39",
                                       "1,5",
                                       "1d5",
                                       "\xc2\xa0"
                                       "1",
                                       "٣" };
    char text[64];
    files_begin();
    for (size_t i = 0; i < COUNT(good); i++) {
        snprintf(text, sizeof text, "a;b\n%s;0.5\n", good[i].text);
        files_text("t.csv", text);
        keel_dataset *d = opened("t.csv", NULL);
        check_field(d, 0, KEEL_FLOAT32, (double[]){ good[i].want, 0.5 }, 2);
        keel_dataset_destroy(d);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        snprintf(text, sizeof text, "a;b\n%s;0.5\n", bad[i]);
        files_text("t.csv", text);
        refused("t.csv", NULL, KEEL_EFORMAT, "t.csv:2: column 'a' has '");
        assert_non_null(strstr(keel_error(), strcmp(bad[i], "1e39") ? "which is not a number"
                                                                    : "which float32 cannot hold"));
    }
    files_end();
}

/* ---- files ----------------------------------------------------------------------------------- */

static void write_gz(const char *name, const char *text)
{
    gzFile f = gzopen(files_path(name), "wb");
    assert_true(gzwrite(f, text, (unsigned)strlen(text)) > 0 || !*text);
    gzclose(f);
}

static void several_files_of_one_header_are_one_table(void **state)
{
    files_begin();
    files_folder("set");
    files_text("set/b.csv", "a,k\n3,dog\n");
    write_gz("set/a.csv.gz", "a,k\n1,cat\n2,dog\n");
    files_text("set/readme.txt", "not a table\n");
    keel_dataset_options o = options();
    o.label = "k";
    keel_dataset *d = opened("set", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 2, 3 }, 3);
    check_field(d, 1, KEEL_INT32, (double[]){ 0, 1, 1 }, 3);
    assert_int_equal(keel_dataset_class_count(d), 2);
    keel_dataset_destroy(d);
    d = opened("set/*.csv", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 3 }, 1);
    keel_dataset_destroy(d);
    d = opened("set/{b,b}.csv", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 3, 3 }, 2);
    keel_dataset_destroy(d);
    d = opened("set/a.csv.gz", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 2 }, 2);
    keel_dataset_destroy(d);
    files_text("set/more.jsonl", "{\"a\": 4, \"k\": \"dog\"}\n");
    refused("set", &o, KEEL_EARG, "has tables in CSV and in JSON lines");
    d = opened("set/*.jsonl", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 4 }, 1);
    keel_dataset_destroy(d);
    assert_int_equal(remove(files_path("set/more.jsonl")), 0);
    files_text("set/c.csv", "a,z\n3,dog\n");
    refused("set", &o, KEEL_EFORMAT, "c.csv: its header differs from that of ");
    assert_non_null(strstr(keel_error(), "column 1 is 'z', there 'k'"));
    files_text("set/c.csv", "a,k,z\n3,dog,1\n");
    refused("set", &o, KEEL_EFORMAT, "c.csv: 3 columns, but ");
    files_text("set/c.csv", "a,k\n3,dog\n4\n");
    refused("set", &o, KEEL_EFORMAT, "c.csv:3: 1 field, but the header has 2");
    files_text("set/c.csv", "");
    refused("set", &o, KEEL_EFORMAT, "c.csv: the file is empty");
    refused("set/x*.csv", &o, KEEL_EIO, "x*.csv: no file has such a name");
    o.no_header = true;
    o.label = NULL;
    files_text("set/b.csv", "1,2\n");
    files_text("set/c.csv", "3,4\n5,6\n");
    d = opened("set/*.csv", &o);
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 2, 3, 4, 5, 6 }, 6);
    keel_dataset_destroy(d);
    files_text("set/c.csv", "3,4,5\n");
    refused("set/*.csv", &o, KEEL_EFORMAT, "c.csv: 3 columns, but ");
    files_end();
}

static void separators_are_found(void **state)
{
    static const char *const texts[] = {
        "a|b\n1|2\n",   "a\tb\n1\t2\n",       "a;b\n1;2\n",
        "a,b|c\n1,2\n", "a|b|c;d\n1|2|3;4\n", "\"x;y;z\"|b\n1|2\n"
    };
    static const int columns[] = { 2, 2, 2, 2, 3, 2 };
    files_begin();
    for (size_t i = 0; i < COUNT(texts); i++) {
        keel_dataset *d = NULL;
        files_text("t.csv", texts[i]);
        const keel_status s = keel_dataset_open(&d, files_path("t.csv"), NULL);
        if (i == 4) { /* bars are more, so "3;4" is no number */
            assert_int_equal(s, KEEL_EFORMAT);
            continue;
        }
        if (s < 0) fail_msg("%s", keel_error());
        assert_int_equal(keel_dataset_x_shape(d).dim[0], columns[i]);
        keel_dataset_destroy(d);
    }
    files_end();
}

/* Values, quotes and line ends at every place of the 64 bytes that are looked at together. */
static void every_place_of_a_block_is_looked_at(void **state)
{
    files_begin();
    for (int pad = 0; pad < 140; pad++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "s,n\r\n%0*d\"x,1\r\n\"%0*d,\"\"\n\r\",22\n\n\"q\",333\r\n%0*d,4444", pad, 0, pad,
                 0, pad, 7);
        keel_dataset_options o = options();
        o.inputs = LIST("s", "n");
        o.n_input = 2;
        files_text("t.csv", text);
        keel_dataset *d = opened("t.csv", &o);
        check_field(d, 1, KEEL_FLOAT32, (double[]){ 1, 22, 333, 4444 }, 4);
        char want[1024];
        snprintf(want, sizeof want, "%0*d\"x|%0*d,\"\n\r|q|%0*d", pad, 0, pad, 0, pad, 7);
        check_texts(d, 0, want);
        keel_dataset_destroy(d);
    }
    files_end();
}

/* A file is cut in pieces: records that lie across two, quotes, line ends and empty lines at their
 * ends are read as anywhere else. */
static void records_may_cross_the_pieces_of_a_file(void **state)
{
    enum { PIECE = 1 << 18, MARGIN = 24 };
    static const char around[] = "7,\"a\"\"b\r\n\"\"\",8\r\n9,\"\",10\n\n11,c,12\n";
    char *text = malloc(PIECE + 256);
    files_begin();
    for (size_t at = 0; at < sizeof around + MARGIN; at++) {
        size_t n = (size_t)sprintf(text, "n,s,m\n0,");
        while (n < PIECE - at) text[n++] = 'x';
        n += (size_t)sprintf(text + n, ",1\n%s", around);
        files_write("t.csv", text, n);
        keel_dataset_options o = options();
        o.inputs = LIST("x=n,m", "s");
        o.n_input = 2;
        keel_dataset *d = opened("t.csv", &o);
        check_field(d, 0, KEEL_FLOAT32, (double[]){ 0, 1, 7, 8, 9, 10, 11, 12 }, 8);
        keel_dataset_destroy(d);
        text[n - 1] = ','; /* too many fields in the last line */
        files_write("t.csv", text, n);
        refused("t.csv", &o, KEEL_EFORMAT, "t.csv:7: 4 fields, but the header has 3");
    }
    for (size_t at = 0; at < 4; at++) { /* of one column, empty lines are values but for the last */
        size_t n = (size_t)sprintf(text, "a\n1\n");
        while (n < PIECE - at - 3) text[n++] = '0';
        n += (size_t)sprintf(text + n, "\n\n2\n");
        n += (size_t)sprintf(text + n, at % 2 ? "\n" : "");
        files_write("t.csv", text, n);
        keel_dataset_options o = options();
        o.missing = KEEL_MISSING_FILL;
        keel_dataset *d = opened("t.csv", &o);
        check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 0, 0, 2 }, 4);
        keel_dataset_destroy(d);
        n = PIECE - at - 2;
        text[n - 1] = '0';
        memcpy(text + n, "\n\n", 3); /* the last line ends with a piece: the file may go on */
        files_write("t.csv", text, n + 2);
        d = opened("t.csv", &o);
        check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 0 }, 2);
        keel_dataset_destroy(d);
    }
    free(text);
    files_end();
}

static void what_is_no_text_is_refused(void **state)
{
    files_begin();
    files_write("t.csv",
                "\xff\xfe"
                "a\0,\0",
                6);
    refused("t.csv", NULL, KEEL_EFORMAT, "t.csv: is a text in UTF-16; convert it to UTF-8");
    files_write("t.csv", "a,b\n1,\0002\n", 9);
    refused("t.csv", NULL, KEEL_EFORMAT, "t.csv: not a text file");
    write_gz("u.csv.gz", "a,b\n1,2\n3,4\n");
    FILE *f = fopen(files_path("u.csv.gz"), "rb+");
    assert_int_equal(ftruncate(fileno(f), 20), 0);
    fclose(f);
    refused("u.csv.gz", NULL, KEEL_EFORMAT, "u.csv.gz: the gzip data is cut short");
    write_gz("u.csv.gz", "a,b\n1,2\n3,4\n");
    f = fopen(files_path("u.csv.gz"), "rb+");
    fseek(f, 14, SEEK_SET);
    fputs("\xff\xff\xff", f);
    fclose(f);
    refused("u.csv.gz", NULL, KEEL_EFORMAT, "u.csv.gz: the gzip data is damaged");
    write_gz("u.csv.gz", "a,b\n1,2\n");
    write_gz("v.csv.gz", "3,4\n");
    char command[1200];
    snprintf(command, sizeof command, "cat '%s' >>'%s'", files_path("v.csv.gz"),
             files_path("u.csv.gz"));
    assert_int_equal(system(command), 0);
    keel_dataset *d = opened("u.csv.gz", NULL); /* gzip files may be joined */
    check_field(d, 0, KEEL_FLOAT32, (double[]){ 1, 2, 3, 4 }, 4);
    keel_dataset_destroy(d);
    files_end();
}

static void every_failed_allocation_is_survived(void **state)
{
    static const keel_vocabulary own = { .column = "c" };
    files_begin();
    files_folder("set");
    files_text("set/a.csv", "a,s,c,k\n1,red,x,z\n,blue,y,y\n3,,w,z\n20000001,g,w,z\n");
    write_gz("set/b.csv.gz", "a,s,c,k\n1,red,x,z\n4,blue,y,y\n");
    for (int kind = 0; kind < 3; kind++) {
        bool done = false;
        for (int n = 0; !done; n++) {
            const int64_t live = keel_memory_live();
            keel_dataset *d = NULL;
            keel_dataset_options o = options();
            o.inputs = LIST("n=a,c", "s");
            o.n_input = 2;
            o.label = "k";
            o.vocabularies = &own;
            o.n_vocabulary = 1;
            o.missing = kind == 0   ? KEEL_MISSING_MEAN
                        : kind == 1 ? KEEL_MISSING_DROP
                                    : KEEL_MISSING_FILL;
            keel_memory_fail_at(n);
            const keel_status s = keel_dataset_open(&d, files_path("set"), &o);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_value_is_refused_dropped_or_filled),
        cmocka_unit_test(every_word_that_pandas_reads_as_missing_is),
        cmocka_unit_test(a_mean_makes_whole_numbers_real_only_if_it_is_not_one),
        cmocka_unit_test(a_column_that_begins_without_values_has_what_comes_first),
        cmocka_unit_test(targets_are_dropped_or_refused_but_not_filled),
        cmocka_unit_test(a_text_is_missing_only_for_drop),
        cmocka_unit_test(a_table_is_that_of_pandas_to_the_bit),
        cmocka_unit_test(a_vocabulary_makes_numbers_of_texts),
        cmocka_unit_test(true_and_false_are_one_and_zero),
        cmocka_unit_test(dates_are_refused_by_name),
        cmocka_unit_test(numbers_are_decimal),
        cmocka_unit_test(several_files_of_one_header_are_one_table),
        cmocka_unit_test(separators_are_found),
        cmocka_unit_test(every_place_of_a_block_is_looked_at),
        cmocka_unit_test(records_may_cross_the_pieces_of_a_file),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
