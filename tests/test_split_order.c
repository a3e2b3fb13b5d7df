/* The files that a validation split of a directory takes are those of Keras for the same seed. */
#include "data_files.h"
#include "must.h"
#include "base/memory.h"
#include "data/source.h"
#include "golden.h"

static json_t *golden;

static void the_order_is_that_of_numpy(void **state)
{
    (void)state;
    const json_t *all = json_object_get(golden, "orders");
    for (size_t i = 0; i < json_array_size(all); i++) {
        long long seed, n, first[4], last[4], want, sum = 0;
        json_t *c = json_array_get(all, i), *head = json_array_get(c, 2);
        keel_split_order *o;
        assert_int_equal(json_unpack(c, "[I,I]", &seed, &n), 0);
        want = json_integer_value(json_array_get(c, 4));
        must(keel_split_order_create(&o, n, (uint64_t)seed));
        for (size_t k = 0; k < json_array_size(head); k++) {
            first[k] = json_integer_value(json_array_get(head, k));
            last[k] = json_integer_value(json_array_get(json_array_get(c, 3), k));
            assert_int_equal(o->at[k], first[k]);
            assert_int_equal(o->at[(size_t)n - json_array_size(head) + k], last[k]);
        }
        for (long long k = 0; k < n; k++) sum += (k % 97 + 1) * (long long)o->at[k];
        assert_int_equal(sum, want);
        keel_split_order_release(o);
    }
}

static void compare(const json_t *want, const keel_dataset *d)
{
    char name[64];
    const json_t *list;
    size_t i;
    json_t *one;
    const bool validation = d->first > 0;
    list = json_object_get(want, validation ? "validation" : "training");
    assert_int_equal(keel_dataset_rows(d), json_array_size(list));
    json_array_foreach(list, i, one)
    {
        const char *path = json_string_value(json_array_get(one, 0));
        int64_t y = -1;
        keel_scratch scratch = { 0 };
        const int64_t index = keel_dataset_index(d, (int64_t)i);
        const keel_dtype dtypes[] = { KEEL_FLOAT32, KEEL_INT64 };
        const keel_row row = { .want = dtypes, .at = { NULL, &y } };
        snprintf(name, sizeof name, "/%s", path);
        assert_non_null(strstr(d->origin->source->row_name(d->origin->state, index), name));
        must(d->origin->source->read(d->origin->state, index, &row, &scratch));
        assert_int_equal(y, json_integer_value(json_array_get(one, 1)));
        keel_scratch_free(&scratch);
    }
}

static void make_tree(const char *kind)
{
    static const char sound[] = "RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2"
                                "\0\x10\0data\2\0\0\0\1\0";
    static const char bmp[] = "BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\1\0\0\0\1\0\x18\0"
                              "\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\3";
    const bool audio = !strcmp(kind, "audio"), text = !strcmp(kind, "text");
    static const char *const folders[] = { "", "/a", "/b", "/c", "/b/deep" };
    size_t i;
    json_t *name;
    char path[128];
    for (i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s%s", kind, folders[i]);
        files_folder(path);
    }
    json_array_foreach(json_object_get(golden, "tree"), i, name)
    {
        snprintf(path, sizeof path, "%s/%s.%s", kind, json_string_value(name),
                 audio  ? "wav"
                 : text ? "txt"
                        : "png");
        if (audio)
            files_write(path, sound, sizeof sound - 1);
        else
            files_write(path, text ? "word" : bmp, text ? 4 : sizeof bmp);
    }
}

static void both_parts_have_the_files_of_keras(void **state)
{
    (void)state;
    size_t i;
    json_t *c;
    char made[16] = "";
    json_array_foreach(json_object_get(golden, "splits"), i, c)
    {
        keel_dataset_options o = KEEL_DATASET_OPTIONS;
        keel_dataset *d = NULL, *t, *v;
        const char *kind = golden_text(c, "kind");
        if (strcmp(made, kind)) make_tree(strcpy(made, kind));
        o.height = o.width = 1;
        o.seed = (uint64_t)golden_number(c, "seed");
        o.validation_split = golden_number(c, "split");
        for (int part = KEEL_SUBSET_TRAINING; part <= KEEL_SUBSET_VALIDATION; part++) {
            o.subset = (keel_subset)part;
            must(keel_dataset_open(&d, files_path(kind), &o));
            compare(c, d);
            keel_dataset_destroy(d);
        }
        o.subset = KEEL_SUBSET_ALL; /* and of one that is open */
        must(keel_dataset_open(&d, files_path(kind), &o));
        must(keel_dataset_split(d, o.validation_split, o.seed, &t, &v));
        keel_dataset_destroy(d);
        compare(c, t);
        keel_dataset_destroy(t);
        compare(c, v);
        keel_dataset_destroy(v);
    }
}

