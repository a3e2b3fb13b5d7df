/* Whole models in the older HDF5 format (.h5), as model.save of Keras 2 and 3 writes them: the
 * configuration in the attributes model_config and training_config, the weights of each layer in
 * its group of model_weights, and in optimizer_weights what the optimizer keeps. An attribute
 * weight_names of each group tells the order of its arrays, which alone says what they are: their
 * names depend on the version. All arrays are put into a list with the paths of a .keras file. */
#include "base/memory.h"
#include "base/plural.h"
#include "base/text.h"
#include "io/file.h"
#include "io/kind.h"
#include "model/parts.h"
#include "model/state.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { FILE_BYTES_MAX = INT32_MAX, CONFIG_BYTES_MAX = 64 << 20, NAME_BYTES_MAX = 4096 };
#define WEIGHTS "model_weights/"
#define STATE   "optimizer_weights"

typedef struct legacy {
    keel_weights *h5;    /* the file */
    keel_weights *today; /* its arrays by the paths of a .keras file */
    const char *base;    /* what the groups of layers lie in: "model_weights/", or "" */
    bool keras_2;
    float rate; /* an array of `today` if the file has none */
} legacy;

bool keel_is_legacy_file(const char *path)
{
    char begin[8] = "";
    keel_file f;
    if (keel_file_open(&f, path) < 0) return false; /* whoever reads it says why */
    const bool read = f.n_bytes >= sizeof begin && keel_file_read_at(&f, 0, begin, 8) >= 0;
    keel_file_close(&f);
    return read && !memcmp(begin, "\x89HDF\r\n\x1a\n", 8);
}

/* ---- configuration --------------------------------------------------------------------------- */

/* The JSON in an attribute of the root; *out NULL: there is none. */
static keel_status read_json(const legacy *f, const char *name, json_t **out)
{
    keel_h5_text *text = NULL;
    size_t n = 0;
    KEEL_TRY(keel_weights_texts(f->h5, "", name, &text, &n));
    keel_status s = KEEL_OK;
    if (text && n != 1)
        s = keel_fail(KEEL_EFORMAT, "%s: expected one text", name);
    else if (text && text->n_bytes > CONFIG_BYTES_MAX)
        s = keel_fail(KEEL_EFORMAT, "%s: %zu bytes, more than %d", name, text->n_bytes,
                      CONFIG_BYTES_MAX);
    else if (text)
        s = keel_model_parse(text->at, text->n_bytes, name, out);
    keel_free(text);
    return s;
}

/* Keras 1, whose arguments had other names, wrote its version from 1.0.8 on. */
static keel_status read_version(legacy *f)
{
    keel_h5_text *text = NULL;
    size_t n = 0;
    KEEL_TRY(keel_weights_texts(f->h5, "", "keras_version", &text, &n));
    const char first = text && n == 1 && text->n_bytes > 0 ? text->at[0] : '1';
    keel_free(text);
    f->keras_2 = first == '2';
    return first != '1' ? KEEL_OK
                        : keel_fail(KEEL_EUNSUP, "a model of Keras 1; load it in Keras 2 and save "
                                                 "it again");
}

static keel_status read_config(keel_model *m, legacy *f)
{
    json_t *training = NULL;
    KEEL_TRY(read_json(f, "model_config", &m->file_config));
    if (!m->file_config)
        return keel_fail(KEEL_EFORMAT, "%s", keel_kind_of_bytes("\x89HDF\r\n\x1a\n", 8));
    KEEL_TRY(read_version(f));
    keel_status s = read_json(f, "training_config", &training);
    if (s >= 0) s = keel_legacy_config(m->file_config, training);
    json_decref(training);
    if (s < 0) return s;
    return (s = keel_model_read_root(m)) < 0 ? keel_fail_within(s, "model_config") : KEEL_OK;
}

/* This format has no place for vocabularies that are files of their own. */
static keel_status check_assets(keel_model *m)
{
    keel_model_layer **all = NULL;
    int n = 0;
    int64_t idf = 0;
    keel_status s = KEEL_OK;
    KEEL_TRY(keel_model_count_idf(m, &idf));
    if (idf > 0) return keel_fail(KEEL_EUNSUP, "weights of texts (idf_weights) in an .h5 file");
    KEEL_TRY(keel_model_all_layers(m, &all, &n));
    for (int i = 0; i < n && s >= 0; i++)
        if (all[i]->kind->asset_name && all[i]->kind->needs_asset(all[i]->args))
            s = keel_fail(KEEL_EFORMAT, "layer '%s': an .h5 file has no vocabulary", all[i]->label);
    keel_free(all);
    return s;
}

