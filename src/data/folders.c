/* Classes and labels of the files of a directory; see folders.h. */
#include "base/memory.h"
#include "data/folders.h"
#include "data/labels.h"
#include "data/quarantine.h"
#include "data/stage.h"
#include "tensor/dtype.h"
#include "io/file.h"
#include "tensor/shape.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { CLASSES_MAX = 1000000 };

/* ---- classes ------------------------------------------------------------------------------------
 */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static keel_status add_class(keel_folder *f, const char *name)
{
    if (f->n_classes == CLASSES_MAX)
        return keel_fail(KEEL_EDATA, "more than %d folders of classes", CLASSES_MAX);
    if (f->n_classes == f->class_room) {
        const int64_t room = f->class_room ? 2 * f->class_room : 16;
        char **names = keel_grow(f->class_names, (size_t)room, sizeof *names);
        if (!names) return KEEL_ENOMEM;
        f->class_names = names;
        f->class_room = room;
    }
    if (!(f->class_names[f->n_classes] = keel_strdup(name))) return KEEL_ENOMEM;
    f->n_classes++;
    return KEEL_OK;
}

static void drop_classes(keel_folder *f)
{
    for (int64_t i = 0; i < f->n_classes; i++) keel_free(f->class_names[i]);
    f->n_classes = 0;
}

static keel_status find_classes(keel_folder *f, const char *root)
{
    keel_status s = KEEL_OK;
    DIR *d = opendir(root);
    if (!d) return keel_fail(KEEL_EIO, "%s: %s", root, strerror(errno));
    const struct dirent *e;
    while (s >= 0 && (errno = 0, e = readdir(d))) {
        struct stat st;
        if (e->d_name[0] == '.') continue;
        char *path = keel_folder_join(root, e->d_name);
        if (!path) {
            s = KEEL_ENOMEM;
        } else if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
            s = add_class(f, e->d_name);
        } else {
            f->found[KEEL_FILE_KINDS]++;
        }
        keel_free(path);
    }
    if (s >= 0 && errno) s = keel_fail(KEEL_EIO, "%s: %s", root, strerror(errno));
    closedir(d);
    if (s >= 0 && f->n_classes)
        qsort(f->class_names, (size_t)f->n_classes, sizeof *f->class_names, by_name);
    return s;
}

static int64_t index_of(const char *name, const char *const *names, int64_t n)
{
    int64_t k = 0;
    while (k < n && strcmp(names[k], name)) k++;
    return k;
}

/* Replace the folders found by those of the options, in their order. */
static keel_status choose_classes(keel_folder *f, const keel_dataset_options *o, const char *root)
{
    for (int64_t i = 0; i < o->folder_count; i++) {
        const char *name = o->folders[i];
        char *const *at = f->n_classes ? bsearch(&name, f->class_names, (size_t)f->n_classes,
                                                 sizeof *f->class_names, by_name)
                                       : NULL;
        if (!at)
            return keel_fail(KEEL_EDATA,
                             "%s: has no folder '%.80s'; class names must be names of its folders",
                             root, name);
        if (index_of(name, o->folders, i) < i)
            return keel_fail(KEEL_EARG, "%s: the class name '%.80s' is given twice", root, name);
    }
    drop_classes(f);
    for (int64_t i = 0; i < o->folder_count; i++) KEEL_TRY(add_class(f, o->folders[i]));
    return KEEL_OK;
}

/* Number the folders by the class names that a model knows, and take those names. */
static keel_status number_by_model(keel_folder *f, const keel_dataset_options *o, int32_t *number,
                                   const char *root)
{
    for (int64_t i = 0; i < f->n_classes; i++) {
        const int64_t k = index_of(f->class_names[i], o->class_names, o->class_name_count);
        if (k == o->class_name_count)
            return keel_classes_fail_unknown(o->class_names, o->class_name_count, f->class_names[i],
                                             root);
        number[i] = (int32_t)k;
    }
    drop_classes(f);
    for (int64_t i = 0; i < o->class_name_count; i++) KEEL_TRY(add_class(f, o->class_names[i]));
    return KEEL_OK;
}

