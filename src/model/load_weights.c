/* Loads weights from a file into a model: from .weights.h5 and .keras of Keras 3, whose paths are
 * the model's, and from legacy .h5 (save_weights, or a whole model), by the names of layers, or by
 * their order where the names are others, and by the order of their weights: names differ between
 * versions of Keras, and between programs. */
#include "base/memory.h"
#include "io/weights_file.h"
#include "model/parts.h"
#include "model/state.h"
#include "tensor/dtype.h"
#include <string.h>

/* The largest file that is read. One of another model may have more weights than this one; the
 * largest of keras.applications has 1.4 GB. */
static keel_status most_bytes(const keel_model *m, size_t *out)
{
    int64_t idf;
    KEEL_TRY(keel_model_count_idf(m, &idf));
    const uint64_t own = keel_model_weights_bytes_max(m, idf);
    *out = own > INT32_MAX ? (size_t)own : INT32_MAX;
    return KEEL_OK;
}

/* *out NULL: it begins anew (keel_weight_decl.besides). */
static keel_status find(const keel_model *m, int i, const keel_weights *file,
                        const keel_weight **out)
{
    const keel_model_weight *w = &m->weight[i];
    const char *name = w->info.name;
    char has[96], wants[96];
    KEEL_TRY(keel_model_stored_weight(m, file, i, out));
    if (!*out && w->besides) return KEEL_OK;
    if (!*out) return keel_fail(KEEL_EFORMAT, "there is no weight '%s' in it (%s)", name, w->path);
    if (!keel_dtype_is_real((*out)->dtype))
        return keel_fail(KEEL_EUNSUP, "'%s' is %s in it, the model needs %s", name,
                         keel_dtype_name((*out)->dtype), keel_dtype_name(m->dtype));
    if (keel_shape_equal(&(*out)->shape, &w->info.spec.shape)) return KEEL_OK;
    keel_shape_text(has, &(*out)->shape);
    keel_shape_text(wants, &w->info.spec.shape);
    return keel_fail(KEEL_ESHAPE, "'%s' has the shape %s in it, the model needs %s", name, has,
                     wants);
}

/* Finds all weights before it reads one. The older format has no idf_weights. */
static keel_status read_all(keel_model *m, keel_weights *file, bool legacy)
{
    keel_status s = KEEL_OK;
    const keel_weight **from = keel_calloc((size_t)m->n_weight, sizeof(const keel_weight *));
    if (!from) return KEEL_ENOMEM;
    for (int i = 0; i < m->n_weight && s >= 0; i++) s = find(m, i, file, &from[i]);
    if (s >= 0 && !legacy) s = keel_model_read_idf(m, file);
    for (int i = 0; i < m->n_weight && s >= 0; i++) {
        keel_model_weight *w = &m->weight[i];
        s = from[i] ? keel_weights_read(file, from[i]->path, m->dtype, &w->info.spec.shape, w->data)
                    : keel_model_fill_weight(m, i);
    }
    m->changes++;
    keel_free(from);
    return s;
}

/* A weights file, or the one in a model's file; *zip is for the caller to close, after the file. */
static keel_status open_file(keel_weights_file *out, keel_zip **zip, const char *path, size_t most)
{
    char begin[4] = "";
    keel_file f;
    KEEL_TRY(keel_file_open(&f, path));
    const keel_status s = f.n_bytes >= 4 ? keel_file_read_at(&f, 0, begin, 4) : KEEL_OK;
    keel_file_close(&f);
    if (s < 0) return s;
    if (memcmp(begin, "PK\3\4", 4)) return keel_weights_file_open(out, path, most);
    KEEL_TRY(keel_zip_open(zip, path));
    if (keel_zip_find(*zip, "model.weights.h5") < 0)
        return keel_fail(KEEL_EFORMAT, "no model.weights.h5 in it");
    return keel_weights_file_open_member(out, *zip, "model.weights.h5", most);
}

/* By names, which are in texts: the file is read whole. */
static keel_status read_legacy(keel_model *m, const char *path, size_t most)
{
    keel_weights *file = NULL, *legacy = NULL;
    void *image = NULL;
    size_t n_bytes;
    keel_status s = keel_file_read(path, most, &image, &n_bytes);
    if (s >= 0) s = keel_weights_decode(&file, image, n_bytes);
    if (s >= 0) s = keel_legacy_weights(m, file, &legacy);
    if (s >= 0) s = read_all(m, legacy, true);
    keel_weights_destroy(legacy);
    keel_weights_destroy(file);
    keel_free(image);
    return s;
}

keel_status keel_model_load_weights(keel_model *m, const char *path)
{
    keel_weights_file file = { .file.fd = -1 };
    keel_zip *zip = NULL;
    size_t most;
    if (!m->finished) return keel_fail(KEEL_EARG, "the model is not finished: it has no outputs");
    KEEL_TRY(most_bytes(m, &most));
    keel_model_change(m, KEEL_LIVE_WEIGHTS);
    keel_status s = keel_model_fill_weights(m);
    if (s >= 0) s = open_file(&file, &zip, path, most);
    const bool legacy = s >= 0 && !zip && !keel_weights_has_group(file.list, "layers");
    if (legacy) {
        s = read_legacy(m, path, most);
    } else if (s >= 0) {
        s = keel_model_check_counts(m, file.list);
        if (s >= 0) s = read_all(m, file.list, false);
    }
    if (s >= 0)
        m->compiled.state_loaded = m->compiled.given ? KEEL_STATE_ABSENT : KEEL_STATE_UNREAD;
    if (s >= 0 && !legacy) s = keel_compiled_state_replace(m, file.list);
    keel_weights_file_close(&file);
    keel_zip_close(zip);
    if (s >= 0 || s == KEEL_ENOMEM || !strncmp(keel_error(), path, strlen(path))) return s;
    return keel_fail_within(s, "%s", path);
}
