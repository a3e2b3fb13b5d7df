/* What was given for a model is named, with what to do. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "data_files.h"
#include "io/zip.h"
#include "keel/model.h"
#include <string.h>

static int begin(void **state)
{
    (void)state;
    files_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    files_end();
    return 0;
}

static void refused(const char *path, const char *says)
{
    keel_model *m = NULL;
    const keel_status s = keel_model_load(&m, path);
    if (s != KEEL_EFORMAT || !strstr(keel_error(), says) || !strstr(keel_error(), path))
        fail_msg("%s: status %d: %s", path, s, keel_error());
    assert_null(m);
    assert_int_equal(keel_memory_live(), 0);
}

static void a_wrong_file_is_told_by_its_first_bytes(void **state)
{
    (void)state;
#define CASE(bytes, says)                                                                          \
    {                                                                                              \
        bytes, sizeof bytes - 1, says                                                              \
    }
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } cases[] = {
        CASE("", "the file is empty"),
        CASE("\x89HDF\r\n\x1a\n\0\0\0\0keras_version\0model_config\0", "cut short"),
        CASE("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", "git lfs pull"),
        CASE("\x40\0\0\0\0\0\0\0{\"__metadata__\":{}}", "safetensors"),
        CASE("\x80\x04\x95\x0b\0\0\0", "Python pickle"),
        CASE("\x1c\0\0\0TFL3\0\0\0\0", "TensorFlow Lite"),
        CASE("\x08\x0a\x12\x07pytorch", "ONNX"),
        CASE("\x08\x08:\x02\x0a\0\0", "ONNX"),
        CASE("\x08\x01\x12\x80\x02\x0a\x10", "SavedModel"),
        CASE("\x1f\x8b\x08\0\0\0", "gzip"),
        CASE("\n<!DOCTYPE html><html>", "web page"),
        CASE("{\"class_name\": \"Sequential\"}", "configuration without its weights"),
        CASE("PK\3\4 and no end", "not a zip archive, or cut short"),
        CASE("some other bytes that nobody knows", "not a zip archive"),
    };
#undef CASE
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t n = cases[i].n;; n /= 2) { /* cut short it is refused too, whatever it says */
            refused(files_write("m.keras", cases[i].bytes, n),
                    n == cases[i].n ? cases[i].says : "");
            if (n == 0) break;
        }
    const keel_zip_member torch[] = { { "model/data.pkl", "x", 1 } },
                          npz[] = { { "x.npy", "x", 1 } }, none[] = { { "readme", "x", 1 } };
    assert_int_equal(keel_zip_write(files_path("m.pt"), torch, 1), KEEL_OK);
    refused(files_path("m.pt"), "PyTorch");
    assert_int_equal(keel_zip_write(files_path("m.npz"), npz, 1), KEEL_OK);
    refused(files_path("m.npz"), "NumPy arrays");
    assert_int_equal(keel_zip_write(files_path("m.zip"), none, 1), KEEL_OK);
    refused(files_path("m.zip"), "no config.json in it; a model is a .keras file");
}

/* Keras 3 reads few archives of Keras 2, so who saved one must hear what to do. */
static void an_archive_of_keras_2_that_is_not_read_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *metadata;
        bool told;
    } cases[] = {
        { "{\"keras_version\": \"2.15.0\"}", true },
        { "{\"keras_version\": \"3.0.5\"}", false },
        { "{\"keras_version\": 2}", false },
        { "{\"keras_version\"", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_zip_member all[] = {
            { "config.json", "{}", 2 },
            { "metadata.json", cases[i].metadata, strlen(cases[i].metadata) },
        };
        const char *path = files_path("m.keras");
        assert_int_equal(keel_zip_write(path, all, 2), KEEL_OK);
        refused(path, "config.json: ");
        if (!strstr(keel_error(), "; Keras 2.15.0 saved it") == cases[i].told)
            fail_msg("%s: %s", cases[i].metadata, keel_error());
    }
}

static void a_saved_model_folder_is_told_from_others(void **state)
{
    (void)state;
    keel_model *m = NULL;
    const char *folder = files_folder("saved");
    files_write("saved/saved_model.pb", "x", 1);
    refused(folder, "SavedModel folder");
    assert_int_equal(keel_model_load(&m, files_folder("other")), KEEL_EIO);
    assert_non_null(strstr(keel_error(), "is a folder, not a plain file"));
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_file_is_told_by_its_first_bytes),
        cmocka_unit_test(an_archive_of_keras_2_that_is_not_read_is_told),
        cmocka_unit_test(a_saved_model_folder_is_told_from_others),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
