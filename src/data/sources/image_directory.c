/* A directory with one folder of images per class, or without labels all images in it, as
 * keras.utils.image_dataset_from_directory: the same classes, order of files and pixels. A file is
 * read with its row; truncated files are found when the directory is opened, by their last bytes.
 *
 * Pixels stay bytes if that is exact: all images have the size of the rows, by their first bytes,
 * or resizing takes the nearest pixel. Otherwise they are float32, as always in Keras. */
#include "base/memory.h"
#include "data/file_list.h"
#include "data/labels.h"
#include "data/resize.h"
#include "io/file.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 32, CLASSES_MAX = 1000000, FILE_MAX = 1 << 29 };

typedef struct photo {
    char *path;
    size_t folder; /* length of the path before its last '/' */
    int32_t label;
} photo;

typedef struct image_list {
    photo *at;
    int64_t count, room;
    char **class_names;
    int64_t n_classes, class_room;
    keel_dataset_options o;
    keel_data_field field[2]; /* x and y */
    int channels;
} image_list;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The order of Keras: folders sorted by path, then the files in each. */
static int by_folder_then_name(const void *a, const void *b)
{
    const photo *p = a, *q = b;
    if (p->label != q->label) return p->label < q->label ? -1 : 1;
    const size_t n = p->folder < q->folder ? p->folder : q->folder;
    const int order = memcmp(p->path, q->path, n);
    if (order || p->folder != q->folder) return order ? order : p->folder < q->folder ? -1 : 1;
    return strcmp(p->path + n, q->path + n);
}

static bool is_image(const char *name)
{
    static const char *const endings[] = { ".jpg", ".jpeg", ".png" };
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t m = strlen(endings[i]);
        if (n >= m && !strcasecmp(name + n - m, endings[i])) return true;
    }
    return false;
}

static char *join(const char *folder, const char *name)
{
    const size_t a = strlen(folder), b = strlen(name);
    char *path = keel_calloc(a + b + 2, 1);
    if (!path) return NULL;
    memcpy(path, folder, a);
    path[a] = '/';
    memcpy(path + a + 1, name, b);
    return path;
}

static keel_status add_photo(image_list *p, char *path, int32_t label)
{
    if (p->count == p->room) {
        const int64_t room = p->room ? 2 * p->room : 256;
        photo *at = keel_grow(p->at, (size_t)room, sizeof *at);
        if (!at) return KEEL_ENOMEM;
        p->at = at;
        p->room = room;
    }
    p->at[p->count++] = (photo){ path, (size_t)(strrchr(path, '/') - path), label };
    return KEEL_OK;
}

static keel_status add_class(image_list *p, const char *name)
{
    if (p->n_classes == CLASSES_MAX)
        return keel_fail(KEEL_EDATA, "more than %d folders of classes", CLASSES_MAX);
    if (p->n_classes == p->class_room) {
        const int64_t room = p->class_room ? 2 * p->class_room : 16;
        char **names = keel_grow(p->class_names, (size_t)room, sizeof *names);
        if (!names) return KEEL_ENOMEM;
        p->class_names = names;
        p->class_room = room;
    }
    if (!(p->class_names[p->n_classes] = keel_strdup(name))) return KEEL_ENOMEM;
    p->n_classes++;
    return KEEL_OK;
}

