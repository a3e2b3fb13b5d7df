/* Files with several fields, labels as classes, and what a new user stumbles over: a CSV without a
 * header, other separators, labels that are no classes. */
#include "table_files.h"
#include "io/npy.h"
#include "io/zip.h"

/* Is field i called `path`, and are its numbers in order those of `want`? */
static void check_named(const keel_dataset *d, int i, const char *path, keel_data_role role,
                        keel_dtype dtype, const double *want, int64_t n)
{
    keel_data_field f;
    keel_dtype types[KEEL_FIELDS_MAX];
    assert_int_equal(keel_dataset_field(d, i, &f), KEEL_OK);
    assert_string_equal(f.path, path);
    assert_int_equal(f.role, role);
    assert_int_equal(f.dtype, dtype);
    for (int k = 0; k < keel_dataset_field_count(d); k++) types[k] = KEEL_FLOAT64;
    const keel_feed_options o = { .want = types,
                                  .unwanted = ~(UINT64_C(1) << i),
                                  .batch_size = keel_dataset_rows(d) };
    keel_feed *feed = NULL;
    keel_batch b;
    if (keel_feed_create(&feed, d, &o) < 0) fail_msg("%s", keel_error());
    assert_int_equal(keel_feed_begin_epoch(feed, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(feed, &b), KEEL_OK);
    for (int64_t k = 0; k < n; k++)
        if (((const double *)b.field[i])[k] != want[k])
            fail_msg("%s[%d] is %.17g, not %.17g", path, (int)k, ((const double *)b.field[i])[k],
                     want[k]);
    keel_feed_release(feed, &b);
    keel_feed_destroy(feed);
}

static void columns_of_a_csv_become_several_fields(void **state)
{
    files_begin();
    files_text("t.csv", "a,kind,b,c,price\n1,dog,2,3,9.5\n4,cat,5,6,8\n");
    keel_dataset_options o = options();
    o.inputs = LIST("left=c,a", "b");
    o.targets = LIST("kind", "cost=price");
    o.n_input = o.n_target = 2;
    keel_dataset *d = opened("t.csv", &o);
    assert_int_equal(keel_dataset_field_count(d), 4);
    check_named(d, 0, "left", KEEL_ROLE_INPUT, KEEL_FLOAT32, (double[]){ 3, 1, 6, 4 }, 4);
    check_named(d, 1, "b", KEEL_ROLE_INPUT, KEEL_FLOAT32, (double[]){ 2, 5 }, 2);
    check_named(d, 2, "kind", KEEL_ROLE_TARGET, KEEL_INT32, (double[]){ 1, 0 }, 2);
    check_named(d, 3, "cost", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ 9.5, 8 }, 2);
    assert_string_equal(keel_dataset_class_name(d, 0), "cat");
    keel_dataset_destroy(d);

    o.n_target = 0;
    o.label = "price";
    o.inputs = LIST("input_layer"); /* a model's name for what the file does not name */
    o.n_input = 1;
    files_text("u.csv", "a,price\n1,9\n4,8\n");
    d = opened("u.csv", &o);
    check_named(d, 0, "input_layer", KEEL_ROLE_INPUT, KEEL_FLOAT32, (double[]){ 1, 4 }, 2);
    check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_INT32, (double[]){ 9, 8 }, 2);
    keel_dataset_destroy(d);

    o.n_input = 2;
    o.inputs = LIST("p", "q");
    refused("t.csv", &o, KEEL_EARG, "2 inputs; give the columns of each, as p=COLUMN,COLUMN");
    o.inputs = LIST("p=a", "q=a");
    refused("t.csv", &o, KEEL_EARG, "column 'a' is requested twice");
    o.inputs = LIST("a", "price"); /* by the names of a model's inputs */
    refused("t.csv", &o, KEEL_EARG, "column 'price' is requested twice");
    o.inputs = LIST("p=a,b", "q=price"); /* what is learned may be an input, too */
    d = opened("t.csv", &o);
    check_named(d, 0, "p", KEEL_ROLE_INPUT, KEEL_FLOAT32, (double[]){ 1, 2, 4, 5 }, 4);
    check_named(d, 1, "q", KEEL_ROLE_INPUT, KEEL_FLOAT32, (double[]){ 9.5, 8 }, 2);
    check_named(d, 2, "y", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ 9.5, 8 }, 2);
    keel_dataset_destroy(d);
    o.inputs = LIST("p=a", "q=z");
    refused("t.csv", &o, KEEL_EARG, "no column 'z'; there are 'a', 'kind', 'b', 'c', 'price'");
    o.inputs = LIST("p=a", "p=b");
    refused("t.csv", &o, KEEL_EARG, "'p' is named twice");
    o.inputs = LIST("p=a,,b", "q=b");
    refused("t.csv", &o, KEEL_EARG, "empty part");
    o.inputs = LIST("p=a", "q=b");
    o.targets = LIST("kind");
    o.n_target = 1;
    refused("t.csv", &o, KEEL_EARG, "either a label or a list of targets");

    o = options();
    o.label = "k";
    files_text("twice.csv", "a,b,a,k\n1,2,3,0\n4,5,6,1\n");
    refused("twice.csv", &o, KEEL_EARG, "two columns are called 'a', and both would be inputs");
    o.inputs = LIST("x=a,b");
    o.n_input = 1;
    refused("twice.csv", &o, KEEL_EARG, "two columns are called 'a'");
    o.inputs = LIST("x=b");
    d = opened("twice.csv", &o);
    check_named(d, 0, "x", KEEL_ROLE_INPUT, KEEL_FLOAT32, (double[]){ 2, 5 }, 2);
    keel_dataset_destroy(d);
    files_end();
}

