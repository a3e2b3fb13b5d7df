/* What pipelines refuse, with the words that they refuse it in; pipeline files that are wrong; and
 * a failure of every allocation. */
#include "must.h"
#include "base/memory.h"
#include "data_files.h"
#include "io/toml.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static float numbers[40];

/* Applies stages written as "name {json}", one behind the other; the status of the last. */
static keel_status apply_all(keel_dataset **out, const char *text)
{
    char copy[512], *rest;
    snprintf(copy, sizeof copy, "%s", text);
    keel_dataset *d;
    const keel_tensor x = { KEEL_FLOAT32, { 2, { 20, 2 } }, numbers };
    keel_status s = keel_dataset_from_arrays(&d, &x, NULL, NULL);
    if (s < 0) return s;
    for (char *part = strtok_r(copy, "|", &rest); part && s >= 0;
         part = strtok_r(NULL, "|", &rest)) {
        char name[64], key[3][64], value[3][64];
        keel_arg arg[4] = { 0 };
        const int n = sscanf(part, " %63s %63s %63s %63s %63s %63s %63s", name, key[0], value[0],
                             key[1], value[1], key[2], value[2]);
        for (int i = 0; i < (n - 1) / 2; i++) arg[i] = (keel_arg)KEEL_ARG_JSON(key[i], value[i]);
        keel_dataset *next = NULL, *pair[2] = { d, d };
        const bool two = !strcmp(name, "zip") || !strcmp(name, "concatenate") ||
                         !strcmp(name, "choose_from_datasets");
        s = keel_dataset_apply(&next, name, arg, pair, two ? 2 : 1);
        keel_dataset_destroy(d);
        d = next;
    }
    if (s < 0) return s;
    *out = d;
    return KEEL_OK;
}

