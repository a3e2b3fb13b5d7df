/* Training from image files that go wrong: one clear error, nothing leaked, and the weights are
 * those before the failed step. */
#include "data_files.h"
#include "base/memory.h"
#include "golden.h"
#include "keel/keel.h"
#include "must.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { CLASSES = 3, PER_CLASS = 5, BATCH = 4, SIDE = 8 };
static json_t *golden;

static void put_image(const char *path, const char *name, size_t cut)
{
    size_t n;
    unsigned char *data = files_base64(golden_text(json_object_get(golden, "files"), name), &n);
    files_write(path, data, cut ? cut : n);
    free(data);
}

static void put_all(void)
{
    static const char *const name[] = { "photo.jpg", "gray.jpg", "progressive.jpg" };
    char path[64];
    files_folder("set");
    for (int c = 0; c < CLASSES; c++) {
        snprintf(path, sizeof path, "set/%c", 'a' + c);
        files_folder(path);
        for (int i = 0; i < PER_CLASS; i++) {
            snprintf(path, sizeof path, "set/%c/%d.jpg", 'a' + c, i);
            put_image(path, name[(i + c) % 3], 0);
        }
    }
}

static keel_model *network(void)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 11));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", SIDE, SIDE, 3))));
    must(keel_model_add(m, "Rescaling", KEEL_ARGS(KEEL_ARG_FLOAT("scale", 1.0 / 255))));
    must(keel_model_add(m, "Conv2D",
                        KEEL_ARGS(KEEL_ARG_INT("filters", 2), KEEL_ARG_INT("kernel_size", 3),
                                  KEEL_ARG_BOOL("use_bias", false))));
    must(keel_model_add(m, "BatchNormalization", NULL));
    must(keel_model_add(m, "ReLU", NULL));
    must(keel_model_add(m, "Flatten", NULL));
    must(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax"))));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" },
                                                .loss = { { "sparse_categorical_crossentropy" } },
                                                .metrics = { { "accuracy" } } }));
    return m;
}

static void same_weights(const keel_model *a, const keel_model *b, const char *what)
{
    for (int i = 0; i < keel_model_weight_count(a); i++) {
        keel_tensor u, v;
        size_t n = sizeof(float);
        must(keel_model_get_weight(a, keel_model_weight_name(a, i), &u));
        must(keel_model_get_weight(b, keel_model_weight_name(b, i), &v));
        for (int k = 0; k < u.shape.rank; k++) n *= (size_t)u.shape.dim[k];
        if (memcmp(u.data, v.data, n))
            fail_msg("%s: %s differs", what, keel_model_weight_name(a, i));
        keel_tensor_free(&u);
        keel_tensor_free(&v);
    }
}

static keel_status stop_after(void *context, const keel_moment *p)
{
    return p->step >= *(const int64_t *)context ? KEEL_END : KEEL_OK;
}

static keel_status open_set(keel_dataset **d)
{
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.height = o.width = SIDE;
    return keel_dataset_from_image_directory(d, files_path("set"), &o);
}

static keel_status fit_on(const keel_dataset *d, keel_model *m, keel_strategy *s, int threads,
                          int64_t steps, keel_history *h)
{
    return keel_fit(m, s, d,
                    &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH, .no_shuffle = true,
                                         .threads = threads,
                                         .callbacks = KEEL_CALLBACKS(&(keel_callback){
                                             KEEL_CALLBACK, .context = &steps,
                                             .on_train_batch_end = steps ? stop_after : NULL }) },
                    h);
}

static keel_status fit(keel_model *m, keel_strategy *s, int threads, int64_t steps, keel_history *h)
{
    keel_dataset *d;
    keel_status status = open_set(&d);
    if (status < 0) return status;
    status = fit_on(d, m, s, threads, steps, h);
    keel_dataset_destroy(d);
    return status;
}

static void a_bad_file_ends_the_fit_with_the_weights_before_its_step(void **unused)
{
    (void)unused;
    static const struct {
        const char *what, *path; /* row of b/3: 8, of c/4: 14 */
        int64_t steps;           /* done before the file's */
        size_t cut;              /* of photo.jpg; 0: the text */
        const char *text, *says;
    } bad[] = {
        { "a cut JPEG", "set/b/3.jpg", 2, 900, NULL, "remature end" },
        { "an empty file", "set/b/3.jpg", 2, 0, "", "empty" },
        { "a text", "set/c/4.jpg", 3, 0, "hello, I am a text", "but text" },
        { "a cut JPEG in the first step", "set/a/0.jpg", 0, 400, NULL, "JPEG" },
    };
    const char *const devices[] = { "cpu:0", "cpu:0-3", "cpu:0+1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int k = 0; k < 3; k++)
            for (int threads = 1; threads <= 3; threads += 2) {
                files_begin();
                put_all();
                const int64_t live = keel_memory_live();
                keel_strategy *s;
                keel_model *m = network(), *good = network();
                must(keel_strategy_create(&s, devices[k]));
                keel_dataset *d; /* files go bad after they were looked at */
                must(open_set(&d));
                if (bad[i].steps) must(fit(good, s, threads, bad[i].steps, NULL));
                if (bad[i].text)
                    files_text(bad[i].path, bad[i].text);
                else
                    put_image(bad[i].path, "photo.jpg", bad[i].cut);
                assert_true(fit_on(d, m, s, threads, 0, NULL) < 0);
                if (!strstr(keel_error(), bad[i].says) || !strstr(keel_error(), bad[i].path) ||
                    strchr(keel_error(), '\n'))
                    fail_msg("%s: the error is '%s'", bad[i].what, keel_error());
                same_weights(m, good, bad[i].what);
                keel_dataset_destroy(d);
                keel_strategy_destroy(s);
                keel_model_destroy(m);
                keel_model_destroy(good);
                assert_int_equal(keel_memory_live(), live);
                files_end();
            }
}

static void each_failing_allocation_is_one_error_and_no_leak(void **unused)
{
    (void)unused;
    keel_strategy *s;
    int before_step_1 = 0;
    files_begin();
    put_all();
    must(keel_strategy_create(&s, "cpu:0-2"));
    keel_model *fresh = network(), *once = network();
    must(fit(once, s, 2, 0, NULL)); /* whatever is made once is made */
    keel_model_destroy(once);
    for (int64_t at = 0;; at++) {
        keel_history h = { 0 };
        const int64_t live = keel_memory_live();
        keel_model *m = network();
        keel_memory_fail_at(at);
        const keel_status status = fit(m, s, 2, 0, &h);
        keel_memory_fail_at(-1);
        if (status < 0) {
            assert_int_equal(status, KEEL_ENOMEM);
            assert_non_null(strstr(keel_error(), "memory"));
            if (h.steps == 0) same_weights(m, fresh, "after a failed allocation");
            before_step_1 += h.steps == 0;
        }
        keel_history_free(&h);
        keel_model_destroy(m);
        if (keel_memory_live() != live) fail_msg("allocation %d leaks", (int)at);
        if (status >= 0) break;
        assert_true(at < 5000);
    }
    assert_true(before_step_1 > 50);
    keel_model_destroy(fresh);
    keel_strategy_destroy(s);
    files_end();
}

static int begin(void **unused)
{
    (void)unused;
    golden = golden_load("images.json");
    return golden ? 0 : -1;
}

static int end(void **unused)
{
    (void)unused;
    json_decref(golden);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_file_ends_the_fit_with_the_weights_before_its_step),
        cmocka_unit_test(each_failing_allocation_is_one_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