static void whole_numbers_of_a_csv_are_exact(void **state)
{
    files_begin();
    files_text("t.csv", "a,b,c\n1,2,0.5\n16777217,3,1\n9007199254740993,-5,2\n");
    keel_dataset_options o = options();
    o.inputs = LIST("id=b,a", "c");
    o.n_input = 2;
    keel_dataset *d = opened("t.csv", &o);
    keel_data_field f;
    assert_int_equal(keel_dataset_field(d, 0, &f), KEEL_OK);
    assert_int_equal(f.dtype, KEEL_INT64);
    keel_feed *feed = NULL;
    keel_batch b;
    assert_int_equal(keel_feed_create(&feed, d, &(keel_feed_options){ .batch_size = 3 }), KEEL_OK);
    assert_int_equal(keel_feed_begin_epoch(feed, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(feed, &b), KEEL_OK);
    const int64_t want[] = { 2, 1, 3, 16777217, -5, 9007199254740993 };
    assert_memory_equal(b.field[0], want, sizeof want);
    keel_feed_release(feed, &b);
    keel_feed_destroy(feed);
    check_named(d, 1, "c", KEEL_ROLE_INPUT, KEEL_FLOAT32, (double[]){ .5, 1, 2 }, 3);
    keel_dataset_destroy(d);

    files_text("t.csv", "a,b\n1,33554433\n2,0.5\n16777218,33554433\n"); /* a fraction comes later */
    d = opened("t.csv", NULL);
    check_named(d, 0, "x", KEEL_ROLE_INPUT, KEEL_FLOAT32,
                (double[]){ 1, 33554432, 2, .5, 16777218, 33554432 }, 6);
    keel_dataset_destroy(d);
    files_end();
}

static void texts_of_a_csv_and_an_npz_are_a_field_of_strings(void **state)
{
    files_begin();
    files_text("t.csv", "a,color,y\n1,red,0\n2,\"dark, blue\",1\n3,,1\n");
    keel_dataset_options o = options();
    o.label = "y";
    refused("t.csv", &o, KEEL_EFORMAT, "t.csv:2: column 'color' has 'red', which is not a number");
    o.inputs = LIST("a", "hue=color");
    o.n_input = 2;
    keel_dataset *d = opened("t.csv", &o);
    keel_data_field f;
    assert_int_equal(keel_dataset_field(d, 1, &f), KEEL_OK);
    assert_int_equal(f.dtype, KEEL_STRING);
    static const char *const want[] = { "red", "dark, blue", "" };
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        keel_feed *feed = NULL;
        keel_batch b;
        const keel_feed_options fo = { .batch_size = 3, .shuffle = shuffle };
        assert_int_equal(keel_feed_create(&feed, d, &fo), KEEL_OK);
        assert_int_equal(keel_feed_begin_epoch(feed, 0), KEEL_OK);
        assert_int_equal(keel_feed_next(feed, &b), KEEL_OK);
        for (int i = 0; i < 3; i++) {
            const int row = (int)((const float *)b.field[0])[i] - 1;
            const keel_string s = ((const keel_string *)b.field[1])[i];
            assert_int_equal(s.n_bytes, strlen(want[row]));
            assert_memory_equal(s.data, want[row], (size_t)s.n_bytes + 1);
        }
        keel_feed_release(feed, &b);
        keel_feed_destroy(feed);
    }
    const keel_dtype wrong[] = { KEEL_FLOAT32, KEEL_FLOAT32, KEEL_FLOAT32 };
    keel_feed *feed = NULL;
    assert_int_equal(
        keel_feed_create(&feed, d, &(keel_feed_options){ .batch_size = 3, .want = wrong }),
        KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "field 'hue' has string, but float32 is expected"));
    keel_dataset_destroy(d);

    /* np.array(["b", "a"], dtype="S1") as inputs and labels */
    static const char npy[] =
        "\x93NUMPY\1\0\x36\0{'descr': '|S1', 'fortran_order': False, 'shape': "
        "(2,)}ba";
    char bytes[sizeof npy - 1];
    memcpy(bytes, npy, sizeof bytes);
    bytes[8] = (char)(sizeof bytes - 10 - 2);
    const keel_zip_member members[] = { { "x.npy", bytes, sizeof bytes },
                                        { "y.npy", bytes, sizeof bytes } };
    assert_int_equal(keel_zip_write(files_path("t.npz"), members, 2), KEEL_OK);
    d = opened("t.npz", NULL);
    assert_int_equal(keel_dataset_x_dtype(d), KEEL_STRING);
    check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_INT32, (double[]){ 1, 0 }, 2);
    assert_string_equal(keel_dataset_class_name(d, 1), "b");
    keel_dataset_destroy(d);
    files_end();
}