/* ---- lists of names -------------------------------------------------------------------------- */

typedef struct names {
    keel_h5_text *at;
    size_t n;
} names;

/* An attribute of a group, a list of names: whole, or in pieces weight_names0, weight_names1, ...
 * as Keras cuts it if it is too long for one attribute. */
static keel_status read_list(const legacy *f, const char *group, const char *attribute, names *out)
{
    char piece[32];
    *out = (names){ 0 };
    KEEL_TRY(keel_weights_texts(f->h5, group, attribute, &out->at, &out->n));
    for (int i = 0; !out->at || i > 0; i++) {
        keel_h5_text *more = NULL;
        size_t n = 0;
        snprintf(piece, sizeof piece, "%s%d", attribute, i);
        keel_status s = keel_weights_texts(f->h5, group, piece, &more, &n);
        if (s >= 0 && !more) return KEEL_OK;
        keel_h5_text *all = s < 0 ? NULL : keel_grow(out->at, out->n + n + 1, sizeof *all);
        if (all) {
            memcpy(all + out->n, more, n * sizeof *more);
            out->at = all;
            out->n += n;
        } else {
            keel_free(out->at);
            *out = (names){ 0 };
            s = s < 0 ? s : KEEL_ENOMEM;
        }
        keel_free(more);
        KEEL_TRY(s);
    }
    return KEEL_OK;
}

static keel_status read_names(const legacy *f, const char *group, names *out)
{
    return read_list(f, group, "weight_names", out);
}

/* The path of the group of a layer: to be freed. */
static keel_status group_of(const legacy *f, const char *name, size_t n_bytes, keel_text *out)
{
    *out = (keel_text){ 0 };
    keel_text_add(out, "%s%.*s", f->base, n_bytes > NAME_BYTES_MAX ? NAME_BYTES_MAX : (int)n_bytes,
                  name);
    if (!out->failed) return KEEL_OK;
    keel_text_free(out);
    return KEEL_ENOMEM;
}

/* The names of the layers that have weights, in the order of the file. */
static keel_status read_layers(const legacy *f, names *out)
{
    names all, list;
    keel_text group;
    size_t n = 0;
    keel_status s = read_list(f, *f->base ? "model_weights" : "", "layer_names", &all);
    for (size_t i = 0; i < all.n && s >= 0; i++) {
        if ((s = group_of(f, all.at[i].at, all.at[i].n_bytes, &group)) < 0) break;
        s = read_names(f, group.data, &list);
        if (s >= 0 && list.n > 0) all.at[n++] = all.at[i];
        keel_free(list.at);
        keel_text_free(&group);
    }
    all.n = n;
    *out = all;
    return s;
}

/* The array with that name in a group. */
static keel_status find(const legacy *f, const char *group, const keel_h5_text *name,
                        const keel_weight **out)
{
    keel_text path = { 0 };
    const int n = name->n_bytes > NAME_BYTES_MAX ? NAME_BYTES_MAX : (int)name->n_bytes;
    keel_text_add(&path, "%s/%.*s", group, n, name->at);
    if (path.failed) {
        keel_text_free(&path);
        return KEEL_ENOMEM;
    }
    *out = keel_weights_find(f->h5, path.data);
    const keel_status s = *out ? KEEL_OK
                               : keel_fail(KEEL_EFORMAT,
                                           "%s: it names an array '%.100s' that it "
                                           "does not have",
                                           group, path.data + strlen(group) + 1);
    keel_text_free(&path);
    return s;
}

/* Puts an array of the file under a path of today. */
static keel_status put(legacy *f, const char *path, const keel_weight *a)
{
    if (a->stored == KEEL_H5_UINT32)
        return keel_fail(KEEL_EUNSUP, "%s: an array of type uint32", a->path);
    return keel_weights_add(
        f->today, path,
        &(keel_tensor){ .dtype = a->dtype, .shape = a->shape, .data = (void *)a->data });
}

/* ---- weights --------------------------------------------------------------------------------- */