/* Collect the files of all class folders with the number of their class. */
static keel_status walk_classes(keel_folder *f, const char *root, keel_file_kind kind,
                                const keel_dataset_options *o)
{
    keel_status s = find_classes(f, root);
    if (s >= 0 && o->folder_count) s = choose_classes(f, o, root);
    const int64_t n = f->n_classes;
    keel_classes folder = { keel_calloc((size_t)n + 1, sizeof *folder.name), n };
    int32_t *number = keel_calloc((size_t)n + 1, sizeof *number);
    if (s >= 0 && (!folder.name || !number)) s = KEEL_ENOMEM;
    for (int64_t i = 0; s >= 0 && i < n; i++) {
        number[i] = (int32_t)i;
        if (!(folder.name[i] = keel_folder_join(root, f->class_names[i]))) s = KEEL_ENOMEM;
    }
    if (s >= 0 && o->class_name_count && n) s = number_by_model(f, o, number, root);
    for (int64_t i = 0; s >= 0 && i < n; i++)
        s = keel_folder_walk(f, folder.name[i], kind, o->follow_links, number[i]);
    if (folder.name) keel_classes_free(&folder);
    keel_free(number);
    return s;
}

/* ---- the kind
 * ------------------------------------------------------------------------------------ A few texts
 * beside images or sound are notes: fewer than half as many. */

static keel_status decide_kind(keel_folder *f, const char *path, keel_file_kind kind)
{
    const int64_t images = f->found[KEEL_FILE_IMAGE], sounds = f->found[KEEL_FILE_AUDIO],
                  texts = f->found[KEEL_FILE_TEXT];
    f->kind = kind;
    if (kind != KEEL_FILE_KINDS) return KEEL_OK;
    const int64_t more = images > sounds ? images : sounds;
    if ((images && sounds) || (more && 2 * texts >= more))
        return keel_fail(
            KEEL_EDATA,
            "%s: has %lld images, %lld sounds (wav) and %lld texts (txt); say which to "
            "read: images:%s, audio:%s or text:%s",
            path, (long long)images, (long long)sounds, (long long)texts, path, path, path);
    f->kind = sounds ? KEEL_FILE_AUDIO : texts && !images ? KEEL_FILE_TEXT : KEEL_FILE_IMAGE;
    int64_t kept = 0;
    for (int64_t i = 0; i < f->count; i++) {
        if (f->at[i].kind == (uint8_t)f->kind)
            f->at[kept++] = f->at[i];
        else
            keel_free(f->at[i].path);
    }
    f->count = kept;
    return KEEL_OK;
}

static void write_note(keel_folder *f, const char *path)
{
    char endings[64];
    int64_t out = 0, webp = 0;
    for (int k = 0; k <= KEEL_FILE_KINDS; k++)
        if (k != (int)f->kind) out += f->found[k];
    for (int64_t i = 0; i < f->count; i++) {
        const char *dot = strrchr(f->at[i].path, '.');
        webp += dot && !strcasecmp(dot, ".webp");
    }
    int n = 0;
    if (out)
        n = snprintf(f->note, sizeof f->note, "%.100s: %lld %s left out: no %s (%s)%s", path,
                     (long long)out, out == 1 ? "file is" : "files are", keel_file_what(f->kind),
                     keel_file_endings(f->kind, endings),
                     f->label_mode == KEEL_LABEL_NONE ? "" : ", or not in a class folder");
    if (webp && n < (int)sizeof f->note)
        snprintf(f->note + n, sizeof f->note - (size_t)n,
                 "%s%.100s%s%lld webp %s read, which Keras leaves out", n ? "; " : "",
                 n ? "" : path, n ? "" : ": ", (long long)webp,
                 webp == 1 ? "file is" : "files are");
}

/* ---- all of it
 * -----------------------------------------------------------------------------------
 */