static const struct refused {
    const char *what, *stages;
    keel_status status;
    const char *text;
} refused[] = {
    { "a stage that does not exist", "tak count 1", KEEL_EARG, "there is no stage 'tak'" },
    { "a prefetch that is not the last stage", "prefetch | take count 1", KEEL_EARG,
      "must be the last stage" },
    { "a prefetch of nothing", "prefetch buffer_size 0", KEEL_EARG, "from 1 on" },
    { "a stage without its argument", "take", KEEL_EARG, "count" },
    { "an argument that does not exist", "take n 1", KEEL_EARG, "there is no argument 'n'" },
    { "a negative count", "take count -2", KEEL_EARG, "count" },
    { "a shard that does not exist", "shard num_shards 3 index 3", KEEL_EARG, "the last is 2" },
    { "batches of batches", "batch batch_size 2 | batch batch_size 2", KEEL_EUNSUP,
      "unbatch them first" },
    { "a last batch where the end is an error", "batch batch_size 3 end \"error\"", KEEL_EDATA,
      "a last batch of 2" },
    { "a last batch that is dropped and filled",
      "batch batch_size 3 end \"wrap\" drop_remainder true", KEEL_EARG, "give one of them" },
    { "to keep and to leave out the last rows",
      "batch batch_size 3 end \"keep\" drop_remainder true", KEEL_EARG, "give one of them" },
    { "a mixture of one, by tf.data's name", "sample_from_datasets", KEEL_EARG,
      "takes two datasets or more" },
    { "to unbatch rows", "unbatch", KEEL_EARG, "rows already" },
    { "to rebatch rows", "rebatch batch_size 2", KEEL_EARG, "use batch" },
    { "a cache behind a shuffle", "shuffle | cache", KEEL_EARG, "put the cache before it" },
    { "a cache without end", "repeat | cache", KEEL_EUNSUP, "without end" },
    { "a limit of memory for a file", "cache memory 9 filename \"/tmp/f\"", KEEL_EARG, "limit" },
    { "a cache in a folder that is not there", "cache filename \"/nothing/f\"", KEEL_EIO,
      "its folder is not there" },
    { "a snapshot without end", "repeat | snapshot path \"/tmp/f\"", KEEL_EUNSUP, "without end" },
    { "a snapshot without a path", "snapshot", KEEL_EARG, "path" },
    { "a compression that Keel has not", "snapshot path \"f\" compression \"SNAPPY\"", KEEL_EARG,
      "GZIP" },
    { "a number of each batch", "batch batch_size 2 | enumerate", KEEL_EUNSUP,
      "before the batches" },
    { "a number under a name that is taken", "enumerate field \"x\"", KEEL_EARG, "already" },
    { "real numbers compared", "unique", KEEL_EUNSUP, "whole numbers and texts" },
    { "flat_map over numbers", "flat_map", KEEL_EARG, "names of files" },
    { "interleave over numbers", "interleave cycle_length 2", KEEL_EARG, "names of files" },
    { "padding of batches", "batch batch_size 2 | padded_batch batch_size 2", KEEL_EUNSUP,
      "unbatch them first" },
    { "padding to less than a row has", "padded_batch batch_size 2 padded_shapes [1]", KEEL_ESHAPE,
      "cannot be padded to 1" },
    { "padding with a text", "padded_batch batch_size 2 padding_values \"a\"", KEEL_EARG,
      "padded with a number" },
    { "rows of one length where all have it", "pad length 3", KEEL_EARG, "differ in length" },
    { "to rebatch by 0", "batch batch_size 2 | rebatch batch_size [2,0]", KEEL_EARG, "from 1 on" },
    { "resampling without a target", "rejection_resample target_dist [1,1]", KEEL_EARG,
      "no target" },
    { "resampling by a real number", "rejection_resample target_dist [1,1] field \"x\"", KEEL_EARG,
      "not the number" },
    { "a class that shall come and is not there",
      "enumerate | rejection_resample field \"index\" target_dist [1,0.5] initial_dist [3,0]",
      KEEL_EARG, "class 1 shall come" },
    { "as many classes in the data as are wanted",
      "enumerate | rejection_resample field \"index\" target_dist [1,2] initial_dist [3]",
      KEEL_EARG, "1 of initial_dist for 2" },
    { "no class at all", "enumerate | rejection_resample field \"index\" target_dist [0,0]",
      KEEL_EARG, "target_dist sums to 0" },
    { "less than no rows of a class",
      "enumerate | rejection_resample field \"index\" target_dist [1,2] initial_dist [3,-1]",
      KEEL_EARG, "initial_dist 1 is -1" },
    { "to choose by rows of numbers", "choose_from_datasets", KEEL_EARG, "whole numbers from 0" },
    { "scan by name", "scan", KEEL_EARG, "C" },
    { "group_by_window by name", "group_by_window", KEEL_EARG, "C" },
    { "a shuffle of everything without end", "repeat | shuffle", KEEL_EARG, "buffer_size" },
    { "a window without end", "repeat | window size 2", KEEL_EUNSUP, "have an end" },
    { "buckets without boundaries", "bucket_by_sequence_length", KEEL_EARG, "bucket_boundaries" },
    { "buckets where no length differs",
      "bucket_by_sequence_length bucket_boundaries [3] bucket_batch_sizes [2,2]", KEEL_EARG,
      "differ" },
    { "buckets of batches",
      "batch batch_size 2 | bucket_by_sequence_length bucket_boundaries [3] bucket_batch_sizes "
      "[2,2]",
      KEEL_EUNSUP, "unbatch them first" },
    { "as many batch sizes as boundaries",
      "bucket_by_sequence_length bucket_boundaries [3] bucket_batch_sizes [2]", KEEL_EARG,
      "make 2 buckets" },
    { "boundaries of which two are equal",
      "bucket_by_sequence_length bucket_boundaries [3,3] bucket_batch_sizes [2,2,2]", KEEL_EARG,
      "must ascend, but 3 follows 3" },
    { "boundaries that descend",
      "bucket_by_sequence_length bucket_boundaries [4,3] bucket_batch_sizes [2,2,2]", KEEL_EARG,
      "must ascend, but 3 follows 4" },
    { "a bucket for rows without length",
      "bucket_by_sequence_length bucket_boundaries [0,3] bucket_batch_sizes [2,2,2]", KEEL_EARG,
      "bucket_boundaries 0 is 0" },
    { "a bucket whose batches have no rows",
      "bucket_by_sequence_length bucket_boundaries [2,3] bucket_batch_sizes [0,2,2]", KEEL_EARG,
      "bucket_batch_sizes 0 is 0" },
    { "map by name", "map", KEEL_EARG, "C" },
};

