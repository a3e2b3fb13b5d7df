/* Models with vocabularies and their files: training and predictions as in the real Keras, on any
 * number of devices, and vocabularies that are saved, loaded, damaged or out of memory. */
#include "lookups.h"
#include "io/zip.h"

typedef struct table {
    keel_array_field field[4];
    keel_dataset *d;
} table;

static table open_rows(void)
{
    const json_t *t = json_object_get(golden, "training");
    const int64_t n = (int64_t)golden_number(t, "rows");
    table r = { 0 };
    r.field[0] =
        (keel_array_field){ "city", KEEL_ROLE_INPUT, NULL,
                            texts_of(json_object_get(t, "city"), (keel_shape){ 1, { n } }) };
    r.field[1] =
        (keel_array_field){ "tags", KEEL_ROLE_INPUT, NULL,
                            texts_of(json_object_get(t, "tags"), (keel_shape){ 2, { n, 4 } }) };
    r.field[2] =
        (keel_array_field){ "code", KEEL_ROLE_INPUT, NULL,
                            numbers_of(json_object_get(t, "code"), (keel_shape){ 1, { n } }) };
    r.field[3] = (keel_array_field){
        "y",
        KEEL_ROLE_TARGET,
        NULL,
        { KEEL_FLOAT32, { 1, { n } }, golden_reals(json_object_get(t, "y"), false) }
    };
    must(keel_dataset_from_fields(&r.d, r.field, 4));
    return r;
}

static void close_rows(table *r)
{
    keel_dataset_destroy(r->d);
    for (int i = 0; i < 4; i++) free(r->field[i].array.data);
}

static void predicts(keel_model *m, const table *r, const char *want, double allowed)
{
    const json_t *t = json_object_get(golden, "training");
    keel_tensor y;
    must(keel_predict(m, one, r->d, NULL, &y));
    float *out = golden_reals(json_object_get(t, want), false);
    for (int64_t i = 0; i < y.shape.dim[0]; i++)
        if (!(fabs((double)(((float *)y.data)[i] - out[i])) <= allowed))
            fail_msg("%s: row %d is %g, in Keras %g", want, (int)i, (double)((float *)y.data)[i],
                     (double)out[i]);
    free(out);
    keel_tensor_free(&y);
}

static void training_is_that_of_keras_on_any_devices(void **state)
{
    const json_t *loss = json_object_get(json_object_get(golden, "training"), "loss");
    files_begin();
    table r = open_rows();
    for (int devices = 0; devices < 2; devices++) {
        keel_model *m, *again;
        keel_history h;
        must(keel_model_load(&m, golden_path("lookups.keras")));
        predicts(m, &r, "before", 1e-6);
        must(keel_fit(m, devices ? three : one, r.d,
                      &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 8, .epochs = 2,
                                           .no_shuffle = true },
                      &h));
        for (int e = 0; e < 2; e++)
            assert_true(fabs(h.value[e * h.count] -
                             json_number_value(json_array_get(loss, (size_t)e))) < 1e-5);
        keel_history_free(&h);
        predicts(m, &r, "after", 2e-6);
        must(keel_model_save(m, files_path("t.keras")));
        must(keel_model_load(&again, files_path("t.keras")));
        predicts(again, &r, "after", 2e-6);
        keel_model_destroy(m);
        keel_model_destroy(again);
    }
    close_rows(&r);
    files_end();
}

/* The members of an archive, one of them changed or (text NULL) left out. */
static void rewrite(const char *to, const char *from, const char *name, const char *text, size_t n)
{
    enum { MOST = 16 };
    keel_zip *z;
    keel_zip_member members[MOST];
    int count = 0;
    must(keel_zip_open(&z, from));
    for (int64_t i = 0; i < keel_zip_count(z); i++) {
        const char *this = keel_zip_name(z, i);
        const bool hit = strstr(this, name) != NULL;
        void *data = NULL;
        assert_true(count < MOST);
        if (hit && !text) continue;
        members[count] = (keel_zip_member){ this, text, n };
        if (!hit) {
            must(keel_zip_read(z, this, 1 << 24, &data, &members[count].n_bytes));
            members[count].data = data;
        }
        count++;
    }
    must(keel_zip_write(to, members, count));
    for (int i = 0; i < count; i++)
        if (members[i].data != text) keel_free((void *)members[i].data);
    keel_zip_close(z);
}