typedef struct member {
    const char *name;
    double value;
} member;

/* An .npz whose arrays have two rows of the same float32. */
static void write_npz(const char *name, const member *m, int n)
{
    keel_zip_member z[16];
    char names[16][64];
    static char bytes[16][136];
    for (int i = 0; i < n; i++) {
        const float v[2] = { (float)m[i].value, (float)m[i].value };
        const keel_tensor t = { KEEL_FLOAT32, { 1, { 2 } }, (void *)v };
        FILE *f;
        assert_int_equal(keel_npy_write(files_path("one.npy"), &t), KEEL_OK);
        f = fopen(files_path("one.npy"), "rb");
        assert_int_equal(fread(bytes[i], 1, 136, f), 136);
        fclose(f);
        snprintf(names[i], sizeof names[i], "%s.npy", m[i].name);
        z[i] = (keel_zip_member){ names[i], bytes[i], 136 };
    }
    assert_int_equal(keel_zip_write(files_path(name), z, n), KEEL_OK);
}

/* "path=number " of every field, and for weights ":target". */
static void describe(char *out, size_t size, const keel_dataset *d)
{
    keel_feed *feed = NULL;
    keel_batch b;
    size_t at = 0;
    assert_int_equal(keel_feed_create(&feed, d, &(keel_feed_options){ .batch_size = 2 }), KEEL_OK);
    assert_int_equal(keel_feed_begin_epoch(feed, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(feed, &b), KEEL_OK);
    for (int k = 0; k < b.n_field; k++)
        at += (size_t)snprintf(out + at, size - at, "%s=%g%s%s ", b.spec[k].path,
                               (double)((const float *)b.field[k])[1], b.spec[k].target ? ":" : "",
                               b.spec[k].target ? b.spec[k].target : "");
    keel_feed_release(feed, &b);
    keel_feed_destroy(feed);
}

static void arrays_of_an_npz_are_found_by_name_or_number(void **state)
{
    static const struct {
        member m[8];
        int n;
        const char *inputs[2], *targets[2];
        const char *says; /* "path=value ..." or the error */
        const char *label;
    } cases[] = {
        { { { "y", 2 }, { "x", 1 }, { "sample_weight", 3 } },
          3,
          { 0 },
          { 0 },
          "x=1 y=2 sample_weight=3 " },
        { { { "x", 1 }, { "y", 2 } }, 2, { "input_layer" }, { "dense" }, "input_layer=1 dense=2 " },
        { { { "x_1", 2 }, { "x_0", 1 }, { "y_0", 3 }, { "y_1", 4 }, { "sample_weight_1", 5 } },
          5,
          { 0 },
          { 0 },
          "x_0=1 x_1=2 y_0=3 y_1=4 sample_weight_1=5:y_1 " },
        { { { "x_0", 1 }, { "x_1", 2 } }, 2, { "left", "right" }, { 0 }, "left=1 right=2 " },
        { { { "right", 2 }, { "left", 1 }, { "age", 3 }, { "sample_weight_age", 4 } },
          4,
          { "left", "right" },
          { "age" },
          "left=1 right=2 age=3 sample_weight_age=4:age " },
        { { { "a", 1 }, { "b", 2 } }, 2, { "left=b" }, { "t=a" }, "left=2 t=1 " },
        { { { "a", 1 }, { "b", 2 } },
          2,
          { 0 },
          { 0 },
          "has no array named x; there are 'a', 'b' (--inputs chooses)" },
        { { { "a", 1 }, { "b", 2 } },
          2,
          { "input_layer" }, /* of the model: the file says x */
          { 0 },
          "has no array named x; there are 'a', 'b'" },
        { { { "left", 1 }, { "b", 2 } },
          2,
          { "left", "right" },
          { 0 },
          "has no array named right; there are 'left', 'b'" },
        { { { "x", 1 }, { "age", 2 } }, 2, { "in" }, { "sex", "age" }, "in=1 age=2 " },
        { { { "x", 1 }, { "age", 2 } },
          2,
          { "in" },
          { "age", "sex=sex" },
          "has no array named sex; there are 'x', 'age' (--label chooses)" },
        { { { "x", 1 }, { "y", 2 }, { "sample_weight", 3 } },
          3,
          { "in" },
          { "sex", "age" },
          "in=1 y=2 sample_weight=3 " }, /* where only one of them has a loss */
        { { { "a", 1 } }, 1, { "left=z" }, { 0 }, "has no array named z; there is 'a'" },
        { { { "x", 1 }, { "y", 2 }, { "y_sample_weight", 3 } },
          3,
          { 0 },
          { 0 },
          "array 'y_sample_weight' is not used: weights are sample_weight, or sample_weight_ and" },
        { { { "x", 1 }, { "sample_weight_b", 3 } }, 2, { "in" }, { "a" }, "in=1 " },
        { { { "x", 1 }, { "y", 2 }, { "a,b", 3 } }, 3, { 0 }, { 0 }, "x=1 y=3 ", "a,b" },
        { { { "x", 1 }, { "y", 2 } },
          2,
          { 0 },
          { 0 },
          "has no array named z; there are 'x', 'y'",
          "z" },
        { { { "x", 1 }, { "y", 2 } }, 2, { 0 }, { "t=x" }, "x=1 t=1 ", "z" },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        keel_dataset_options o = options();
        keel_dataset *d = NULL;
        char got[256] = "";
        o.inputs = cases[i].inputs;
        o.targets = cases[i].targets;
        o.label = cases[i].label;
        while (o.n_input < 2 && o.inputs[o.n_input]) o.n_input++;
        while (o.n_target < 2 && o.targets[o.n_target]) o.n_target++;
        write_npz("t.npz", cases[i].m, cases[i].n);
        const int64_t live = keel_memory_live();
        if (keel_dataset_open(&d, files_path("t.npz"), &o) < 0)
            snprintf(got, sizeof got, "%s", keel_error());
        if (d) describe(got, sizeof got, d);
        keel_dataset_destroy(d);
        if (!strstr(got, cases[i].says)) fail_msg("case %zu: %s", i, got);
        assert_int_equal(keel_memory_live(), live);
    }
    /* what is wrong in an array is said of its name in the file, not in the model */
    keel_dataset_options o = options();
    o.inputs = LIST("input_layer");
    o.targets = LIST("dense");
    o.n_input = o.n_target = 1;
    o.class_count = 2;
    write_npz("t.npz", cases[1].m, 2);
    refused("t.npz", &o, KEEL_EDATA, "t.npz: array 'y': label 2 of row 0 is not a class");
    files_end();
}

/* Of a column, key or array, as sample_weight of Keras's fit; it is no input by itself. */
static void weights_of_rows_are_found_by_name(void **state)
{
    const char *const files[] = { "t.csv", "t.jsonl" };
    keel_dataset_options o = options();
    o.label = "kind";
    o.sample_weight = "w";
    files_begin();
    files_text("t.csv", "a,w,kind\n1,0.5,0\n2,1,1\n3,0,1\n");
    files_text("t.jsonl", "{\"a\": 1, \"w\": 0.5, \"kind\": 0}\n{\"a\": 2, \"w\": 1, \"kind\": 1}\n"
                          "{\"a\": 3, \"w\": 0, \"kind\": 1}\n");
    write_npz("t.npz", (member[]){ { "a", 4 }, { "w", 5 }, { "kind", 6 } }, 3);
    for (size_t i = 0; i < COUNT(files); i++) {
        keel_dataset *d = opened(files[i], &o);
        assert_int_equal(keel_dataset_field_count(d), 3);
        check_named(d, 0, "x", KEEL_ROLE_INPUT, KEEL_FLOAT32, (double[]){ 1, 2, 3 }, 3);
        check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_INT32, (double[]){ 0, 1, 1 }, 3);
        check_named(d, 2, "sample_weight", KEEL_ROLE_WEIGHT, KEEL_FLOAT32, (double[]){ 0.5, 1, 0 },
                    3);
        keel_dataset_destroy(d);
    }
    o.inputs = LIST("x=a");
    o.n_input = 1;
    keel_dataset *d = opened("t.npz", &o);
    char got[256] = "";
    describe(got, sizeof got, d);
    assert_string_equal(got, "x=4 y=6 sample_weight=5 ");
    keel_dataset_destroy(d);
    o.inputs = NULL;
    o.n_input = 0;
    o.label_mode = KEEL_LABEL_NONE; /* as for predict: neither is read, and neither is an input */
    for (size_t i = 0; i < COUNT(files); i++) {
        d = opened(files[i], &o);
        assert_int_equal(keel_dataset_field_count(d), 1);
        keel_dataset_destroy(d);
    }
    const struct {
        const char *name, *text, *weight, *says;
        keel_status status;
    } wrong[] = {
        { "t.csv", "a,w,kind\n1,1,0\n", "v", "no column 'v'; there are 'a', 'w', 'kind'",
          KEEL_EARG },
        { "t.csv", "a,w,kind\n1,1,0\n", "kind", "column 'kind' is requested twice", KEEL_EARG },
        { "t.csv", "a,w,kind\n1,,0\n", "w",
          "t.csv:2: column 'w' has '', a missing value, which is not a number; weights are not "
          "filled",
          KEEL_EFORMAT },
        { "t.csv", "a,w,kind\n1,heavy,0\n", "w", "'heavy'", KEEL_EFORMAT },
        { "t.jsonl", "{\"a\": 1, \"w\": [1, 2], \"kind\": 0}\n", "w",
          "t.jsonl:1: key 'w' has a list; the weight of a row is one number", KEEL_EFORMAT },
        { "t.jsonl", "{\"a\": 1, \"w\": 1, \"kind\": 0}\n", "kind", "key 'kind' is requested twice",
          KEEL_EARG },
    };
    o.label_mode = KEEL_LABEL_INT;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        files_text(wrong[i].name, wrong[i].text);
        o.sample_weight = wrong[i].weight;
        refused(wrong[i].name, &o, wrong[i].status, wrong[i].says);
    }
    o.inputs = LIST("x=a");
    o.n_input = 1;
    o.sample_weight = "v";
    refused("t.npz", &o, KEEL_EFORMAT, "no array named v");
    o.no_header = true;
    o.label = "0";
    o.inputs = LIST("x=1");
    o.sample_weight = "2-3";
    files_text("t.csv", "0,1,1,1\n");
    refused("t.csv", &o, KEEL_EARG, "the weight of a row is one column, not several");
    files_end();
}