static void it_is_refused(void **state)
{
    const struct refused *r = *state;
    keel_dataset *d = NULL;
    const keel_status s = apply_all(&d, r->stages);
    if (s != r->status || !strstr(keel_error(), r->text))
        fail_msg("%s: %s", keel_status_name(s), s < 0 ? keel_error() : "accepted");
    assert_null(d);
}

/* ---- datasets that do not go together -------------------------------------------------------- */

/* A table with these labels, a word each. */
static keel_dataset *labelled(const char *name, const char *labels)
{
    char text[128] = "x,y\n", copy[64], *rest;
    keel_dataset *d;
    snprintf(copy, sizeof copy, "%s", labels);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        const size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "1,%s\n", word);
    }
    must(keel_dataset_open(
        &d, files_text(name, text),
        &(keel_dataset_options){ .size = sizeof(keel_dataset_options), .label = "y" }));
    return d;
}

static void a_class_has_one_number_in_all_datasets(void **state)
{
    static const struct {
        const char *what, *first, *second, *says; /* says: NULL: they go together */
    } cases[] = {
        { "the same classes", "cat dog", "dog cat", NULL },
        { "fewer classes, with the same numbers", "cat dog", "cat", NULL },
        { "numbers, which are what they are", "0 1", "1 2", NULL },
        { "a class that has another number", "cat dog", "dog",
          "class 0 is 'dog', and in the first dataset 'cat'" },
        { "a class that the first dataset has not", "cat dog", "cat dog fox",
          "class 2 is 'fox', which the first dataset has not" },
    };
    static const char *const stages[] = { "concatenate", "sample", "interleave" };
    (void)state;
    files_begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_dataset *d[2] = { labelled("a.csv", cases[i].first),
                               labelled("b.csv", cases[i].second) };
        for (size_t k = 0; k < sizeof stages / sizeof *stages; k++) {
            keel_dataset *both = NULL;
            const keel_status s = keel_dataset_apply(&both, stages[k], NULL, d, 2);
            if (s != (cases[i].says ? KEEL_ESHAPE : KEEL_OK) ||
                (s < 0 && !strstr(keel_error(), cases[i].says)))
                fail_msg("%s, %s: %s", cases[i].what, stages[k], s < 0 ? keel_error() : "accepted");
            keel_dataset_destroy(both);
        }
        keel_dataset_destroy(d[0]);
        keel_dataset_destroy(d[1]);
    }
    files_end();
}

/* A model keeps one list of names, and reads all words of labels by it. */
static void zipped_labels_have_one_list_of_classes(void **state)
{
    static const struct {
        const char *what, *first, *second, *last_class; /* last_class: NULL: refused */
    } cases[] = {
        { "both have the same", "cat dog", "dog cat", "dog" },
        { "the first has numbers", "0 1", "cat dog", "dog" },
        { "the second has numbers", "cat dog", "0 1", "dog" },
        { "they have others", "cat dog", "cat fox", NULL },
        { "the second has more", "cat dog", "cat dog eel", NULL },
    };
    (void)state;
    files_begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_dataset *d[2] = { labelled("a.csv", cases[i].first),
                               labelled("b.csv", cases[i].second) };
        keel_dataset *both = NULL;
        const keel_status s = keel_dataset_apply(&both, "zip", NULL, d, 2);
        assert_int_equal(s, cases[i].last_class ? KEEL_OK : KEEL_ESHAPE);
        if (s < 0)
            assert_non_null(strstr(keel_error(), "other classes than the first dataset"));
        else
            assert_string_equal(keel_dataset_class_name(both, keel_dataset_class_count(both) - 1),
                                cases[i].last_class);
        keel_dataset_destroy(both);
        keel_dataset_destroy(d[0]);
        keel_dataset_destroy(d[1]);
    }
    files_end();
}

/* ---- pipeline files -------------------------------------------------------------------------- */