static keel_status check_options(const keel_dataset_options *o, const char *path)
{
    const bool given = o->labels || o->labels_path;
    if (o->label_count < 0 || o->folder_count < 0 || o->folder_count > CLASSES_MAX ||
        (o->labels && o->labels_path) || (o->folder_count && !o->folders))
        return keel_fail(KEEL_EARG, "%s: dataset options: labels or folders are not valid", path);
    if (given && o->folder_count)
        return keel_fail(KEEL_EARG,
                         "%s: class names choose folders; with labels given they have no meaning",
                         path);
    if (o->label_mode == KEEL_LABEL_NONE && o->folder_count)
        return keel_fail(KEEL_EARG, "%s: without labels, class names have no meaning", path);
    if (o->audio_length < 0 || o->sampling_rate < 0 || o->max_length < 0)
        return keel_fail(
            KEEL_EARG, "%s: audio_length, sampling_rate and max_length must not be negative", path);
    return KEEL_OK;
}

static keel_status check_found(const keel_folder *f, const keel_dataset_options *o,
                               const char *path)
{
    char endings[64];
    const char *what = keel_file_what(f->kind);
    const bool folders = f->label_mode != KEEL_LABEL_NONE && !o->labels && !o->labels_path;
    keel_file_endings(f->kind, endings);
    if (!folders && !f->count)
        return keel_fail(KEEL_EDATA, "%s: has no %s (%s)", path, what, endings);
    if (!folders) return KEEL_OK;
    if (!f->n_classes)
        return keel_fail(KEEL_EDATA,
                         "%s: has no folders; put the %s of each class into a folder of its own, "
                         "or give labels (--labels FILE)",
                         path, what);
    if (!f->count)
        return keel_fail(KEEL_EDATA, "%s: has no %s (%s) in its %lld folders", path, what, endings,
                         (long long)f->n_classes);
    if (o->class_count && f->n_classes > o->class_count)
        return keel_fail(KEEL_EDATA, "%s: %lld folders for %lld classes", path,
                         (long long)f->n_classes, (long long)o->class_count);
    if (f->label_mode == KEEL_LABEL_BINARY && f->n_classes != 2)
        return keel_fail(KEEL_EDATA, "%s: binary labels need two folders, but there are %lld", path,
                         (long long)f->n_classes);
    return KEEL_OK;
}

/* Once they have their labels. */
static keel_status leave_out(keel_folder *f, const char *path, const char *list)
{
    keel_skip_list l;
    int64_t kept = 0;
    const int64_t n = f->count;
    KEEL_TRY(keel_skip_list_load(&l, list));
    for (int64_t i = 0; i < n; i++) {
        if (!keel_skip_list_has(&l, f->at[i].path, -1))
            f->at[kept++] = f->at[i];
        else
            keel_free(f->at[i].path);
    }
    f->count = kept;
    const size_t at = strlen(f->note);
    if (at) snprintf(f->note + at, sizeof f->note - at, "; ");
    keel_skip_list_note(&l, list, path, n - kept, n, f->note + strlen(f->note),
                        sizeof f->note - strlen(f->note));
    keel_skip_list_free(&l);
    if (kept) return KEEL_OK;
    return keel_fail(KEEL_EDATA, "%s: the skip list %s leaves no file", path, list);
}

keel_status keel_folder_read(keel_folder *f, const char *path, keel_file_kind kind,
                             const keel_dataset_options *o)
{
    const bool given = o->labels || o->labels_path;
    KEEL_TRY(check_options(o, path));
    f->label_mode = o->label_mode;
    KEEL_TRY(o->label_mode == KEEL_LABEL_NONE || given
                 ? keel_folder_walk(f, path, kind, o->follow_links, 0)
                 : walk_classes(f, path, kind, o));
    KEEL_TRY(decide_kind(f, path, kind));
    KEEL_TRY(check_found(f, o, path));
    write_note(f, path);
    keel_folder_sort(f);
    if (given && o->label_mode != KEEL_LABEL_NONE) KEEL_TRY(keel_folder_take_labels(f, path, o));
    if (o->skip_list) KEEL_TRY(leave_out(f, path, o->skip_list));
    f->y =
        (keel_data_field){ .path = "y",
                           .dtype = f->label_mode == KEEL_LABEL_INT ? KEEL_INT32 : KEEL_FLOAT32 };
    if (f->label_mode == KEEL_LABEL_CATEGORICAL)
        f->y.shape = KEEL_SHAPE(o->class_count ? o->class_count : f->n_classes);
    if (f->label_mode == KEEL_LABEL_BINARY) f->y.shape = KEEL_SHAPE(1);
    return KEEL_OK;
}