static void each_target_may_have_weights_of_its_own(void **state)
{
    static const struct {
        const char *what, *weights[3], *all, *says; /* NULL: it is read */
    } cases[] = {
        { "of both targets, in any order", { "kind=w", "size=v" } },
        { "of one of them", { "kind=w" } },
        { "of what is no target",
          { "kind=w", "age=v" },
          .says = "'v' has weights for 'age', but there is no such target" },
        { "without the name of a target",
          { "w" },
          .says = "'w': name the target that they are of, "
                  "as TARGET=w" },
        { "of one target twice", { "kind=w", "kind=v" }, .says = "'kind' is named twice" },
        { "of two columns", { "kind=w,v" }, .says = "has one part, not several" },
        { "of a column that is not there", { "kind=u" }, .says = "u" },
        { "beside those of all targets", { "kind=w" }, "v", "of all targets or of each" },
    };
    char raw[600];
    files_begin();
    files_text("t.csv", "x,s,k,w,v\n0,-7.5,2.5,1,1\n0,-7.5,2.5,0.5,4\n");
    files_text("t.jsonl", "{\"x\": 0, \"s\": -7.5, \"k\": 2.5, \"w\": 1, \"v\": 1}\n"
                          "{\"x\": 0, \"s\": -7.5, \"k\": 2.5, \"w\": 0.5, \"v\": 4}\n");
    write_npz("t.npz",
              (member[]){ { "x", 0 }, { "s", -7.5 }, { "k", 2.5 }, { "w", 0.5 }, { "v", 4 } }, 5);
    files_write("t.raw", (const float[]){ 0, -7.5f, 2.5f, 1, 1, 0, -7.5f, 2.5f, 0.5f, 4 }, 40);
    snprintf(raw, sizeof raw, "raw(x=float32,s=float32,k=float32,w=float32,v=float32):%s",
             files_path("t.raw"));
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int k = 0; k < 4; k++) {
            static const char *const names[] = { "t.csv", "t.jsonl", "t.npz" };
            const int64_t live = keel_memory_live();
            keel_dataset_options o = options();
            keel_dataset *d = NULL;
            char got[256] = "";
            o.inputs = LIST("x=x");
            o.n_input = 1;
            o.targets = LIST("size=s", "kind=k");
            o.n_target = 2;
            o.sample_weight = cases[i].all;
            o.sample_weights = cases[i].weights;
            while (cases[i].weights[o.n_sample_weight]) o.n_sample_weight++;
            if (keel_dataset_open(&d, k == 3 ? raw : files_path(names[k]), &o) < 0)
                snprintf(got, sizeof got, "%s", keel_error());
            if (d) describe(got, sizeof got, d);
            keel_dataset_destroy(d);
            const char *want = cases[i].says           ? cases[i].says
                               : o.n_sample_weight > 1 ? "x=0 size=-7.5 kind=2.5 "
                                                         "sample_weight_kind=0.5:kind "
                                                         "sample_weight_size=4:size "
                                                       : "x=0 size=-7.5 kind=2.5 "
                                                         "sample_weight_kind=0.5:kind ";
            if (d ? !!strcmp(got, want) : !strstr(got, want) || !cases[i].says)
                fail_msg("%s, %s: %s", cases[i].what, k == 3 ? "raw" : names[k], got);
            assert_int_equal(keel_memory_live(), live);
        }
    files_end();
}

