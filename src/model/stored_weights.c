/* model.weights.h5: the weights of a model and the state of its optimizer under Keras's paths, read
 * from the list of a file and written. */
#include "base/memory.h"
#include "base/plural.h"
#include "base/text.h"
#include "io/file.h"
#include "model/parts.h"
#include "model/state.h"
#include <string.h>

/* ---- reading --------------------------------------------------------------------------------- */

/* keel_layer.low_rank. */
static double scale_of(const keel_model_layer *l)
{
    return l->kind->low_rank && l->n_weight >= 3 ? l->kind->low_rank(l->args) : 0;
}

/* Where a file of Keel has the first weight of such a layer without the product. */
static keel_status base_path(const keel_model_weight *w, keel_text *out)
{
    const char *own = strrchr(w->info.name, '/'), *number = strrchr(w->path, '/');
    keel_text_add(out, "%.*s/lora_%s", (int)(number - w->path), w->path, own ? own + 1 : "");
    return out->failed ? KEEL_ENOMEM : KEEL_OK;
}

keel_status keel_model_stored_weight(const keel_model *m, const keel_weights *file, int i,
                                     const keel_weight **out)
{
    const keel_model_weight *w = &m->weight[i];
    const keel_model_layer *l = &w->owner->layer[w->layer];
    *out = NULL;
    if (scale_of(l) != 0 && l->weight[0] == i) {
        keel_text path = { 0 };
        const keel_status s = base_path(w, &path);
        if (s >= 0) *out = keel_weights_find(file, path.data);
        keel_text_free(&path);
        KEEL_TRY(s);
    }
    if (!*out) *out = keel_weights_find(file, w->path);
    return KEEL_OK;
}

static keel_status read_weight(keel_model *m, const keel_weights *file, int i)
{
    keel_model_weight *w = &m->weight[i];
    char has[96], wants[96];
    const keel_weight *found;
    KEEL_TRY(keel_model_stored_weight(m, file, i, &found));
    if (!found && w->besides) return keel_model_fill_weight(m, i);
    if (!found)
        return keel_fail(KEEL_EFORMAT, "model.weights.h5: %s is missing (%s)", w->path,
                         w->info.name);
    if (!keel_shape_equal(&found->shape, &w->info.spec.shape)) {
        keel_shape_text(has, &found->shape);
        keel_shape_text(wants, &w->info.spec.shape);
        return keel_fail(KEEL_EFORMAT, "model.weights.h5: %s (%s) has the shape %s, not %s",
                         w->path, w->info.name, has, wants);
    }
    KEEL_TRY(keel_model_alloc_weight(m, i));
    return keel_weights_read(file, found->path, m->dtype, &w->info.spec.shape, w->data);
}

keel_status keel_model_check_counts(const keel_model *m, const keel_weights *file)
{
    for (int i = 0; i < m->n_layer; i++) {
        const keel_model_layer *l = &m->layer[i];
        keel_text next = { 0 };
        if (!l->path) continue;
        keel_text_add(&next, "%s/vars/%d", l->path,
                      l->n_weight + (l->kind->counts && l->n_weight > 0) + l->kind->first_again -
                          (scale_of(l) != 0 ? 2 : 0));
        const bool more = !next.failed && keel_weights_find(file, next.data);
        const bool failed = next.failed;
        keel_text_free(&next);
        if (failed) return KEEL_ENOMEM;
        if (more)
            return keel_fail(KEEL_EFORMAT, "layer '%s' has more than its %d weight%s in it",
                             l->label, l->n_weight, keel_s(l->n_weight));
        if (l->inner) KEEL_TRY(keel_model_check_counts(l->inner, file));
    }
    return KEEL_OK;
}