#define LETTERS_32  "abcdefghijklmnopqrstuvwxyzABCDEF"
#define LETTERS_127 LETTERS_32 LETTERS_32 LETTERS_32 "abcdefghijklmnopqrstuvwxyzABCDE"

static const struct toml {
    const char *what, *text;
    keel_status status;
    const char *answer; /* JSON, or a part of the error */
} toml[] = {
    { "keys and values", "a = 1\nb = \"x\" # c\nc = true\nd = 1.5\n", KEEL_OK,
      "{\"a\":1,\"b\":\"x\",\"c\":true,\"d\":1.5}" },
    { "tables and arrays of tables", "[t]\na=1\n[[s]]\nn=1\n[[s]]\nn=2\n", KEEL_OK,
      "{\"s\":[{\"n\":1},{\"n\":2}],\"t\":{\"a\":1}}" },
    { "dotted keys", "a.b.c = 1\na.d = 2\n", KEEL_OK, "{\"a\":{\"b\":{\"c\":1},\"d\":2}}" },
    { "a table behind one within it", "[b.a]\nx = 1\n[b]\ny = 2\n[b.c]\n", KEEL_OK,
      "{\"b\":{\"a\":{\"x\":1},\"c\":{},\"y\":2}}" },
    { "a table behind a list of tables within it", "[[b.a]]\n[[b.a]]\n[b]\ny = 2\n", KEEL_OK,
      "{\"b\":{\"a\":[{},{}],\"y\":2}}" },
    { "a table within one of dotted keys", "[a]\nb.c = 1\n[a.b.d]\n", KEEL_OK,
      "{\"a\":{\"b\":{\"c\":1,\"d\":{}}}}" },
    { "dotted keys in a table within", "[a.b.c]\n[a]\nb.d = 1\n", KEEL_OK,
      "{\"a\":{\"b\":{\"c\":{},\"d\":1}}}" },
    { "tables of the tables of a list", "[[a]]\n[a.b]\nx = 1\n[[a]]\n[a.b]\nx = 2\n", KEEL_OK,
      "{\"a\":[{\"b\":{\"x\":1}},{\"b\":{\"x\":2}}]}" },
    { "lists over lines", "a = [1, # one\n 2,\n]\n", KEEL_OK, "{\"a\":[1,2]}" },
    { "inline tables", "a = { b = 1, c = [ ] }\n", KEEL_OK, "{\"a\":{\"b\":1,\"c\":[]}}" },
    { "numbers in all ways", "a=0x1F\nb=0b101\nc=0o17\nd=1_000\ne=+3\nf=-2e3\n", KEEL_OK,
      "{\"a\":31,\"b\":5,\"c\":15,\"d\":1000,\"e\":3,\"f\":-2000.0}" },
    { "escapes", "a = \"\\u00e9\\t\\\\\"\nb = 'c:\\d'\n", KEEL_OK,
      "{\"a\":\"\xc3\xa9\\t\\\\\",\"b\":\"c:\\\\d\"}" },
    { "the last character", "a = \"\\U0010FFFF\"\n", KEEL_OK, "{\"a\":\"\xf4\x8f\xbf\xbf\"}" },
    { "characters of all lengths", "a = \"\\u0041\\u20ac\\U0001F600\"\n\"a \\u00e9\".'b.c' = 1\n",
      KEEL_OK, "{\"a\":\"A\xe2\x82\xac\xf0\x9f\x98\x80\",\"a \xc3\xa9\":{\"b.c\":1}}" },
    { "no text at all", "", KEEL_OK, "{}" },
    { "a file of another system",
      "\xef\xbb\xbf"
      "a = 1\r\nb = 2\r\n",
      KEEL_OK, "{\"a\":1,\"b\":2}" },
    { "a key without a value", "a\n", KEEL_EFORMAT, "line 1: = is missing" },
    { "a value without quotes", "a = 1\nb = hello\n", KEEL_EFORMAT, "line 2: a text needs quotes" },
    { "two values", "a = 1 2\n", KEEL_EFORMAT, "something follows" },
    { "a key twice", "a = 1\na = 2\n", KEEL_EFORMAT, "line 2: a key is given twice" },
    { "a list of tables under the key of a value", "a = 1\n[[a]]\n", KEEL_EFORMAT,
      "line 2: a table is given twice" },
    { "a list of tables under the key of a list", "a = []\n[[a]]\n", KEEL_EFORMAT,
      "line 2: a table is given twice" },
    { "a list of tables under the key of a list of inline tables", "a = [{ b = 1 }]\n[[a]]\n",
      KEEL_EFORMAT, "line 2: a table is given twice" },
    { "a table within an inline one", "a = { b = 1 }\n[a.c]\n", KEEL_EFORMAT, "once as a table" },
    { "a table within those of a list of inline ones", "a = [{ b = 1 }]\n[a.c]\n", KEEL_EFORMAT,
      "once as a table" },
    { "dotted keys of an inline table", "a = { b = 1 }\na.c = 2\n", KEEL_EFORMAT,
      "once as a table" },
    { "a table of dotted keys again", "[a]\nb.c = 1\n[a.b]\n", KEEL_EFORMAT,
      "line 3: a table is given twice" },
    { "dotted keys in a table of its own", "[a.b]\n[a]\nb.c = 1\n", KEEL_EFORMAT,
      "line 3: a table is given twice" },
    { "dotted keys in a list of tables", "[[a.b]]\n[a]\nb.c = 1\n", KEEL_EFORMAT,
      "line 3: a table is given twice" },
    { "a list of tables under the key of a table", "[a.b]\n[[a]]\n", KEEL_EFORMAT,
      "line 2: a table is given twice" },
    { "a table under the key of a list of tables", "[[a]]\n[a]\n", KEEL_EFORMAT, "twice" },
    { "a table behind one within it, twice", "[b.a]\n[b]\n[b]\n", KEEL_EFORMAT,
      "line 3: a table is given twice" },
    { "a table twice", "[a]\n[a]\n", KEEL_EFORMAT, "twice" },
    { "a table that is a number", "a = 1\n[a.b]\n", KEEL_EFORMAT, "twice" },
    { "a text without an end", "a = \"x\n", KEEL_EFORMAT, "no end" },
    { "an unknown escape", "a = \"\\q\"\n", KEEL_EFORMAT, "escape" },
    { "a lone half of a character", "a = \"\\ud800\"\n", KEEL_EFORMAT, "no character" },
    { "bytes that are no UTF-8", "a = \"\xff\"\n", KEEL_EFORMAT, "UTF-8" },
    { "a number that is too large", "a = 99999999999999999999\n", KEEL_EFORMAT, "64 bits" },
    { "a number with a leading zero", "a = 012\n", KEEL_EFORMAT, "not a value" },
    { "a number with two underscores in succession", "a = 1__0\n", KEEL_EFORMAT, "not a value" },
    { "a number with an underscore at its end", "a = 1_\n", KEEL_EFORMAT, "not a value" },
    { "a sign after the prefix of a base", "a = 0x-5\n", KEEL_EFORMAT, "not a whole number" },
    { "the prefix of a base twice", "a = 0x0x5\n", KEEL_EFORMAT, "not a whole number" },
    { "a character behind the last", "a = \"\\U00110000\"\n", KEEL_EFORMAT, "no character" },
    { "a key of 127 letters", LETTERS_127 " = 1\n", KEEL_OK, "{\"" LETTERS_127 "\":1}" },
    { "a key of 128 letters", LETTERS_127 "a = 1\n", KEEL_EFORMAT, "a key is too long" },
    { "a quoted key of 128 letters", "'" LETTERS_127 "a' = 1\n", KEEL_EFORMAT,
      "a key is too long" },
    { "a date", "a = 2024-01-01\n", KEEL_EUNSUP, "dates" },
    { "a text of several lines", "a = \"\"\"\nx\"\"\"\n", KEEL_EUNSUP, "several lines" },
    { "a list without an end", "a = [1, 2\n", KEEL_EFORMAT, "comma" },
    { "a list that is nested too deep", "a = [[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]\n",
      KEEL_EFORMAT, "too deep" },
};