static void a_csv_without_a_header_does_not_lose_its_first_row(void **state)
{
    files_begin();
    files_text("t.csv", "5.1,3.5,0\n4.9,3,1\n7,2,1\n");
    keel_dataset_options o = options();
    refused("t.csv", &o, KEEL_EARG,
            "its first line has only numbers, so it seems to have no header; give "
            "--no-header and name columns by number, 0 to 2");
    o.no_header = true;
    o.label = "2";
    keel_dataset *d = opened("t.csv", &o);
    assert_int_equal(keel_dataset_rows(d), 3);
    check_named(d, 0, "x", KEEL_ROLE_INPUT, KEEL_FLOAT32,
                (double[]){ (double)5.1f, 3.5, (double)4.9f, 3, 7, 2 }, 6);
    check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_INT32, (double[]){ 0, 1, 1 }, 3);
    keel_dataset_destroy(d);
    o.inputs = LIST("p=0-1");
    o.n_input = 1;
    d = opened("t.csv", &o);
    assert_int_equal(keel_dataset_x_shape(d).dim[0], 2);
    keel_dataset_destroy(d);
    o.inputs = LIST("p=0-3");
    refused("t.csv", &o, KEEL_EARG, "no column '0-3'; there are '0', '1', '2'");
    o.n_input = 0;
    o.label = "kind";
    refused("t.csv", &o, KEEL_EARG, "no column 'kind'; there are '0', '1', '2'");
    files_text("t.csv", "1,2\n1,2,3\n");
    o.label = NULL;
    refused("t.csv", &o, KEEL_EFORMAT, "t.csv:2: 3 fields, but the first line has 2");
    files_text("t.csv", "a,b\n1,2\n");
    refused("t.csv", &o, KEEL_EFORMAT, "t.csv:1: column '0' has 'a', which is not a number");
    files_end();
}

