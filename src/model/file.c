/* .keras files: metadata.json, config.json and model.weights.h5 in a zip archive, the assets of
 * layers, and keel.json for what Keras has no place for. */
#include "base/memory.h"
#include "base/python_json.h"
#include "io/kind.h"
#include "io/weights_file.h"
#include "model/parts.h"
#include "model/snapshot.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CONFIG_BYTES_MAX = 64 << 20, MEMBERS_MAX = 4096 };
#define KERAS_VERSION "3.15.1" /* whose format this is */

/* ---- reading --------------------------------------------------------------------------------- */

#define A_MODEL_IS "a model is a .keras file as Keras 3 saves it, or a whole model in an .h5 file"

/* 8 bytes for each number, 8 slots of an optimizer, which may be one that Keel does not have, and
 * what HDF5 writes around them. */
uint64_t keel_model_weights_bytes_max(const keel_model *m, int64_t idf)
{
    enum { SLOTS = 8, AROUND = 16 << 10 };
    uint64_t numbers =
        (uint64_t)idf; /* each weight fits in memory, so 2^14 layers of weights do not overflow */
    for (int i = 0; i < m->n_weight; i++)
        numbers += (uint64_t)keel_shape_count(&m->weight[i].info.spec.shape);
    const uint64_t arrays = (uint64_t)m->n_layer + (uint64_t)m->n_weight * (1 + SLOTS);
    const uint64_t around = (64 + arrays) * AROUND;
    return numbers > (SIZE_MAX / 4 - around) / (8 * (1 + SLOTS))
               ? SIZE_MAX / 4
               : numbers * 8 * (1 + SLOTS) + around;
}

/* Opens the list after checking its size: deflate makes gigabytes of zeros from a few megabytes. */
static keel_status open_weights(const keel_model *m, keel_zip *zip, keel_weights_file *out)
{
    enum { SLACK = 1 << 16 };
    unsigned char begin[KEEL_H5_BEGIN_BYTES];
    const int64_t index = keel_zip_find(zip, "model.weights.h5");
    const uint64_t size = keel_zip_size(zip, index);
    uint64_t announced = 0;
    int64_t idf;
    keel_zip_stream *stream = NULL;
    KEEL_TRY(keel_model_count_idf(m, &idf));
    const uint64_t most = keel_model_weights_bytes_max(m, idf);
    if (size > most)
        return keel_fail(
            KEEL_EFORMAT,
            "model.weights.h5: %llu bytes, where the model's weights and an optimizer's "
            "state take at most %llu",
            (unsigned long long)size, (unsigned long long)most);
    if (size >= sizeof begin) {
        KEEL_TRY(keel_zip_stream_open(&stream, zip, index));
        const keel_status s = keel_zip_stream_read(stream, begin, sizeof begin);
        keel_zip_stream_close(stream);
        KEEL_TRY(s);
        KEEL_TRY(keel_h5_announced(&announced, begin));
        if (announced < size && size - announced > SLACK)
            return keel_fail(KEEL_EFORMAT,
                             "model.weights.h5: %llu bytes, where its HDF5 file has %llu",
                             (unsigned long long)size, (unsigned long long)announced);
    }
    return keel_weights_file_open_member(out, zip, "model.weights.h5", (size_t)most);
}

static keel_status read_weights(keel_model *m, keel_zip *zip)
{
    keel_weights_file file = { .file.fd = -1 };
    if (keel_zip_find(zip, "model.weights.h5") < 0 && keel_zip_find(zip, "model.weights.json") >= 0)
        return keel_fail(KEEL_EUNSUP, "model.weights.json: weights in several files");
    if (keel_zip_find(zip, "model.weights.h5") < 0)
        return keel_fail(KEEL_EFORMAT, "no model.weights.h5 in it; " A_MODEL_IS);
    keel_status s = open_weights(m, zip, &file);
    if (s >= 0) s = keel_model_take_weights(m, file.list);
    keel_weights_file_close(&file);
    return s;
}

/* A few bytes of text can need hundreds of bytes in memory, and 64 MiB of {} need 5 GB. So the
 * memory that the values of a text need is estimated before it is parsed. */
static keel_status check_cost(const char *text, size_t n_bytes, const char *what)
{
    const size_t object = 256, array = 128, entry = 64, most = (size_t)512 << 20;
    size_t cost = 0;
    bool quoted = false;
    for (size_t i = 0; i < n_bytes && cost <= most; i++) {
        const char c = text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
            continue;
        }
        quoted = c == '"';
        cost += c == '{' ? object : c == '[' ? array : c == ',' || c == ':' ? entry : 0;
    }
    if (cost <= most) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP, "%s: its values would take more than %zu MiB", what, most >> 20);
}