static void it_is_read(void **state)
{
    const struct toml *t = *state;
    json_t *v = NULL;
    const keel_status s = keel_toml_parse(&v, t->text, strlen(t->text), "f");
    assert_int_equal(s, t->status);
    if (s < 0) {
        if (!strstr(keel_error(), t->answer)) fail_msg("%s", keel_error());
        return;
    }
    char *text = json_dumps(v, JSON_SORT_KEYS | JSON_COMPACT);
    assert_string_equal(text, t->answer);
    free(text);
    json_decref(v);
}

static void without_memory_no_key_is_another(void **state)
{
    static const char text[] = "[t]\nalpha = 1\nbeta.gamma = 'x'\n";
    (void)state;
    keel_status s = KEEL_ENOMEM;
    for (int64_t k = 0; s == KEEL_ENOMEM; k++) {
        json_t *v = NULL;
        keel_memory_fail_at(k);
        s = keel_toml_parse(&v, text, strlen(text), "f");
        keel_memory_fail_at(-1);
        if (s < 0 && s != KEEL_ENOMEM) fail_msg("request %d: %s", (int)k, keel_error());
        if (s < 0) continue;
        char *got = json_dumps(v, JSON_SORT_KEYS | JSON_COMPACT);
        assert_string_equal(got, "{\"t\":{\"alpha\":1,\"beta\":{\"gamma\":\"x\"}}}");
        free(got);
        json_decref(v);
    }
    must(s);
}