/* What a layer has in its group: a weight, or the integer after its weights (keel_layer.counts). */
typedef struct part {
    const keel_model_weight *weight; /* NULL: the integer */
} part;

typedef struct parts {
    part *at;
    int n;
} parts;

/* Adds those of a layer and the layers inside that are trained, or those that are not. */
static void collect(const keel_model *root, const keel_model_layer *l, bool trained, parts *to)
{
    for (int k = 0; k < l->n_weight; k++) {
        const keel_model_weight *w = &root->weight[l->weight[k]];
        if (w->trainable == trained) to->at[to->n++].weight = w;
    }
    if (!trained && l->kind->counts && l->n_weight > 0) to->at[to->n++].weight = NULL;
    for (int i = 0; l->inner && i < l->inner->n_layer; i++)
        collect(root, &l->inner->layer[i], trained, to);
}

static keel_status take(legacy *f, const char *group, const keel_h5_text *name, const part *p)
{
    char has[96], wants[96];
    const keel_weight *a = NULL;
    KEEL_TRY(find(f, group, name, &a));
    if (!p->weight && a->shape.rank == 0) return KEEL_OK;
    const keel_shape *shape = p->weight ? &p->weight->info.spec.shape : &(keel_shape){ 0 };
    if (keel_shape_equal(&a->shape, shape)) return put(f, p->weight->path, a);
    keel_shape_text(has, &a->shape);
    keel_shape_text(wants, shape);
    return keel_fail(KEEL_EFORMAT, "%s has the shape %s, not %s as '%s'", a->path, has, wants,
                     p->weight ? p->weight->info.name : "a count");
}

/* A layer of the outermost model and its weights, and those of all layers inside: first those that
 * are trained, then the others. */
static void collect_all(const keel_model *m, const keel_model_layer *l, parts *wanted)
{
    wanted->n = 0;
    collect(m, l, true, wanted);
    collect(m, l, false, wanted);
}

static keel_status take_group(legacy *f, const char *group, const parts *wanted)
{
    names list = { 0 };
    keel_status s = read_names(f, group, &list);
    if (s >= 0 && list.n != (size_t)wanted->n)
        s = keel_fail(KEEL_EFORMAT, "%s: it has %zu weight%s, the layer %d", group, list.n,
                      keel_s((int64_t)list.n), wanted->n);
    for (int i = 0; i < wanted->n && s >= 0; i++) s = take(f, group, &list.at[i], &wanted->at[i]);
    keel_free(list.at);
    return s;
}

static keel_status take_layer(legacy *f, const char *name, size_t n_bytes, const parts *wanted)
{
    keel_text group;
    KEEL_TRY(group_of(f, name, n_bytes, &group));
    const bool nothing = wanted->n == 0 && !keel_weights_has_group(f->h5, group.data);
    const keel_status s = nothing ? KEEL_OK : take_group(f, group.data, wanted);
    keel_text_free(&group);
    return s;
}

/* How many layers have weights, and whether the file has all of them by their names. */
static keel_status count_layers(const keel_model *m, const legacy *f, parts *wanted, size_t *count,
                                bool *named)
{
    *count = 0;
    *named = true;
    for (int i = 0; i < m->n_layer; i++) {
        keel_text group;
        collect_all(m, &m->layer[i], wanted);
        if (wanted->n == 0) continue;
        KEEL_TRY(group_of(f, m->layer[i].name, strlen(m->layer[i].name), &group));
        *named = *named && keel_weights_has_group(f->h5, group.data);
        keel_text_free(&group);
        ++*count;
    }
    return KEEL_OK;
}

/* By their names, or, if these are others in the file, all in their order, as in Keras: layers
 * without a name of their own are conv2d_1 in one program and conv2d in another. */
static keel_status take_all(const keel_model *m, legacy *f, parts *wanted)
{
    names layers = { 0 };
    size_t count, k = 0;
    bool named;
    KEEL_TRY(count_layers(m, f, wanted, &count, &named));
    keel_status s = named ? KEEL_OK : read_layers(f, &layers);
    const bool in_order = !named && layers.n > 0;
    if (s >= 0 && in_order && layers.n != count)
        s = keel_fail(KEEL_EFORMAT,
                      "it has weights of %zu layers, the model has %zu such layers, and their "
                      "names differ",
                      layers.n, count);
    for (int i = 0; i < m->n_layer && s >= 0; i++) {
        const keel_model_layer *l = &m->layer[i];
        keel_h5_text name = { l->name, strlen(l->name) };
        collect_all(m, l, wanted);
        if (in_order && wanted->n == 0) continue;
        if (in_order) name = layers.at[k++];
        s = take_layer(f, name.at, name.n_bytes, wanted);
    }
    keel_free(layers.at);
    return s;
}