static void a_column_with_a_comma_is_named_in_quotes(void **state)
{
    static const struct {
        const char *inputs, *says;
        keel_status status;
    } bad[] = {
        { "x=\"a, b", "has a quote that does not end its part", KEEL_EARG },
        { "x=\"a, b\"c", "has a quote that does not end its part", KEEL_EARG },
        { "x=\"", "has a quote that does not end its part", KEEL_EARG },
        { "x=\"\"", "has a quote that does not end its part", KEEL_EARG },
        { "x=\"a\"b\"", "has a quote that does not end its part", KEEL_EARG },
        { "x=\"a, b\",", "has an empty part", KEEL_EARG },
        { "x=a, b", "no column 'a'", KEEL_EARG },
    };
    files_begin();
    files_text("t.csv", "\"a, b\",c d,\"\"\"e\"\", f\",y\n1,2,3,0\n4,5,6,1\n");
    keel_dataset_options o = options();
    o.label = "y";
    o.inputs = LIST("x=c d,\"a, b\",\"\"\"e\"\", f\"");
    o.n_input = 1;
    keel_dataset *d = opened("t.csv", &o);
    check_named(d, 0, "x", KEEL_ROLE_INPUT, KEEL_FLOAT32, (double[]){ 2, 1, 3, 5, 4, 6 }, 6);
    keel_dataset_destroy(d);
    for (size_t i = 0; i < COUNT(bad); i++) {
        const int64_t live = keel_memory_live();
        o.inputs = LIST(bad[i].inputs);
        refused("t.csv", &o, bad[i].status, bad[i].says);
        assert_int_equal(keel_memory_live(), live);
    }
    files_end();
}

static void the_separator_is_found_in_the_first_line(void **state)
{
    static const struct {
        const char *text;
        char separator;
    } good[] = {
        { "a;b,c\n1;2\n", ';' },     { "a;b\n1;2\n", 0 },   { "a\tb\n1\t2\n", 0 },
        { "\"a,;\"\tb\n1\t2\n", 0 }, { "a|b\n1|2\n", '|' },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(good); i++) {
        keel_dataset_options o = options();
        o.separator = good[i].separator;
        files_text("t.csv", good[i].text);
        keel_dataset *d = opened("t.csv", &o);
        check_named(d, 0, "x", KEEL_ROLE_INPUT, KEEL_FLOAT32, (double[]){ 1, 2 }, 2);
        keel_dataset_destroy(d);
    }
    files_text("t.csv", "a;b\n1,5;2\n");
    refused("t.csv", NULL, KEEL_EFORMAT,
            "column 'a' has '1,5', which is not a number (the decimal separator is a point)");
    keel_dataset_options o = options();
    o.separator = '"';
    refused("t.csv", &o, KEEL_EARG, "separator");
    files_end();
}

static void labels_that_are_numbers_can_be_one_hot(void **state)
{
    files_begin();
    keel_dataset_options o = options();
    o.label = "y";
    o.label_mode = KEEL_LABEL_CATEGORICAL;
    files_text("t.csv", "a,y\n1,2\n2,0\n");
    keel_dataset *d = opened("t.csv", &o);
    check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ 0, 0, 1, 1, 0, 0 }, 6);
    keel_dataset_destroy(d);
    o.class_count = 4;
    d = opened("t.csv", &o);
    check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ 0, 0, 1, 0, 1 }, 5);
    assert_int_equal(keel_dataset_y_shape(d).dim[0], 4);
    keel_dataset_destroy(d);

    float x[2] = { 0 };
    uint8_t y[2] = { 1, 0 };
    const keel_tensor tx = { KEEL_FLOAT32, { 1, { 2 } }, x }, ty = { KEEL_UINT8, { 1, { 2 } }, y };
    char both[1200];
    assert_int_equal(keel_npy_write(files_path("x.npy"), &tx), KEEL_OK);
    assert_int_equal(keel_npy_write(files_path("y.npy"), &ty), KEEL_OK);
    snprintf(both, sizeof both, "%s,%s", files_path("x.npy"), files_path("y.npy"));
    o.class_count = 2;
    assert_int_equal(keel_dataset_open(&d, both, &o), KEEL_OK);
    check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ 0, 1, 1, 0 }, 4);
    keel_dataset_destroy(d);
    o.class_count = 1;
    d = NULL;
    assert_int_equal(keel_dataset_open(&d, both, &o), KEEL_EDATA);
    assert_non_null(strstr(keel_error(),
                           "label 1 of row 0 is not a class; classes are whole numbers "
                           "from 0 to 0"));
    files_end();
}