keel_status keel_model_take_weights(keel_model *m, keel_weights *file)
{
    for (int i = 0; i < m->n_weight; i++) KEEL_TRY(read_weight(m, file, i));
    keel_status s = keel_model_check_counts(m, file);
    if (s >= 0) s = keel_model_read_idf(m, file);
    if (s < 0) return s == KEEL_ENOMEM ? s : keel_fail_within(s, "model.weights.h5");
    /* Only now, because the weights, whose size the state has, have been found in the file. */
    if (!m->compiled.given) return KEEL_OK;
    KEEL_TRY(keel_compiled_state_create(m, &m->compiled));
    m->compiled.built = true;
    return keel_compiled_state_read(m, file);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* float32 copies of float64 numbers, kept until the file is written. */
typedef struct copies {
    void **data;
    int count;
} copies;

static keel_status add_reals(keel_weights *file, copies *kept, const char *path,
                             const keel_shape *shape, keel_dtype dtype, const void *data)
{
    keel_tensor t = { .dtype = KEEL_FLOAT32, .shape = *shape, .data = (void *)data };
    if (dtype != KEEL_FLOAT32) {
        const int64_t n = keel_shape_count(shape);
        t.data = keel_calloc((size_t)n, sizeof(float));
        if (!t.data) return KEEL_ENOMEM;
        keel_convert_reals(t.data, KEEL_FLOAT32, data, dtype, n);
        kept->data[kept->count++] = t.data;
    }
    return keel_weights_add(file, path, &t);
}

typedef struct adding {
    keel_weights *file;
    copies *kept;
} adding;

static keel_status add_tensor(void *context, const char *path, const keel_tensor *t)
{
    const adding *a = context;
    return add_reals(a->file, a->kept, path, &t->shape, t->dtype, t->data);
}

static keel_status add_state(const keel_model *m, keel_weights *file, copies *kept)
{
    adding a = { file, kept };
    return keel_compiled_state_add(m, file, add_tensor, &a);
}

static keel_status add_layer_group(keel_weights *file, const keel_model_layer *l)
{
    keel_text group = { 0 };
    keel_text_add(&group, "%s/vars", l->path);
    const keel_status s =
        group.failed ? KEEL_ENOMEM : keel_weights_add_group(file, group.data, l->name);
    keel_text_free(&group);
    return s;
}

static double real_at(const void *data, bool f64, int64_t i)
{
    return f64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* keel_layer.counts. */
static keel_status add_count(keel_weights *file, const keel_model_layer *l)
{
    static int32_t nothing;
    const keel_tensor t = { .dtype = KEEL_INT32, .data = &nothing };
    keel_text path = { 0 };
    keel_text_add(&path, "%s/vars/%d", l->path, l->n_weight);
    const keel_status s = path.failed ? KEEL_ENOMEM : keel_weights_add(file, path.data, &t);
    keel_text_free(&path);
    return s;
}

/* keel_layer.first_again. */
static keel_status add_first_again(keel_weights *file, copies *kept, const keel_model *root,
                                   const keel_model_layer *l)
{
    const keel_model_layer *held = &l->inner->layer[0];
    const keel_model_weight *w = &root->weight[held->weight[0]];
    keel_text path = { 0 };
    keel_text_add(&path, "%s/vars/0", l->path);
    const keel_status s =
        path.failed ? KEEL_ENOMEM
                    : add_reals(file, kept, path.data, &w->info.spec.shape, root->dtype, w->data);
    keel_text_free(&path);
    return s;
}

/* keel_layer.low_rank: the sum, which Keras takes for the kernel, */
static keel_status add_sum(const keel_model *root, const keel_model_layer *l, keel_weights *file,
                           copies *kept)
{
    const keel_model_weight *w = &root->weight[l->weight[0]];
    const keel_model_weight *a = &root->weight[l->weight[l->n_weight - 2]];
    const keel_model_weight *b = &root->weight[l->weight[l->n_weight - 1]];
    const keel_shape *shape = &w->info.spec.shape;
    const int64_t columns = shape->dim[shape->rank - 1], rank = b->info.spec.shape.dim[0];
    const int64_t rows = keel_shape_count(shape) / columns;
    const bool f64 = root->dtype == KEEL_FLOAT64;
    const double scale = scale_of(l);
    void *sum = keel_calloc((size_t)keel_shape_count(shape), keel_dtype_size(root->dtype));
    if (!sum) return KEEL_ENOMEM;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double product = 0;
            for (int64_t k = 0; k < rank; k++)
                product +=
                    real_at(a->data, f64, i * rank + k) * real_at(b->data, f64, k * columns + j);
            const double v = real_at(w->data, f64, i * columns + j) + scale * product;
            if (f64)
                ((double *)sum)[i * columns + j] = v;
            else
                ((float *)sum)[i * columns + j] = (float)v;
        }
    kept->data[kept->count++] = sum;
    return add_reals(file, kept, w->path, shape, root->dtype, sum);
}

/* and the kernel itself, from which Keel goes on. */
static keel_status add_base(const keel_model *root, const keel_model_layer *l, keel_weights *file,
                            copies *kept)
{
    const keel_model_weight *w = &root->weight[l->weight[0]];
    keel_text path = { 0 };
    keel_status s = base_path(w, &path);
    if (s >= 0) s = add_reals(file, kept, path.data, &w->info.spec.shape, root->dtype, w->data);
    keel_text_free(&path);
    return s;
}

/* The layers of m, which is `root` or inside it; root has the weights. */
static keel_status add_layers(const keel_model *root, const keel_model *m, keel_weights *file,
                              copies *kept)
{
    for (int i = 0; i < m->n_layer; i++) {
        const keel_model_layer *l = &m->layer[i];
        if (!l->path) continue;
        KEEL_TRY(add_layer_group(file, l));
        if (l->kind->first_again) KEEL_TRY(add_first_again(file, kept, root, l));
        for (int k = 0; k < l->n_weight; k++) {
            const keel_model_weight *w = &root->weight[l->weight[k]];
            if (k == 0 && scale_of(l) != 0)
                KEEL_TRY(add_sum(root, l, file, kept));
            else
                KEEL_TRY(add_reals(file, kept, w->path, &w->info.spec.shape, root->dtype, w->data));
        }
        if (scale_of(l) != 0) KEEL_TRY(add_base(root, l, file, kept));
        if (l->kind->counts && l->n_weight > 0) KEEL_TRY(add_count(file, l));
        if (l->inner) KEEL_TRY(add_layers(root, l->inner, file, kept));
    }
    return KEEL_OK;
}

keel_status keel_model_write_weights(const keel_model *m, keel_new_file *f, int64_t at,
                                     uint64_t *n_bytes)
{
    keel_status s = KEEL_OK;
    keel_weights *file = NULL;
    const keel_model_compiled *c = &m->compiled;
    copies kept = { .data = keel_calloc(4 * (size_t)(m->n_weight + c->n_state) +
                                            4 * (size_t)c->n_optimizer + 2,
                                        sizeof *kept.data) };
    if (!kept.data) return KEEL_ENOMEM;
    if ((s = keel_weights_create(&file)) < 0) goto out;
    if ((s = add_layers(m, m, file, &kept)) < 0) goto out;
    if ((s = keel_model_add_idf(m, file)) < 0) goto out;
    if ((s = keel_weights_add_group(file, "vars", m->name)) < 0) goto out;
    if (m->compiled.given && (s = add_state(m, file, &kept)) < 0) goto out;
    s = keel_weights_write(file, f, at, n_bytes);
out:
    keel_weights_destroy(file);
    for (int i = 0; i < kept.count; i++) keel_free(kept.data[i]);
    keel_free(kept.data);
    return s;
}

keel_status keel_model_save_weights(const keel_model *m, const char *path)
{
    static const char end[] = ".weights.h5";
    const size_t n = strlen(path);
    keel_new_file *f = NULL;
    uint64_t n_bytes;
    if (!m->finished)
        return keel_fail(KEEL_EARG, "%s: the model is not finished, so it cannot be saved", path);
    if (n < sizeof end || strcmp(path + n - (sizeof end - 1), end))
        return keel_fail(KEEL_EARG, "%s: the name must end in %s", path, end);
    keel_model_pull(m, KEEL_LIVE_ALL);
    KEEL_TRY(keel_new_file_create(&f, path));
    const keel_status s = keel_model_write_weights(m, f, 0, &n_bytes);
    if (s >= 0) return keel_new_file_commit(f);
    keel_new_file_abort(f);
    return s;
}