static keel_status take_layers(const keel_model *m, legacy *f)
{
    parts wanted = { .at = keel_calloc((size_t)m->n_weight * 2, sizeof *wanted.at) };
    if (!wanted.at) return KEEL_ENOMEM;
    const keel_status s = take_all(m, f, &wanted);
    keel_free(wanted.at);
    return s;
}

keel_status keel_legacy_weights(const keel_model *m, keel_weights *file, keel_weights **out)
{
    legacy f = { .h5 = file, .base = keel_weights_has_group(file, "model_weights") ? WEIGHTS : "" };
    keel_status s = keel_weights_create(&f.today);
    if (s >= 0) s = take_layers(m, &f);
    if (s < 0)
        keel_weights_destroy(f.today);
    else
        *out = f.today;
    return s;
}

/* ---- the optimizer's state ------------------------------------------------------------------- */

static keel_status put_variable(legacy *f, int64_t i, const keel_weight *a)
{
    char path[64];
    snprintf(path, sizeof path, "optimizer/vars/%lld", (long long)i);
    return put(f, path, a);
}

/* The last part of a variable's name, without ":0": "momentum" of "SGD/dense/kernel/momentum:0". */
static keel_h5_text last_of(const keel_h5_text *name)
{
    keel_h5_text last = *name;
    if (last.n_bytes > 2 && last.at[last.n_bytes - 2] == ':') last.n_bytes -= 2;
    for (size_t i = last.n_bytes; i-- > 0;)
        if (last.at[i] == '/') {
            last.at += i + 1;
            last.n_bytes -= i + 1;
            break;
        }
    return last;
}

static bool is(const keel_h5_text *text, const char *word)
{
    return text->n_bytes == strlen(word) && !memcmp(text->at, word, text->n_bytes);
}

/* Keras 2 does not save the learning rate among the variables. A schedule has none. */
static keel_status put_rate(const keel_model *m, legacy *f, int64_t *at)
{
    if (m->compiled.optimizer[0].schedule) return KEEL_OK;
    f->rate = (float)m->compiled.optimizer[0].learning_rate;
    const keel_weight rate = {
        .path = "learning_rate", .dtype = KEEL_FLOAT32, .stored = KEEL_H5_FLOAT32, .data = &f->rate
    };
    return put_variable(f, (*at)++, &rate);
}

/* All variables in the order of the file. */
static keel_status put_in_order(const keel_model *m, legacy *f, const names *list)
{
    int64_t at = 0;
    for (size_t i = 0; i < list->n; i++) {
        const keel_weight *a = NULL;
        KEEL_TRY(find(f, STATE, &list->at[i], &a));
        KEEL_TRY(put_variable(f, at++, a));
        if (i > 0 || !f->keras_2) continue;
        const keel_h5_text next = list->n > 1 ? last_of(&list->at[1]) : (keel_h5_text){ "", 0 };
        if (!is(&next, "learning_rate")) KEEL_TRY(put_rate(m, f, &at));
    }
    return KEEL_OK;
}

/* The optimizers that Keras 2 had before version 2.11, and has as optimizers.legacy, save a slot of
 * all weights, then the next slot. Their names for slots, and today's: */
static const char *const old_slots[][2] = {
    { "m", "momentum" },
    { "v", "velocity" },
    { "vhat", "velocity_hat" },
    { "momentum", "momentum" },
    { "rms", "velocity" },
    { "mg", "average_gradient" },
    { "accumulator", "accumulator" },
    { "accum_grad", "accumulated_grad" },
    { "accum_var", "accumulated_delta_var" },
};

static bool is_slot(const keel_h5_text *name, const char *slot)
{
    const keel_h5_text last = last_of(name);
    for (size_t i = 0; i < sizeof old_slots / sizeof *old_slots; i++)
        if (!strcmp(old_slots[i][1], slot) && is(&last, old_slots[i][0])) return true;
    return false;
}