/* A model of several outputs: one has classes, one has numbers, in any kind of file. */
static void targets_may_differ_in_what_their_labels_are(void **state)
{
    static const char *const targets[] = { "size=s", "kind=k" };
    static const keel_label_mode modes[] = { KEEL_LABEL_INT, KEEL_LABEL_CATEGORICAL };
    static const int64_t counts[] = { 0, 3 };
    static const char *const inputs[] = { "x=x" };
    static const member arrays[] = { { "x", 0 }, { "s", -7.5 }, { "k", 2 } };
    const char *const files[] = { "t.csv", "t.npz" };
    files_begin();
    files_text("t.csv", "x,s,k\n0,-7.5,2\n0,-7.5,2\n");
    write_npz("t.npz", arrays, 3);
    for (int i = 0; i < 2; i++) {
        keel_dataset_options o = options();
        o.inputs = inputs;
        o.n_input = 1;
        o.targets = targets;
        o.n_target = 2;
        o.target_modes = modes;
        o.target_class_counts = counts;
        keel_dataset *d = opened(files[i], &o);
        check_named(d, 1, "size", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ -7.5, -7.5 }, 2);
        check_named(d, 2, "kind", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ 0, 0, 1, 0, 0, 1 },
                    6);
        keel_dataset_destroy(d);
        d = NULL;
        o.target_modes = NULL;
        o.label_mode = KEEL_LABEL_CATEGORICAL;
        assert_int_equal(keel_dataset_open(&d, files_path(files[i]), &o), KEEL_EDATA);
    }
    files_end();
}

/* Without names, as in a pipeline file: y_0 and y_1 are told apart by their numbers. */
static void numbered_targets_may_differ_in_what_their_labels_are(void **state)
{
    static const keel_label_mode modes[] = { KEEL_LABEL_INT, KEEL_LABEL_CATEGORICAL };
    static const int64_t counts[] = { 0, 3 };
    static const member arrays[] = { { "x", 0 }, { "y_0", -7.5 }, { "y_1", 2 } };
    char raw[600], text[600];
    files_begin();
    write_npz("t.npz", arrays, 3);
    files_write("t.raw", (const float[]){ 0, -7.5f, 2, 0, -7.5f, 2 }, 24);
    snprintf(text, sizeof text, "source = '%s'\n[[stage]]\nname = 'cache'\n", files_path("t.npz"));
    files_text("t.toml", text);
    snprintf(raw, sizeof raw, "raw(x=float32,y_0=float32,y_1=float32):%s", files_path("t.raw"));
    const char *const specs[] = { files_path("t.npz"), files_path("t.toml"), raw };
    for (int i = 0; i < 3; i++) {
        keel_dataset_options o = options();
        o.n_numbered = 2;
        o.target_modes = modes;
        o.target_class_counts = counts;
        keel_dataset *d = NULL;
        if (keel_dataset_open(&d, specs[i], &o) < 0) fail_msg("%s: %s", specs[i], keel_error());
        check_named(d, 1, "y_0", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ -7.5, -7.5 }, 2);
        check_named(d, 2, "y_1", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ 0, 0, 1, 0, 0, 1 }, 6);
        keel_dataset_destroy(d);
    }
    files_end();
}

static void labels_that_are_no_classes_are_refused(void **state)
{
    static const struct {
        const char *text;
        keel_label_mode mode;
        int64_t classes;
        const char *says;
    } bad[] = {
        { "a,y\n1,0\n2,3.5\n", KEEL_LABEL_INT, 5, "label 3.5 of row 1 is not a class" },
        { "a,y\n1,0\n2,3.5\n", KEEL_LABEL_CATEGORICAL, 0, "label 3.5 of row 1 is not a class" },
        { "a,y\n1,-1\n", KEEL_LABEL_INT, 3, "label -1 of row 0 is not a class" },
        { "a,y\n1,3\n", KEEL_LABEL_INT, 3, "whole numbers from 0 to 2" },
        { "a,y\n1,2\n", KEEL_LABEL_BINARY, 0, "label 2 of row 0; binary labels must be 0 to 1" },
        { "a,y\n1,a\n2,b\n3,c\n", KEEL_LABEL_INT, 2, "3 different labels for 2" },
        { "a,y\n1,1e6\n2,0\n", KEEL_LABEL_CATEGORICAL, 0, NULL },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(bad); i++) {
        keel_dataset_options o = options();
        o.label = "y";
        o.label_mode = bad[i].mode;
        o.class_count = bad[i].classes;
        files_text("t.csv", bad[i].text);
        if (bad[i].says) {
            refused("t.csv", &o, KEEL_EDATA, bad[i].says);
            if (!strstr(keel_error(), "t.csv: column 'y'")) fail_msg("%s", keel_error());
        } else {
            keel_dataset_destroy(opened("t.csv", &o));
        }
    }
    files_text("t.csv", "a,y\n1,0\n2,3.5\n"); /* a regression */
    keel_dataset_options o = options();
    o.label = "y";
    keel_dataset *d = opened("t.csv", &o);
    check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ 0, 3.5 }, 2);
    keel_dataset_destroy(d);
    files_end();
}