void keel_folder_free(keel_folder *f)
{
    for (int64_t i = 0; i < f->count; i++) keel_free(f->at[i].path);
    keel_free(f->at);
    drop_classes(f);
    keel_free(f->class_names);
}

keel_status keel_folder_write_label(const keel_folder *f, int64_t index, const keel_row *row)
{
    if (f->label_mode == KEEL_LABEL_NONE || !row->at[1]) return KEEL_OK;
    void *y = row->at[1];
    const keel_dtype want = row->want[1];
    const int32_t label = f->at[index].label;
    const float one = 1;
    const float number = (float)label; /* exact: there are fewer than 2^24 classes */
    if (f->label_mode == KEEL_LABEL_INT) return keel_field_write(y, want, &label, &f->y, 1);
    if (f->label_mode == KEEL_LABEL_BINARY) return keel_field_write(y, want, &number, &f->y, 1);
    const size_t size = keel_dtype_size(want);
    memset(y, 0, (size_t)f->y.shape.dim[0] * size); /* zero bytes are 0 in every type */
    return keel_field_write((char *)y + (size_t)label * size, want, &one, &f->y, 1);
}

const char *keel_folder_row_name(const void *state, int64_t index)
{
    return ((const keel_folder *)state)->at[index].path;
}

void keel_folder_soon(const void *state, int64_t index)
{
    keel_file_soon(((const keel_folder *)state)->at[index].path);
}

static const keel_folder_reader *const readers[] = {
    [KEEL_FILE_IMAGE] = &keel_images_reader,
    [KEEL_FILE_AUDIO] = &keel_sounds_reader,
    [KEEL_FILE_TEXT] = &keel_texts_reader,
};

/* x, y and the classes. */
static void describe(keel_folder *f, keel_data_spec *spec)
{
    *spec = (keel_data_spec){
        .rows = f->count, .yields = -1, .n_classes = f->n_classes, .class_names = f->class_names
    };
    f->class_names = NULL;
    f->n_classes = 0;
    f->x.path = "x";
    keel_spec_add_xy(spec, &f->x, f->label_mode == KEEL_LABEL_NONE ? NULL : &f->y, false);
}

/* Takes over what is in *f, on failure too. */
static keel_status open_listed(keel_dataset **out, keel_folder *f, const char *path,
                               const keel_dataset_options *o)
{
    const keel_folder_reader *r = readers[f->kind];
    keel_data_spec spec;
    keel_folder *state = keel_calloc(1, r->size);
    if (!state) {
        keel_folder_free(f);
        return KEEL_ENOMEM;
    }
    *state = *f;
    const keel_status s = r->begin(state, path, o);
    if (s < 0) {
        r->source->close(state);
        return s;
    }
    describe(state, &spec);
    return keel_dataset_create(out, r->source, state, &spec, path);
}

keel_status keel_folder_open(keel_dataset **out, const char *path, keel_file_kind kind,
                             const keel_dataset_options *options)
{
    keel_dataset_options o;
    keel_dataset *d = NULL;
    keel_folder f = { 0 };
    if (!out || !path) return keel_fail(KEEL_EARG, "directory: out and path must not be NULL");
    KEEL_TRY(keel_dataset_options_read(&o, options));
    keel_status s = keel_folder_read(&f, path, kind, &o);
    if (s < 0) {
        keel_folder_free(&f);
        return s;
    }
    s = open_listed(&d, &f, path, &o);
    if (s >= 0) s = keel_dataset_take_subset(&d, &o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

keel_status keel_folder_open_said(keel_dataset **out, const char *spec,
                                  const keel_dataset_options *o)
{
    const char *path;
    const keel_file_kind kind = keel_folder_kind(spec, &path);
    return keel_folder_open(out, path, kind, o);
}

/* ---- the note
 * ------------------------------------------------------------------------------------
 */

const char *keel_dataset_note(const keel_dataset *d)
{
    while (d->origin->applied) d = d->origin->applied->parent[0];
    const keel_folder *f = d->origin->state;
    bool lists = false;
    for (int k = 0; k < KEEL_FILE_KINDS; k++) lists |= d->origin->source == readers[k]->source;
    return lists && f->note[0] ? f->note : d->origin->note;
}