keel_status keel_model_parse(const char *text, size_t n_bytes, const char *what, json_t **out)
{
    json_error_t error;
    KEEL_TRY(check_cost(text, n_bytes, what));
    char *plain = keel_python_json_read(text, n_bytes, &n_bytes);
    if (!plain) return KEEL_ENOMEM;
    *out = json_loadb(plain, n_bytes, JSON_REJECT_DUPLICATES, &error);
    keel_free(plain);
    if (!*out && json_error_code(&error) == json_error_out_of_memory)
        return keel_fail(KEEL_ENOMEM, "out of memory reading %s", what);
    if (!*out) return keel_fail(KEEL_EFORMAT, "%s: line %d: %s", what, error.line, error.text);
    return KEEL_OK;
}

static keel_status read_config(keel_model *m, keel_zip *zip)
{
    void *text = NULL;
    size_t n_bytes;
    KEEL_TRY(keel_zip_read(zip, "config.json", CONFIG_BYTES_MAX, &text, &n_bytes));
    keel_status s = keel_model_parse(text, n_bytes, "config.json", &m->file_config);
    keel_free(text);
    if (s < 0) return s;
    return (s = keel_model_read_root(m)) < 0 ? keel_fail_within(s, "config.json") : KEEL_OK;
}

/* Keras 2.12 to 2.15 wrote archives with a config.json of their own, of which Keras 3 reads few. */
static keel_status fail_of_keras_2(keel_status s, keel_zip *zip)
{
    void *text = NULL;
    size_t n_bytes;
    json_t *metadata = NULL;
    const char *version = NULL;
    char *why = s == KEEL_ENOMEM ? NULL : keel_strdup(keel_error());
    if (!why) return KEEL_ENOMEM;
    if (keel_zip_find(zip, "metadata.json") >= 0 &&
        keel_zip_read(zip, "metadata.json", KEEL_EXTRA_BYTES_MAX, &text, &n_bytes) >= 0 &&
        keel_model_parse(text, n_bytes, "metadata.json", &metadata) >= 0)
        version = json_string_value(json_object_get(metadata, "keras_version"));
    if (version && !strncmp(version, "2.", 2))
        keel_fail(s,
                  "%s; Keras %.16s saved it, and Keras 3 reads few of its .keras files: there, "
                  "save the model as .h5",
                  why, version);
    else
        keel_fail(s, "%s", why);
    json_decref(metadata);
    keel_free(text);
    keel_free(why);
    return s;
}

static keel_status read_extra(keel_model *m, keel_zip *zip)
{
    void *text = NULL;
    size_t n_bytes;
    if (keel_zip_find(zip, "keel.json") < 0) return KEEL_OK;
    KEEL_TRY(keel_zip_read(zip, "keel.json", KEEL_EXTRA_BYTES_MAX, &text, &n_bytes));
    const keel_status s = keel_model_read_extra(m, text, n_bytes);
    keel_free(text);
    return s;
}

static bool any_in_float16(const keel_model *m)
{
    bool any = false;
    for (int i = 0; i < m->n_layer && !any; i++)
        any = m->layer[i].inner ? any_in_float16(m->layer[i].inner)
                                : m->layer[i].compute == KEEL_FLOAT16;
    return any;
}

/* The model's own policy: its layers have theirs, so one that Keel does not have does not matter.
 * Keras leaves out that of a Functional model, which then has the policy of the program. The
 * program that made layers in mixed_float16 had that one, and scaled the loss. */
static void read_policy(keel_model *m)
{
    const json_t *dtype = json_object_get(json_object_get(m->file_config, "config"), "dtype");
    const char *name = json_string_value(dtype);
    if (!name) name = json_string_value(json_object_get(json_object_get(dtype, "config"), "name"));
    if (!dtype && any_in_float16(m)) name = "mixed_float16";
    if (!name || keel_policy_find(name, &m->compute) < 0) m->compute = KEEL_FLOAT32;
}

keel_status keel_model_read_root(keel_model *m)
{
    keel_status s = keel_model_from_config(m, m->file_config);
    if (s == KEEL_EUNSUP) s = keel_model_list_missing(m->file_config);
    if (s >= 0) read_policy(m);
    const json_t *compile = json_object_get(m->file_config, "compile_config");
    if (s >= 0 && compile && !json_is_null(compile)) {
        s = keel_compiled_from_config(m, compile, true, &m->compiled);
        m->compiled.unread = m->without_state;
        if (s < 0) s = keel_fail_within(s, "compile_config");
        /* An optimizer that Keel does not have must not prevent predictions, or another choice. */
        if (s == KEEL_EUNSUP) s = (m->refused = keel_strdup(keel_error())) ? KEEL_OK : KEEL_ENOMEM;
    }
    return s;
}

