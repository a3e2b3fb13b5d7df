/* What layers keep in a .keras file besides their arguments and weights: vocabularies, as text
 * files of the archive, and numbers that Keras stores among the weights under a name. */
#include "base/memory.h"
#include "base/text.h"
#include "model/parts.h"
#include <string.h>

enum { ASSET_BYTES_MAX = 256 << 20 };

/* "assets/layers/string_lookup/vocabulary.txt"; of a layer inside it (NULL: of itself). NULL: no
 * memory. The caller frees it. */
static char *asset_path(const keel_model_layer *l, const char *inside)
{
    keel_text t = { 0 };
    keel_text_add(&t, "assets/%s/%s%s%s", l->path, inside ? inside : "", inside ? "/" : "",
                  l->kind->asset_name);
    if (t.failed) keel_text_free(&t);
    return t.data;
}

static keel_status read_asset(const keel_model_layer *l, keel_zip *zip)
{
    void *text = NULL;
    size_t n_bytes = 0;
    keel_status s;
    char *path = asset_path(l, NULL);
    if (!path) return KEEL_ENOMEM;
    if (keel_zip_find(zip, path) < 0)
        s = keel_fail(KEEL_EFORMAT, "%s is missing", path);
    else if ((s = keel_zip_read(zip, path, ASSET_BYTES_MAX, &text, &n_bytes)) >= 0 &&
             (s = l->kind->read_asset(l->args, text, n_bytes)) < 0 && s != KEEL_ENOMEM)
        s = keel_fail_within(s, "%s", path);
    if (s < 0 && s != KEEL_ENOMEM) s = keel_fail_within(s, "layer '%s'", l->label);
    keel_free(text);
    keel_free(path);
    return s;
}

keel_status keel_model_read_assets(keel_model *m, keel_zip *zip)
{
    keel_status s = KEEL_OK;
    keel_model_layer **all = NULL;
    int n = 0;
    KEEL_TRY(keel_model_all_layers(m, &all, &n));
    for (int i = 0; i < n && s >= 0; i++)
        if (all[i]->kind->asset_name && all[i]->kind->needs_asset(all[i]->args))
            s = read_asset(all[i], zip);
    keel_free(all);
    return s;
}

keel_status keel_model_list_assets(const keel_model *m, keel_zip_member **out, int64_t *count)
{
    keel_status s = KEEL_OK;
    keel_model_layer **all = NULL;
    int n = 0;
    int64_t have = 0;
    keel_zip_member *members = NULL;
    KEEL_TRY(keel_model_all_layers(m, &all, &n));
    if (!(members = keel_calloc(2 * (size_t)n + 1, sizeof *members))) s = KEEL_ENOMEM;
    for (int i = 0; i < n && s >= 0; i++) {
        const keel_layer *kind = all[i]->kind;
        const char *text;
        size_t n_bytes;
        if (!kind->asset_name || !kind->asset(all[i]->args, &text, &n_bytes)) continue;
        for (int again = 0; again <= (kind->asset_again != NULL); again++) {
            char *path = asset_path(all[i], again ? kind->asset_again : NULL);
            if (!path) s = KEEL_ENOMEM;
            if (path) members[have++] = (keel_zip_member){ path, text, n_bytes };
        }
    }
    keel_free(all);
    if (s < 0) {
        keel_model_free_assets(members, have);
        return s;
    }
    *out = members;
    *count = have;
    return KEEL_OK;
}

void keel_model_free_assets(keel_zip_member *members, int64_t count)
{
    for (int64_t i = 0; i < count; i++) keel_free((char *)members[i].name);
    keel_free(members);
}

/* ---- numbers with a name ----------------------------------------------------------------------
 */

typedef keel_status (*visit)(const char *path, const keel_shape *shape, float *idf, void *context);

static keel_status visit_idf(const keel_model_layer *l, const char *inside, visit f, void *context)
{
    keel_status s;
    int64_t count = 0;
    float *idf = l->kind->idf ? l->kind->idf(l->args, &count) : NULL;
    const keel_shape shape = KEEL_SHAPE(count);
    keel_text path = { 0 };
    if (!idf) return KEEL_OK;
    keel_text_add(&path, "%s/%s%svars/idf_weights", l->path, inside ? inside : "",
                  inside ? "/" : "");
    s = path.failed ? KEEL_ENOMEM : f(path.data, &shape, idf, context);
    keel_text_free(&path);
    return s;
}

/* again: also of the layers inside Keras's classes. */
static keel_status each_idf(const keel_model *m, bool again, visit f, void *context)
{
    keel_status s = KEEL_OK;
    keel_model_layer **all = NULL;
    int n = 0;
    KEEL_TRY(keel_model_all_layers(m, &all, &n));
    for (int i = 0; i < n && s >= 0; i++) {
        s = visit_idf(all[i], NULL, f, context);
        if (s >= 0 && again && all[i]->kind->asset_again)
            s = visit_idf(all[i], all[i]->kind->asset_again, f, context);
    }
    keel_free(all);
    return s;
}

static keel_status read_idf(const char *path, const keel_shape *shape, float *idf, void *file)
{
    return keel_weights_read(file, path, KEEL_FLOAT32, shape, idf);
}

static keel_status add_idf(const char *path, const keel_shape *shape, float *idf, void *file)
{
    return keel_weights_add(file, path,
                            &(keel_tensor){ .dtype = KEEL_FLOAT32, .shape = *shape, .data = idf });
}

static keel_status count_idf(const char *path, const keel_shape *shape, float *idf, void *count)
{
    (void)path;
    (void)idf;
    *(int64_t *)count += shape->dim[0];
    return KEEL_OK;
}

keel_status keel_model_read_idf(const keel_model *m, keel_weights *file)
{
    return each_idf(m, false, read_idf, file);
}

keel_status keel_model_add_idf(const keel_model *m, keel_weights *file)
{
    return each_idf(m, true, add_idf, file);
}

keel_status keel_model_count_idf(const keel_model *m, int64_t *count)
{
    *count = 0;
    return each_idf(m, true, count_idf, count);
}