static void vocabularies_come_back_from_a_file_byte_by_byte(void **state)
{
    files_begin();
    keel_model *m;
    must(keel_model_load(&m, golden_path("lookups.keras")));
    must(keel_model_save(m, files_path("s.keras")));
    keel_model_destroy(m);
    keel_zip *a, *b;
    must(keel_zip_open(&a, golden_path("lookups.keras")));
    must(keel_zip_open(&b, files_path("s.keras")));
    int assets = 0;
    for (int64_t i = 0; i < keel_zip_count(a); i++) {
        const char *name = keel_zip_name(a, i);
        void *u, *v;
        size_t n, k;
        if (strncmp(name, "assets/", 7)) continue;
        must(keel_zip_read(a, name, 1 << 20, &u, &n));
        must(keel_zip_read(b, name, 1 << 20, &v, &k));
        assert_int_equal(n, k);
        assert_memory_equal(u, v, n);
        keel_free(u);
        keel_free(v);
        assets++;
    }
    assert_int_equal(assets, 2);
    keel_zip_close(a);
    keel_zip_close(b);
    files_end();
}

static void a_damaged_vocabulary_is_refused_by_its_name(void **state)
{
#define TEXT(s) s, sizeof s - 1
    static const struct {
        const char *what, *member, *text;
        size_t n;
        const char *says;
    } bad[] = {
        { "missing", "string_lookup_1/v", NULL, 0, "string_lookup_1/vocabulary.txt is missing" },
        { "empty", "string_lookup_1/v", TEXT(""), "vocabulary: it is empty" },
        { "only lines", "string_lookup_1/v", TEXT("\n\n\r\n"), "vocabulary: it is empty" },
        { "twice", "string_lookup_1/v", TEXT("[UNK]\na\nb\na\nc"), "'a' is in it twice" },
        { "fewer", "string_lookup_1/v", TEXT("[UNK]\na\nb"), "it has 3, not the 5" },
        { "more", "string_lookup_1/v", TEXT("[UNK]\na\nb\nc\nd\ne"), "it has 6, not the 5" },
        { "not UTF-8", "string_lookup_1/v", TEXT("[UNK]\na\nb\nc\n\xff"), "UTF-8" },
        { "no numbers", "integer_lookup/v", TEXT("-1\n-1\n5\n9\n8\n7x\n1"), "line 6 is no whole" },
        { "too large", "integer_lookup/v", TEXT("-1\n-1\n5\n9\n8\n7\n9223372036854775808"),
          "line 7 is no whole" },
    };
    files_begin();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int64_t live = keel_memory_live();
        keel_model *m = NULL;
        rewrite(files_path("b.keras"), golden_path("lookups.keras"), bad[i].member, bad[i].text,
                bad[i].n);
        assert_int_equal(keel_model_load(&m, files_path("b.keras")), KEEL_EFORMAT);
        if (!strstr(keel_error(), bad[i].says) || !strstr(keel_error(), "b.keras"))
            fail_msg("%s: %s", bad[i].what, keel_error());
        assert_null(m);
        assert_int_equal(keel_memory_live(), live);
    }
    /* what Python calls a line end is one */
    keel_model *m;
    rewrite(files_path("g.keras"), golden_path("lookups.keras"), "string_lookup_1/v",
            TEXT("[UNK]\r\na\r\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe2\x80\xa8zz\xc2\x85x\n\n"));
    must(keel_model_load(&m, files_path("g.keras")));
    table r = open_rows();
    predicts(m, &r, "before", 10); /* it runs */
    close_rows(&r);
    keel_model_destroy(m);
    files_end();
}

static void loading_survives_memory_that_runs_out(void **state)
{
    files_begin();
    table r = open_rows();
    const int64_t live = keel_memory_live();
    int64_t n = 0;
    for (keel_status s = KEEL_ENOMEM; s < 0; n++) {
        keel_model *m = NULL;
        keel_tensor y = { 0 };
        keel_memory_fail_at(n);
        s = keel_model_load(&m, golden_path("lookups.keras"));
        if (s >= 0) s = keel_model_save(m, files_path("m.keras"));
        if (s >= 0) s = keel_predict(m, one, r.d, NULL, &y);
        keel_memory_fail_at(-1);
        if (s < 0 && s != KEEL_ENOMEM) fail_msg("allocation %d: %s", (int)n, keel_error());
        keel_tensor_free(&y);
        keel_model_destroy(m);
        if (keel_memory_live() != live) fail_msg("allocation %d leaks", (int)n);
    }
    assert_true(n > 100);
    close_rows(&r);
    files_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_is_that_of_keras_on_any_devices),
        cmocka_unit_test(vocabularies_come_back_from_a_file_byte_by_byte),
        cmocka_unit_test(a_damaged_vocabulary_is_refused_by_its_name),
        cmocka_unit_test(loading_survives_memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