static const struct file {
    const char *what, *text, *error;
} file[] = {
    { "a file without a source", "[[stage]]\nname = 'take'\n", "`source` is missing: a text" },
    { "a source that is a list", "source = ['a.npz']\n", "`source` must be a text" },
    { "an unknown key", "source = 'a'\nstages = []\n", "unknown key 'stages'" },
    { "a stage without a name", "source = 'SELF.npy'\n[[stage]]\ncount = 1\n", "has no name" },
    { "a stage that needs C", "source = 'SELF.npy'\n[[stage]]\nname = 'map'\n",
      "map needs a function in C" },
    { "a circle", "source = 'SELF'\n", "in a circle" },
    { "`with` that is no list", "source = 'SELF.npy'\n[[stage]]\nname = 'zip'\nwith = 1\n",
      "must be a list" },
    { "a source that is not there", "source = 'nothing.npz'\n", "nothing.npz" },
    { "a further dataset that is a number",
      "source = \"range:5\"\n[[stage]]\nname = \"concatenate\"\nwith = [\"range:3\", 3]\n",
      "stage 1: `with` must be a list of texts" },
    { "a further dataset that is not there",
      "source = \"range:5\"\n[[stage]]\nname = \"concatenate\"\nwith = [\"/nowhere.npy\"]\n",
      "/nowhere.npy: No such file" },
    { "a further dataset that is the file itself",
      "source = \"range:5\"\n[[stage]]\nname = \"concatenate\"\nwith = [\"SELF\"]\n",
      "in a circle" },
};

/* Replace SELF in a text by a path. */
static void put_path(char *out, size_t size, const char *text, const char *path)
{
    const char *at = strstr(text, "SELF");
    if (at)
        snprintf(out, size, "%.*s%s%s", (int)(at - text), text, path, at + 4);
    else
        snprintf(out, size, "%s", text);
}

