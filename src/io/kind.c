/* Recognise a file that is not a model; see kind.h. */
#include "io/kind.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/zip.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define A_SAVED_MODEL                                                                              \
    "a SavedModel, a TensorFlow graph; load it in the Keras that wrote it and save it as .keras"

static bool begins(const char *b, size_t n, const char *with, size_t length)
{
    return n >= length && !memcmp(b, with, length);
}

/* safetensors: 8 bytes with the length of the JSON that follows. */
static bool is_safetensors(const char *b, size_t n)
{
    return n > 10 && b[4] == 0 && b[5] == 0 && b[6] == 0 && b[7] == 0 && b[8] == '{' && b[9] == '"';
}

/* Both are protocol buffers that begin with a version, field 1, and go on with a field of bytes:
 * ONNX since version 3, a SavedModel with version 1. */
static bool is_onnx(const char *b, size_t n)
{
    return n > 4 && b[0] == 8 && b[1] >= 3 && b[1] < 64 && (b[2] & 7) == 2 && b[2] >> 3 >= 2 &&
           b[2] >> 3 <= 7;
}

static bool is_saved_model(const char *b, size_t n)
{
    return n > 4 && b[0] == 8 && b[1] == 1 && b[2] == 0x12;
}

static bool is_text_of(const char *b, size_t n, const char *first)
{
    size_t i = 0;
    while (i < n && strchr(" \t\r\n", b[i]) && b[i]) i++;
    return begins(b + i, n - i, first, strlen(first));
}

const char *keel_kind_of_bytes(const void *begin, size_t n)
{
    const char *b = begin;
    if (n == 0) return "the file is empty";
    if (begins(b, n, "version https://git-lfs", 23))
        return "a pointer of Git LFS, not the file itself; run: git lfs pull";
    if (begins(b, n, "\x89HDF\r\n\x1a\n", 8))
        return "an HDF5 file of weights without the model; give the model, and this file by "
               "--weights";
    if (is_safetensors(b, n))
        return "a safetensors file, weights without the model; load them in Keras and save the "
               "model "
               "as .keras";
    if (n > 2 && b[0] == '\x80' && b[1] >= 2 && b[1] <= 5)
        return "a Python pickle, which is code and is not run; save the model as .keras";
    if (n > 8 && !memcmp(b + 4, "TFL3", 4))
        return "a TensorFlow Lite model, which cannot be trained; save the Keras model as .keras";
    if (is_onnx(b, n))
        return "an ONNX model, whose layers are gone; save the Keras model that it was made from "
               "as "
               ".keras";
    if (is_saved_model(b, n)) return A_SAVED_MODEL;
    if (begins(b, n, "\x1f\x8b", 2)) return "a gzip file; unpack it first";
    if (is_text_of(b, n, "<!DOCTYPE") || is_text_of(b, n, "<!doctype") || is_text_of(b, n, "<html"))
        return "a web page; the download went wrong";
    if (is_text_of(b, n, "{\""))
        return "JSON text: a model's configuration without its weights; save the model as .keras";
    return NULL;
}

/* A valid zip archive that is not a model. */
static const char *kind_of_zip(const char *path)
{
    keel_zip *z = NULL;
    const char *kind = NULL;
    if (keel_zip_open(&z, path) < 0) return NULL;
    for (int64_t i = 0; i < keel_zip_count(z) && !kind; i++) {
        const char *name = keel_zip_name(z, i);
        const size_t n = strlen(name);
        if (n >= 8 && !strcmp(name + n - 8, "data.pkl"))
            kind = "a PyTorch file; save a Keras model as .keras";
        else if (n > 4 && !strcmp(name + n - 4, ".npy"))
            kind = "an archive of NumPy arrays (.npz), data rather than a model";
    }
    keel_zip_close(z);
    return kind;
}

static const char *kind_of_folder(const char *path)
{
    char inside[4096];
    struct stat st;
    const int n = snprintf(inside, sizeof inside, "%s/saved_model.pb", path);
    return n > 0 && (size_t)n < sizeof inside && !stat(inside, &st)
               ? "a SavedModel folder; load it in the Keras that wrote it and save it as .keras"
               : NULL;
}

const char *keel_kind_of_file(const char *path)
{
    struct stat st;
    keel_file f;
    const char *kind = NULL;
    if (!stat(path, &st) && S_ISDIR(st.st_mode)) return kind_of_folder(path);
    if (keel_file_open(&f, path) < 0) return NULL;
    const size_t n = f.n_bytes < KEEL_KIND_BYTES ? f.n_bytes : KEEL_KIND_BYTES;
    char *b = keel_calloc(n, 1);
    if (b && keel_file_read_at(&f, 0, b, n) >= 0) {
        kind = keel_kind_of_bytes(b, n);
        if (!kind && begins(b, n, "PK\3\4", 4)) kind = kind_of_zip(path);
    }
    keel_free(b);
    keel_file_close(&f);
    return kind;
}