static void thirty_thousand_one_hot_classes_are_refused_with_the_cost(void **state)
{
    enum { N = 30000 };
    files_begin();
    FILE *f = fopen(files_path("t.csv"), "w");
    fputs("a,y\n", f);
    for (int i = 0; i < N; i++) fprintf(f, "1,name%d\n", i);
    fclose(f);
    keel_dataset_options o = options();
    o.label = "y";
    o.label_mode = KEEL_LABEL_CATEGORICAL;
    refused("t.csv", &o, KEEL_EDATA,
            "one-hot rows of 30000 classes for 30000 rows take 3.4 GiB; keep the labels as "
            "numbers, with sparse_categorical_crossentropy");
    files_end();
}

static void classes_of_a_model_keep_their_numbers(void **state)
{
    files_begin();
    keel_dataset_options o = options();
    o.label = "y";
    o.class_names = LIST("cat", "dog", "1", "bird");
    o.class_name_count = 4;
    files_text("t.csv", "a,y\n1,dog\n2,bird\n");
    keel_dataset *d = opened("t.csv", &o);
    check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_INT32, (double[]){ 1, 3 }, 2);
    assert_int_equal(keel_dataset_class_count(d), 4);
    assert_string_equal(keel_dataset_class_name(d, 2), "1");
    keel_dataset_destroy(d);
    files_text("t.csv", "a,y\n1,1\n"); /* a name before it is a number */
    d = opened("t.csv", &o);
    check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_INT32, (double[]){ 2 }, 1);
    keel_dataset_destroy(d);
    o.label_mode = KEEL_LABEL_CATEGORICAL;
    d = opened("t.csv", &o);
    check_named(d, 1, "y", KEEL_ROLE_TARGET, KEEL_FLOAT32, (double[]){ 0, 0, 1, 0 }, 4);
    keel_dataset_destroy(d);
    o.class_count = 5; /* a model may have more outputs than classes have names */
    d = opened("t.csv", &o);
    assert_int_equal(keel_dataset_y_shape(d).dim[0], 5);
    assert_int_equal(keel_dataset_class_count(d), 4);
    keel_dataset_destroy(d);
    files_text("t.csv", "a,y\n1,dog\n2,wolf\n");
    refused("t.csv", &o, KEEL_EDATA, "'wolf' is not one of the model's classes: cat, dog, 1, bird");
    o.class_count = 3;
    refused("t.csv", &o, KEEL_EARG, "4 class_names for 3 classes");
    files_end();
}

static void every_failed_allocation_is_survived(void **state)
{
    files_begin();
    static const member m[] = {
        { "x_0", 1 }, { "x_1", 1 }, { "y_0", 1 }, { "y_1", 0 }, { "sample_weight_1", 1 }
    };
    static const char *const inputs[] = { "a", "hue=b", "c" }, *const targets[] = { "k" },
                             *const classes[] = { "z", "y" };
    write_npz("t.npz", m, 5);
    files_text("t.csv", "a,b,c,k\n1,red,16777217,z\n2,blue,5,y\n3,,7,z\n");
    for (int kind = 0; kind < 4; kind++) {
        bool done = false;
        keel_dataset_options o = options();
        o.inputs = inputs;
        o.targets = targets;
        o.n_input = kind ? 3 : 0;
        o.n_target = kind ? 1 : 0;
        if (kind == 2) o.label_mode = KEEL_LABEL_CATEGORICAL;
        o.class_names = kind == 3 ? classes : NULL;
        o.class_name_count = kind == 3 ? 2 : 0;
        for (int n = 0; !done; n++) {
            const int64_t live = keel_memory_live();
            keel_dataset *d = NULL;
            keel_memory_fail_at(n);
            const keel_status s = keel_dataset_open(&d, files_path(kind ? "t.csv" : "t.npz"), &o);
            keel_memory_fail_at(-1);
            done = s >= 0;
            if (!done) assert_int_equal(s, KEEL_ENOMEM);
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
        cmocka_unit_test(columns_of_a_csv_become_several_fields),
        cmocka_unit_test(whole_numbers_of_a_csv_are_exact),
        cmocka_unit_test(texts_of_a_csv_and_an_npz_are_a_field_of_strings),
        cmocka_unit_test(arrays_of_an_npz_are_found_by_name_or_number),
        cmocka_unit_test(weights_of_rows_are_found_by_name),
        cmocka_unit_test(each_target_may_have_weights_of_its_own),
        cmocka_unit_test(a_csv_without_a_header_does_not_lose_its_first_row),
        cmocka_unit_test(a_column_with_a_comma_is_named_in_quotes),
        cmocka_unit_test(the_separator_is_found_in_the_first_line),
        cmocka_unit_test(labels_that_are_numbers_can_be_one_hot),
        cmocka_unit_test(targets_may_differ_in_what_their_labels_are),
        cmocka_unit_test(numbered_targets_may_differ_in_what_their_labels_are),
        cmocka_unit_test(labels_that_are_no_classes_are_refused),
        cmocka_unit_test(thirty_thousand_one_hot_classes_are_refused_with_the_cost),
        cmocka_unit_test(classes_of_a_model_keep_their_numbers),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