/* The first variable of that slot at `from` or after it. list->n: there is none. */
static size_t next_of(const names *list, const char *slot, size_t from)
{
    while (from < list->n && !is_slot(&list->at[from], slot)) from++;
    return from;
}

/* The variables of each slot follow one another in the order of the weights. */
static keel_status put_by_slot(const keel_model *m, legacy *f, const names *list,
                               const char *const *slots, int n)
{
    const keel_weight *a = NULL;
    int64_t at = 0;
    size_t from[KEEL_SLOTS_MAX] = { 0 };
    const char *known[KEEL_SLOTS_MAX] = { NULL };
    KEEL_TRY(find(f, STATE, &list->at[0], &a));
    KEEL_TRY(put_variable(f, at++, a));
    KEEL_TRY(put_rate(m, f, &at));
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (known[k] && strcmp(known[k], slots[i]) != 0) k++;
        known[k] = slots[i];
        const size_t found = next_of(list, slots[i], from[k]);
        if (found == list->n)
            return keel_fail(KEEL_EUNSUP, "%s: no '%s' for each weight", STATE, slots[i]);
        from[k] = found + 1;
        KEEL_TRY(find(f, STATE, &list->at[found], &a));
        KEEL_TRY(put_variable(f, at++, a));
    }
    return KEEL_OK;
}

/* SGD of Keras 2 saves momentums, all 0, also if it has none. */
static void leave_out_slots(names *list)
{
    const keel_h5_text second = list->n > 1 ? last_of(&list->at[1]) : (keel_h5_text){ "", 0 };
    list->n = is(&second, "learning_rate") ? 2 : 1;
}

static keel_status take_state(const keel_model *m, legacy *f)
{
    names list = { 0 };
    const char **slots = NULL;
    int n = 0;
    keel_status s = read_names(f, STATE, &list);
    if (s >= 0 && list.n > 0) {
        const keel_h5_text first = last_of(&list.at[0]);
        const bool new_style = !f->keras_2 || is(&first, "iteration");
        if (new_style) s = keel_compiled_state_names(m, &slots, &n);
        if (new_style && f->keras_2 && n == 0) leave_out_slots(&list);
        if (s < 0) {
        } else if (new_style) {
            s = put_in_order(m, f, &list);
        } else if (list.n == 1) { /* saved before the first step */
            s = put_by_slot(m, f, &list, NULL, 0);
        } else if ((s = keel_compiled_state_names(m, &slots, &n)) >= 0) {
            s = list.n == (size_t)n + 1
                    ? put_by_slot(m, f, &list, slots, n)
                    : keel_fail(KEEL_EUNSUP, "%s: %zu variables, where %s keeps %d", STATE, list.n,
                                m->compiled.optimizer[0].optimizer.type->name, n + 1);
        }
    }
    keel_free(list.at);
    keel_free(slots);
    return s;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static keel_status read_model(keel_model *m, legacy *f)
{
    KEEL_TRY(read_config(m, f));
    KEEL_TRY(check_assets(m));
    KEEL_TRY(keel_weights_create(&f->today));
    KEEL_TRY(take_layers(m, f));
    if (m->compiled.given && keel_weights_has_group(f->h5, STATE)) {
        KEEL_TRY(keel_compiled_state_create(m, &m->compiled));
        const keel_status s = take_state(m, f);
        if (s != KEEL_EUNSUP) KEEL_TRY(s);
        /* It must not prevent predictions, or another choice, either. */
        if (s < 0) {
            if (!(m->refused = keel_strdup(keel_error()))) return KEEL_ENOMEM;
            keel_compiled_free(&m->compiled);
        }
    }
    return keel_model_take_weights(m, f->today);
}

keel_status keel_model_load_legacy(keel_model *m, const char *path)
{
    legacy f = { .base = WEIGHTS };
    void *image = NULL;
    size_t n_bytes = 0;
    keel_status s = keel_file_read(path, FILE_BYTES_MAX, &image, &n_bytes);
    if (s >= 0) s = keel_weights_decode(&f.h5, image, n_bytes);
    if (s >= 0) s = read_model(m, &f);
    keel_weights_destroy(f.today);
    keel_weights_destroy(f.h5);
    keel_free(image);
    /* A wrong argument in a call is damage in a file. */
    return s == KEEL_EARG || s == KEEL_ESHAPE ? KEEL_EFORMAT : s;
}