static void a_seed_that_keras_does_not_take_is_refused(void **state)
{
    (void)state;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    keel_dataset *d, *t = NULL, *v = NULL;
    must(keel_dataset_open(&d, files_path("text"), &o));
    assert_int_equal(keel_dataset_split(d, 0.5, UINT64_C(1) << 32, &t, &v), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "text: the seed 4294967296 is above 4294967295"));
    must(keel_dataset_split(d, 0.5, UINT32_MAX, &t, &v));
    keel_dataset_destroy(t);
    keel_dataset_destroy(v);
    keel_dataset_destroy(d);
}

/* The pipeline of stages written as "name {json}", on numbers or on a directory. */
static keel_dataset *pipeline(const char *from, const char *text)
{
    char copy[128], *rest;
    keel_dataset *d, *next;
    snprintf(copy, sizeof copy, "%s", text);
    must(keel_dataset_open(&d, from, NULL));
    for (char *part = strtok_r(copy, "|", &rest); part; part = strtok_r(NULL, "|", &rest)) {
        char name[32], key[32], value[32];
        const int n = sscanf(part, " %31s %31s %31s", name, key, value);
        must(keel_dataset_apply(&next, name, n == 3 ? KEEL_ARGS(KEEL_ARG_JSON(key, value)) : NULL,
                                &d, 1));
        keel_dataset_destroy(d);
        d = next;
    }
    return d;
}

/* Each number of 0 to 9 is in one part, the same in each pass. */
static void check_parts(const keel_dataset *training, const keel_dataset *validation)
{
    const keel_dataset *const part[] = { training, validation };
    for (uint64_t pass = 0; pass < 2; pass++) {
        bool seen[10] = { 0 };
        for (int k = 0; k < 2; k++) {
            keel_reader *r;
            const keel_tensor *x;
            must(keel_reader_create(
                &r, part[k],
                &(keel_reader_options){ KEEL_READER_OPTIONS.size, .seed = 3, .pass = k * pass }));
            while (keel_reader_next(r, &x) == KEEL_OK) {
                const int64_t i = *(const int64_t *)x->data;
                assert_false(seen[i]);
                seen[i] = true;
            }
            keel_reader_destroy(r);
        }
        for (int i = 0; i < 10; i++) assert_true(seen[i]);
    }
}

static void rows_for_validation_are_never_trained_with(void **state)
{
    static const char reshuffles[] = "shuffle gives rows another order in each pass",
                      repeats[] = "repeat gives rows more than once",
                      folders[] = "a directory comes folder by folder";
    static const struct {
        const char *what, *stages;
        const char *numbers, *directory; /* why it is refused; NULL: it is split */
    } cases[] = {
        { "rows as they come", "skip count 0", NULL, folders },
        { "another order in each pass", "shuffle", reshuffles, reshuffles },
        { "the same through a buffer, and further stages", "shuffle buffer_size 3 | take count 10",
          reshuffles, reshuffles },
        { "one order for all passes", "shuffle reshuffle_each_iteration false", NULL, NULL },
        { "rows that come twice", "repeat count 2 | take count 10", repeats, repeats },
        { "rows without end", "repeat", repeats, repeats },
        { "rows that come once", "repeat count 1", NULL, folders },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 2; k++) {
            const char *says = k ? cases[i].directory : cases[i].numbers;
            keel_dataset *d = pipeline(k ? files_path("text") : "range:10", cases[i].stages);
            keel_dataset *t = NULL, *v = NULL;
            const keel_status s = keel_dataset_split(d, 0.25, 0, &t, &v);
            if (s != (says ? KEEL_EUNSUP : KEEL_OK) || (says && !strstr(keel_error(), says)))
                fail_msg("%s: %s", cases[i].what, s < 0 ? keel_error() : "it is split");
            if (s >= 0 && !k) check_parts(t, v);
            keel_dataset_destroy(t);
            keel_dataset_destroy(v);
            keel_dataset_destroy(d);
        }
}

static void any_allocation_of_a_split_may_fail(void **state)
{
    (void)state;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    keel_dataset *d, *t, *v;
    must(keel_dataset_open(&d, files_path("text"), &o));
    const int64_t live = keel_memory_live();
    keel_status s = KEEL_ENOMEM;
    for (int64_t k = 0; s == KEEL_ENOMEM; k++) {
        keel_memory_fail_at(k);
        s = keel_dataset_split(d, 0.5, 1, &t, &v);
        keel_memory_fail_at(-1);
        if (s == KEEL_ENOMEM) assert_int_equal(keel_memory_live(), live);
    }
    must(s);
    keel_dataset_destroy(t);
    keel_dataset_destroy(v);
    assert_int_equal(keel_memory_live(), live);
    keel_dataset_destroy(d);
}

static int begin(void **state)
{
    (void)state;
    files_begin();
    golden = golden_load("split_order.json");
    return golden ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    json_decref(golden);
    files_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_numpy),
        cmocka_unit_test(both_parts_have_the_files_of_keras),
        cmocka_unit_test(a_seed_that_keras_does_not_take_is_refused),
        cmocka_unit_test(rows_for_validation_are_never_trained_with),
        cmocka_unit_test(any_allocation_of_a_split_may_fail),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