static void write_to(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void a_file_is_refused(void **state)
{
    const struct file *f = *state;
    static const char npy[] = "\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, "
                              "'shape': (2, 1), }";
    char path[64], array[80], text[512], whole[128 + 8];
    snprintf(path, sizeof path, "/tmp/keel-pipeline-%d.toml", (int)getpid());
    snprintf(array, sizeof array, "%s.npy", path);
    memset(whole, ' ', sizeof whole);
    memcpy(whole, npy, sizeof npy - 1);
    whole[127] = '\n';
    memset(whole + 128, 0, 8);
    write_to(array, whole, sizeof whole);
    put_path(text, sizeof text, f->text, path);
    write_to(path, text, strlen(text));
    keel_dataset *d = NULL;
    const keel_status s = keel_dataset_open(&d, path, NULL);
    if (s >= 0 || !strstr(keel_error(), f->error)) fail_msg("%s", s < 0 ? keel_error() : "opened");
    unlink(path);
    unlink(array);
}

static void further_datasets_are_opened_behind_the_first(void **unused)
{
    (void)unused;
    static const char text[] = "source = \"range:5\"\n"
                               "[[stage]]\nname = \"concatenate\"\n"
                               "with = [\"range:10:12\", \"range:20:23\"]\n"
                               "[[stage]]\nname = \"skip\"\ncount = 4\n";
    static const int64_t want[] = { 4, 10, 11, 20, 21, 22 };
    char path[64];
    keel_dataset *d;
    keel_reader *r;
    const keel_tensor *x;
    snprintf(path, sizeof path, "/tmp/keel-pipeline-%d.toml", (int)getpid());
    write_to(path, text, sizeof text - 1);
    must(keel_dataset_open(&d, path, NULL));
    unlink(path);
    must(keel_reader_create(&r, d, NULL));
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        must(keel_reader_next(r, &x));
        assert_int_equal(*(int64_t *)x->data, want[i]);
    }
    assert_int_equal(keel_reader_next(r, &x), KEEL_END);
    keel_reader_destroy(r);
    keel_dataset_destroy(d);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static keel_status even(void *context, const keel_tensor *in, bool *keep,
                        const keel_element_place *at)
{
    (void)context;
    (void)in;
    *keep = at->index % 2 == 0;
    return KEEL_OK;
}

static keel_status build_and_read(void)
{
    static const char stages[] = "shuffle buffer_size 4 | window size 2 | repeat count 2 | batch "
                                 "batch_size 3 | rebatch batch_size 2 | unbatch | shuffle "
                                 "buffer_size 3 | batch batch_size 4";
    keel_dataset *d, *some;
    keel_reader *r;
    const keel_tensor *x;
    const keel_filter f = { .size = sizeof f, .call = even };
    KEEL_TRY(apply_all(&d, stages));
    keel_status s = keel_dataset_filter(&some, d, &f);
    keel_dataset_destroy(d);
    if (s < 0) return s;
    s = keel_reader_create(&r, some,
                           &(keel_reader_options){ KEEL_READER_OPTIONS.size, .threads = 2 });
    if (s >= 0) {
        while ((s = keel_reader_next(r, &x)) == KEEL_OK) continue;
        keel_reader_destroy(r);
    }
    keel_dataset_destroy(some);
    return s;
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    must(build_and_read());
    const int64_t before = keel_memory_live();
    int64_t calls = keel_memory_calls();
    must(build_and_read());
    calls = keel_memory_calls() - calls;
    for (int64_t i = 0; i < calls; i += 1 + i / 40) {
        keel_memory_fail_at(i);
        const keel_status s = build_and_read();
        keel_memory_fail_at(-1);
        if (s < 0) assert_int_equal(s, KEEL_ENOMEM);
        assert_int_equal(keel_memory_live(), before);
    }
}

int main(void)
{
    enum {
        N_REFUSED = sizeof refused / sizeof *refused,
        N_TOML = sizeof toml / sizeof *toml,
        N_FILE = sizeof file / sizeof *file
    };
    static struct CMUnitTest test[N_REFUSED + N_TOML + N_FILE + 5];
    int n = 0;
    for (int i = 0; i < N_REFUSED; i++)
        test[n++] =
            (struct CMUnitTest){ refused[i].what, it_is_refused, NULL, NULL, (void *)&refused[i] };
    for (int i = 0; i < N_TOML; i++)
        test[n++] = (struct CMUnitTest){ toml[i].what, it_is_read, NULL, NULL, (void *)&toml[i] };
    for (int i = 0; i < N_FILE; i++)
        test[n++] =
            (struct CMUnitTest){ file[i].what, a_file_is_refused, NULL, NULL, (void *)&file[i] };
    test[n++] = (struct CMUnitTest)cmocka_unit_test(further_datasets_are_opened_behind_the_first);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(a_class_has_one_number_in_all_datasets);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(zipped_labels_have_one_list_of_classes);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(without_memory_no_key_is_another);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(every_allocation_may_fail);
    return cmocka_run_group_tests(test, NULL, NULL);
}