static keel_status read_archive(keel_model *m, const char *path)
{
    keel_zip *zip = NULL;
    keel_status s = keel_zip_open(&zip, path);
    if (s < 0) { /* the error already names the path */
        const char *kind = s == KEEL_ENOMEM ? NULL : keel_kind_of_file(path);
        if (kind)
            s = keel_fail(KEEL_EFORMAT, "%s: %s", path, kind);
        else if (s == KEEL_EFORMAT)
            s = keel_fail(s, "%s; " A_MODEL_IS, keel_error());
        return s;
    }
    if (keel_zip_count(zip) > MEMBERS_MAX) {
        s = keel_fail(KEEL_EFORMAT, "%s: %lld members, more than the %d that a model may have",
                      path, (long long)keel_zip_count(zip), MEMBERS_MAX);
        goto out;
    }
    if (keel_zip_find(zip, "config.json") < 0) {
        const char *kind = keel_kind_of_file(path);
        s = keel_fail(KEEL_EFORMAT, "%s: %s", path,
                      kind ? kind : "no config.json in it; " A_MODEL_IS);
        goto out;
    }
    s = read_config(m, zip);
    if (s < 0) s = fail_of_keras_2(s, zip);
    if (s >= 0) s = read_extra(m, zip);
    if (s >= 0) s = keel_model_read_assets(m, zip);
    if (s >= 0) s = read_weights(m, zip);
    /* A wrong argument in a call is damage in a file. */
    if (s == KEEL_EARG || s == KEEL_ESHAPE) s = KEEL_EFORMAT;
out:
    keel_zip_close(zip);
    return s;
}

static keel_status load(keel_model **out, const char *path, bool without_state)
{
    keel_model *m = NULL;
    KEEL_TRY(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    m->without_state = without_state;
    keel_status s =
        keel_is_legacy_file(path) ? keel_model_load_legacy(m, path) : read_archive(m, path);
    if (s < 0) {
        keel_model_destroy(m);
        const bool named = !strncmp(keel_error(), path, strlen(path)); /* by the archive */
        return s != KEEL_ENOMEM && !named ? keel_fail_within(s, "%s", path) : s;
    }
    *out = m;
    return KEEL_OK;
}

keel_status keel_model_load(keel_model **out, const char *path)
{
    return load(out, path, false);
}

keel_status keel_model_load_without_state(keel_model **out, const char *path)
{
    return load(out, path, true);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void metadata_text(char *out, size_t size)
{
    char date[64] = "";
    struct tm local;
    const time_t now = time(NULL);
    if (localtime_r(&now, &local)) strftime(date, sizeof date, "%Y-%m-%d@%H:%M:%S", &local);
    snprintf(out, size, "{\"keras_version\": \"%s\", \"date_saved\": \"%s\"}", KERAS_VERSION, date);
}

void keel_model_texts_free(keel_model_texts *t)
{
    keel_model_free_assets(t->assets, t->n_asset);
    free(t->config); /* allocated by jansson, like the next */
    free(t->extra);
    *t = (keel_model_texts){ 0 };
}

keel_status keel_model_texts_make(keel_model_texts *out, const keel_model *m)
{
    keel_model_texts t = { 0 };
    json_t *config = NULL;
    keel_status s = keel_model_to_config(m, &config);
    if (s >= 0 && !(t.config = json_dumps(config, JSON_COMPACT)))
        s = keel_fail(KEEL_ENOMEM, "out of memory writing config.json");
    if (t.config) keel_python_json_write(t.config);
    json_decref(config);
    if (s >= 0 && m->n_class) s = keel_model_extra_text(m, &t.extra);
    if (s >= 0) s = keel_model_list_assets(m, &t.assets, &t.n_asset);
    if (s < 0) {
        keel_model_texts_free(&t);
        return s;
    }
    *out = t;
    return KEEL_OK;
}

static keel_status write_weights(const void *model, keel_new_file *f, int64_t at, uint64_t *n_bytes)
{
    return keel_model_write_weights(model, f, at, n_bytes);
}

keel_status keel_model_write(const keel_model *m, const keel_model_texts *t,
                             const keel_zip_member *more, const char *path)
{
    char metadata[128];
    int64_t n = 0;
    keel_zip_member *members = keel_calloc((size_t)t->n_asset + 5, sizeof *members);
    if (!members) return KEEL_ENOMEM;
    metadata_text(metadata, sizeof metadata);
    members[n++] = (keel_zip_member){ "metadata.json", metadata, strlen(metadata) };
    members[n++] = (keel_zip_member){ "config.json", t->config, strlen(t->config) };
    members[n++] =
        (keel_zip_member){ .name = "model.weights.h5", .write = write_weights, .context = m };
    for (int64_t i = 0; i < t->n_asset; i++) members[n++] = t->assets[i];
    if (t->extra) members[n++] = (keel_zip_member){ "keel.json", t->extra, strlen(t->extra) };
    if (more) members[n++] = *more;
    const keel_status s = keel_zip_write(path, members, n);
    keel_free(members);
    return s;
}

keel_status keel_model_save(const keel_model *m, const char *path)
{
    keel_model_texts texts = { 0 };
    if (!m->finished)
        return keel_fail(KEEL_EARG, "%s: the model is not finished, so it cannot be saved", path);
    keel_model_pull(m, KEEL_LIVE_ALL);
    keel_status s = keel_model_texts_make(&texts, m);
    if (s >= 0) s = keel_model_write(m, &texts, NULL, path);
    keel_model_texts_free(&texts);
    return s;
}