/* Collect the images in a folder and below; links to folders are not followed, so it ends. */
static keel_status walk(image_list *p, const char *folder, int32_t label, int depth)
{
    keel_status s = KEEL_OK;
    DIR *d = opendir(folder);
    if (!d) return keel_fail(KEEL_EIO, "%s: %s", folder, strerror(errno));
    struct dirent *e;
    while (s >= 0 && (errno = 0, e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        char *path = join(folder, e->d_name);
        struct stat st;
        if (!path) {
            s = KEEL_ENOMEM;
            break;
        }
        if (!lstat(path, &st) && S_ISDIR(st.st_mode)) {
            s = depth < DEPTH_MAX ? walk(p, path, label, depth + 1)
                                  : keel_fail(KEEL_EDATA, "%s: folders are nested deeper than %d",
                                              path, DEPTH_MAX);
        } else if (is_image(e->d_name) && !stat(path, &st) && !S_ISDIR(st.st_mode)) {
            s = add_photo(p, path, label);
            if (s >= 0) path = NULL;
        }
        keel_free(path);
    }
    if (s >= 0 && !e && errno) s = keel_fail(KEEL_EIO, "%s: %s", folder, strerror(errno));
    closedir(d);
    return s;
}

static keel_status find_classes(image_list *p, const char *root)
{
    keel_status s = KEEL_OK;
    DIR *d = opendir(root);
    if (!d) return keel_fail(KEEL_EIO, "%s: %s", root, strerror(errno));
    struct dirent *e;
    while (s >= 0 && (errno = 0, e = readdir(d))) {
        struct stat st;
        if (e->d_name[0] == '.') continue;
        char *path = join(root, e->d_name);
        if (!path)
            s = KEEL_ENOMEM;
        else if (!stat(path, &st) && S_ISDIR(st.st_mode))
            s = add_class(p, e->d_name);
        keel_free(path);
    }
    if (s >= 0 && errno) s = keel_fail(KEEL_EIO, "%s: %s", root, strerror(errno));
    closedir(d);
    if (s >= 0 && p->n_classes)
        qsort(p->class_names, (size_t)p->n_classes, sizeof *p->class_names, by_name);
    return s;
}

/* Number the folders by the class names that a model knows. */
static keel_status take_class_names(image_list *p, int32_t *number, const char *root)
{
    const keel_dataset_options *o = &p->o;
    for (int64_t i = 0; i < p->n_classes; i++) {
        int64_t k = 0;
        while (k < o->class_name_count && strcmp(o->class_names[k], p->class_names[i])) k++;
        if (k == o->class_name_count)
            return keel_classes_fail_unknown(o->class_names, o->class_name_count, p->class_names[i],
                                             root);
        number[i] = (int32_t)k;
    }
    for (int64_t i = 0; i < p->n_classes; i++) keel_free(p->class_names[i]);
    p->n_classes = 0;
    for (int64_t i = 0; i < o->class_name_count; i++) KEEL_TRY(add_class(p, o->class_names[i]));
    return KEEL_OK;
}

/* Collect the images of all folders with the number of their class. */
static keel_status walk_classes(image_list *p, const char *root)
{
    keel_status s = find_classes(p, root);
    const int64_t n = p->n_classes;
    keel_classes folder = { keel_calloc((size_t)n + 1, sizeof *folder.name), n };
    int32_t *number = keel_calloc((size_t)n + 1, sizeof *number);
    if (s >= 0 && (!folder.name || !number)) s = KEEL_ENOMEM;
    for (int64_t i = 0; s >= 0 && i < n; i++) {
        number[i] = (int32_t)i;
        if (!(folder.name[i] = join(root, p->class_names[i]))) s = KEEL_ENOMEM;
    }
    if (s >= 0 && p->o.class_name_count && n) s = take_class_names(p, number, root);
    for (int64_t i = 0; s >= 0 && i < n; i++) s = walk(p, folder.name[i], number[i], 0);
    if (folder.name) keel_classes_free(&folder);
    keel_free(number);
    return s;
}

static void close_photos(void *state)
{
    image_list *p = state;
    for (int64_t i = 0; i < p->count; i++) keel_free(p->at[i].path);
    keel_free(p->at);
    keel_free(p);
}

/* Read the whole file into scratch buffer 0. */
static keel_status read_file(const char *path, keel_scratch *scratch, size_t *n_bytes)
{
    keel_status s = KEEL_OK;
    keel_file f;
    void *data = NULL;
    KEEL_TRY(keel_file_open(&f, path));
    if (f.n_bytes > FILE_MAX)
        s = keel_fail(KEEL_EFORMAT, "%s: a file of %zu bytes is too large for an image", path,
                      f.n_bytes);
    else if (!(data = keel_scratch_reserve(scratch, 0, f.n_bytes + 1)))
        s = KEEL_ENOMEM;
    if (s >= 0) s = keel_file_read_at(&f, 0, data, f.n_bytes);
    *n_bytes = f.n_bytes;
    keel_file_close(&f);
    return s;
}

/* True if the file ends as a complete JPEG or PNG does. Bytes after the image make this false too,
 * so false is only a reason to decode the file. */
static bool ends_whole(const char *path)
{
    unsigned char tail[12];
    keel_file f;
    if (keel_file_open(&f, path) < 0) return false;
    const bool read = f.n_bytes > sizeof tail &&
                      keel_file_read_at(&f, f.n_bytes - sizeof tail, tail, sizeof tail) >= 0;
    keel_file_close(&f);
    return read && ((tail[10] == 0xff && tail[11] == 0xd9) || !memcmp(tail + 4, "IEND", 4));
}

static keel_status decode(const image_list *p, const char *path, keel_image *image,
                          keel_scratch *scratch)
{
    size_t n = 0;
    KEEL_TRY(read_file(path, scratch, &n));
    const keel_status s =
        keel_image_decode(image, scratch->at[0], n, p->channels, scratch, 1, path);
    if (s == KEEL_EFORMAT || s == KEEL_EUNSUP)
        return keel_fail_within(s, "an image cannot be read");
    return s;
}

/* True if the image has the size of the rows; false also if its first bytes do not show a size. */
static keel_status has_row_size(bool *out, const image_list *p, const char *path,
                                keel_scratch *scratch)
{
    static const size_t heads[] = { 4 << 10, 256 << 10 }; /* bytes; mostly the first is enough */
    int64_t height = 0, width = 0;
    keel_file f;
    bool told = false, whole = false;
    keel_status s = KEEL_OK;
    *out = false;
    if (keel_file_open(&f, path) < 0) return KEEL_OK; /* reading its row will report the error */
    for (size_t i = 0; !told && !whole && i < sizeof heads / sizeof *heads; i++) {
        const size_t n = f.n_bytes < heads[i] ? f.n_bytes : heads[i];
        void *head = keel_scratch_reserve(scratch, 0, n + 1);
        if (!head) s = KEEL_ENOMEM;
        if (!head || keel_file_read_at(&f, 0, head, n) < 0) break;
        told = keel_image_size(head, n, &height, &width);
        whole = n == f.n_bytes;
    }
    keel_file_close(&f);
    *out = told && height == p->o.height && width == p->o.width;
    return s;
}

static keel_status choose_type(image_list *p)
{
    keel_scratch scratch = { 0 };
    keel_status s = KEEL_OK;
    bool exact = true;
    for (int64_t i = 0; s >= 0 && exact && i < p->count && p->o.interpolation != KEEL_NEAREST; i++)
        s = has_row_size(&exact, p, p->at[i].path, &scratch);
    p->field[0].dtype = exact ? KEEL_UINT8 : KEEL_FLOAT32;
    keel_scratch_free(&scratch);
    return s;
}

/* Find truncated files before step 1. */
static keel_status check_files(const image_list *p)
{
    enum { DECODED_MOST = 256 }; /* at most so many files with an unusual end are decoded */
    keel_scratch scratch = { 0 };
    keel_status s = KEEL_OK;
    int decoded = 0;
    for (int64_t i = 0; s >= 0 && i < p->count && decoded < DECODED_MOST; i++) {
        keel_image image;
        if (ends_whole(p->at[i].path)) continue;
        decoded++;
        s = decode(p, p->at[i].path, &image, &scratch);
    }
    keel_scratch_free(&scratch);
    return s;
}

static keel_status write_label(const image_list *p, int32_t label, void *y, keel_dtype want)
{
    const keel_data_field *f = &p->field[1];
    const float one = 1;
    const float number = (float)label; /* exact: there are fewer than 2^24 classes */
    if (p->o.label_mode == KEEL_LABEL_INT) return keel_field_write(y, want, &label, f, 1);
    if (p->o.label_mode == KEEL_LABEL_BINARY) return keel_field_write(y, want, &number, f, 1);
    const size_t size = keel_dtype_size(want);
    memset(y, 0, (size_t)f->shape.dim[0] * size); /* zero bytes are 0 in every type */
    return keel_field_write((char *)y + (size_t)label * size, want, &one, f, 1);
}

static int64_t pixel_values(const image_list *p)
{
    return p->o.height * p->o.width * p->channels;
}

static keel_status write_bytes(const image_list *p, const char *path, const keel_image *image,
                               void *x, keel_dtype want, keel_scratch *scratch)
{
    const int64_t h = p->o.height, w = p->o.width;
    const unsigned char *pixels = image->pixels;
    if (image->height != h || image->width != w) {
        if (p->o.interpolation != KEEL_NEAREST)
            return keel_fail(KEEL_EDATA,
                             "%s: %lld x %lld pixels, but %lld x %lld when the directory was "
                             "opened; open it again",
                             path, (long long)image->height, (long long)image->width, (long long)h,
                             (long long)w);
        unsigned char *resized =
            want == KEEL_UINT8 ? x : keel_scratch_reserve(scratch, 2, (size_t)pixel_values(p));
        if (!resized) return KEEL_ENOMEM;
        keel_resize_nearest(image, resized, h, w);
        if (resized == x) return KEEL_OK;
        pixels = resized;
    }
    return keel_field_write(x, want, pixels, &p->field[0], pixel_values(p));
}

static keel_status write_floats(const image_list *p, const keel_image *image, void *x,
                                keel_dtype want, keel_scratch *scratch)
{
    const int64_t h = p->o.height, w = p->o.width;
    if (want == KEEL_FLOAT32) return keel_resize(image, x, h, w, scratch, 2);
    float *resized = keel_scratch_reserve(scratch, 3, (size_t)pixel_values(p) * sizeof *resized);
    if (!resized) return KEEL_ENOMEM;
    KEEL_TRY(keel_resize(image, resized, h, w, scratch, 2));
    return keel_field_write(x, want, resized, &p->field[0], pixel_values(p));
}

static keel_status read_row(const void *state, int64_t index, const keel_row *row,
                            keel_scratch *scratch)
{
    const image_list *p = state;
    const photo *f = &p->at[index];
    keel_image image;
    if (p->o.label_mode != KEEL_LABEL_NONE && row->at[1])
        KEEL_TRY(write_label(p, f->label, row->at[1], row->want[1]));
    if (!row->at[0]) return KEEL_OK;
    KEEL_TRY(decode(p, f->path, &image, scratch));
    return p->field[0].dtype == KEEL_UINT8
               ? write_bytes(p, f->path, &image, row->at[0], row->want[0], scratch)
               : write_floats(p, &image, row->at[0], row->want[0], scratch);
}

static const char *row_name(const void *state, int64_t index)
{
    return ((const image_list *)state)->at[index].path;
}

static bool claims(const char *spec)
{
    struct stat st;
    return !stat(spec, &st) && S_ISDIR(st.st_mode) && !keel_file_list_is_texts(spec);
}

static keel_status open_directory(keel_dataset **out, const char *path,
                                  const keel_dataset_options *o)
{
    return keel_dataset_from_image_directory(out, path, o);
}

const keel_source keel_source_image_directory = {
    .name = "image_directory",
    .help = "a directory that has one folder of images (jpg, png) for each class",
    .shuffled_split = true,
    .claims = claims,
    .open = open_directory,
    .read = read_row,
    .row_name = row_name,
    .close = close_photos,
};

static keel_status check_options(const keel_dataset_options *o, const char *path)
{
    if (!o->height || !o->width)
        return keel_fail(KEEL_EARG, "%s: give the height and width that images are resized to",
                         path);
    if (o->height > KEEL_IMAGE_SIDE_MAX || o->width > KEEL_IMAGE_SIDE_MAX)
        return keel_fail(KEEL_EARG, "%s: images can be resized to at most %d pixels a side", path,
                         KEEL_IMAGE_SIDE_MAX);
    return KEEL_OK;
}

static keel_status check_found(const image_list *p, const char *path)
{
    if (p->o.label_mode == KEEL_LABEL_NONE && !p->count)
        return keel_fail(KEEL_EDATA, "%s: has no images (jpg, jpeg, png)", path);
    if (p->o.label_mode == KEEL_LABEL_NONE) return KEEL_OK;
    if (!p->n_classes)
        return keel_fail(KEEL_EDATA,
                         "%s: has no folders; put the images of each class into a folder of its "
                         "own",
                         path);
    if (!p->count)
        return keel_fail(KEEL_EDATA, "%s: has no images (jpg, jpeg, png) in its %lld folders", path,
                         (long long)p->n_classes);
    if (p->o.class_count && p->n_classes > p->o.class_count)
        return keel_fail(KEEL_EDATA, "%s: %lld folders for %lld classes", path,
                         (long long)p->n_classes, (long long)p->o.class_count);
    if (p->o.label_mode == KEEL_LABEL_BINARY && p->n_classes != 2)
        return keel_fail(KEEL_EDATA, "%s: binary labels need two folders, but there are %lld", path,
                         (long long)p->n_classes);
    return KEEL_OK;
}

keel_status keel_dataset_from_image_directory(keel_dataset **out, const char *path,
                                              const keel_dataset_options *options)
{
    keel_dataset_options o;
    keel_status s;
    if (!out || !path)
        return keel_fail(KEEL_EARG, "image directory: out and path must not be NULL");
    KEEL_TRY(keel_dataset_options_read(&o, options));
    KEEL_TRY(check_options(&o, path));
    image_list *p = keel_calloc(1, sizeof *p);
    if (!p) return KEEL_ENOMEM;
    p->o = o;
    p->channels = o.color_mode == KEEL_COLOR_GRAYSCALE ? 1 : 3;
    s = o.label_mode == KEEL_LABEL_NONE ? walk(p, path, 0, 0) : walk_classes(p, path);
    if (s >= 0) s = check_found(p, path);
    if (s >= 0) s = check_files(p);
    if (s >= 0) s = choose_type(p);
    keel_data_spec spec = {
        .rows = p->count, .yields = -1, .n_classes = p->n_classes, .class_names = p->class_names
    };
    p->field[0].shape = KEEL_SHAPE(o.height, o.width, p->channels);
    p->field[1].dtype = o.label_mode == KEEL_LABEL_INT ? KEEL_INT32 : KEEL_FLOAT32;
    if (o.label_mode == KEEL_LABEL_CATEGORICAL)
        p->field[1].shape = KEEL_SHAPE(o.class_count ? o.class_count : p->n_classes);
    if (o.label_mode == KEEL_LABEL_BINARY) p->field[1].shape = KEEL_SHAPE(1);
    keel_spec_add_xy(&spec, &p->field[0], o.label_mode == KEEL_LABEL_NONE ? NULL : &p->field[1],
                     false);
    p->field[0].path = "x";
    p->field[1].path = "y";
    if (s < 0) {
        for (int64_t i = 0; i < p->n_classes; i++) keel_free(p->class_names[i]);
        keel_free(p->class_names);
        close_photos(p);
        return s;
    }
    qsort(p->at, (size_t)p->count, sizeof *p->at, by_folder_then_name);
    keel_dataset *d;
    KEEL_TRY(keel_dataset_create(&d, &keel_source_image_directory, p, &spec, path));
    if ((s = keel_dataset_take_subset(&d, &o)) < 0) {
        keel_dataset_destroy(d);
        return s;
    }
    *out = d;
    return KEEL_OK;
}
