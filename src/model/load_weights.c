/* Loads weights from a file into a model: from .weights.h5 and .keras of Keras 3, whose paths are
 * the model's, and from legacy .h5 (save_weights, or a whole model), by the names of layers, or by
 * their order where the names are others, and by the order of their weights: names differ between
 * versions of Keras, and between programs. */
#include "base/memory.h"
#include "io/file.h"
#include "io/weights_h5.h"
#include "io/zip.h"
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

static keel_status read_image(const char *path, size_t most, void **image, size_t *n_bytes)
{
    keel_zip *zip = NULL;
    char begin[4] = "";
    keel_file f;
    KEEL_TRY(keel_file_open(&f, path));
    keel_status s = f.n_bytes >= 4 ? keel_file_read_at(&f, 0, begin, 4) : KEEL_OK;
    keel_file_close(&f);
    if (s < 0) return s;
    if (memcmp(begin, "PK\3\4", 4)) return keel_file_read(path, most, image, n_bytes);
    KEEL_TRY(keel_zip_open(&zip, path));
    s = keel_zip_find(zip, "model.weights.h5") < 0
            ? keel_fail(KEEL_EFORMAT, "no model.weights.h5 in it")
            : keel_zip_read(zip, "model.weights.h5", most, image, n_bytes);
    keel_zip_close(zip);
    return s;
}

keel_status keel_model_load_weights(keel_model *m, const char *path)
{
    keel_weights *file = NULL, *legacy = NULL;
    void *image = NULL;
    size_t n_bytes = 0, most;
    if (!m->finished) return keel_fail(KEEL_EARG, "the model is not finished: it has no outputs");
    KEEL_TRY(most_bytes(m, &most));
    keel_model_change(m, KEEL_LIVE_WEIGHTS);
    keel_status s = keel_model_fill_weights(m);
    if (s >= 0) s = read_image(path, most, &image, &n_bytes);
    if (s >= 0) s = keel_weights_decode(&file, image, n_bytes);
    if (s >= 0 && !keel_weights_has_group(file, "layers"))
        s = keel_legacy_weights(m, file, &legacy);
    if (s >= 0 && !legacy) s = keel_model_check_counts(m, file);
    if (s >= 0 && !legacy) keel_weights_read_once(file);
    if (s >= 0) s = read_all(m, legacy ? legacy : file, legacy != NULL);
    if (s >= 0)
        m->compiled.state_loaded = m->compiled.given ? KEEL_STATE_ABSENT : KEEL_STATE_UNREAD;
    if (s >= 0 && !legacy) s = keel_compiled_state_replace(m, file);
    keel_weights_destroy(legacy);
    keel_weights_destroy(file);
    keel_free(image);
    if (s >= 0 || s == KEEL_ENOMEM || !strncmp(keel_error(), path, strlen(path))) return s;
    return keel_fail_within(s, "%s", path);
}
