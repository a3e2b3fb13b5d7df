/* A directory with one folder of images per class, or without labels all images in it, as
 * keras.utils.image_dataset_from_directory: the same classes, order of files and pixels. A file is
 * read with its row; truncated files are found when the directory is opened, by their ends.
 *
 * Pixels stay bytes if that is exact: all images have the size of the rows, by their first bytes,
 * or resizing takes the nearest pixel. Otherwise they are float32, as always in Keras. */
#include "base/memory.h"
#include "data/folders.h"
#include "data/resample.h"
#include "io/file.h"
#include "tensor/shape.h"
#include <sys/stat.h>

enum { FILE_MAX = 1 << 29 };

typedef struct images {
    keel_folder f; /* first, for keel_dataset_note */
    keel_resample to;
    int channels;
} images;

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

/* True if the file ends as a complete image does, so that false is only a reason to decode it. */
static bool ends_whole(const char *path)
{
    unsigned char head[KEEL_IMAGE_HEAD], tail[KEEL_IMAGE_TAIL];
    keel_file f;
    if (keel_file_open(&f, path) < 0) return false;
    const bool read = f.n_bytes > sizeof head && keel_file_read_at(&f, 0, head, sizeof head) >= 0 &&
                      keel_file_read_at(&f, f.n_bytes - sizeof tail, tail, sizeof tail) >= 0;
    keel_file_close(&f);
    return read && keel_image_ends(head, tail, f.n_bytes);
}

static keel_status decode(const images *p, const char *path, keel_image *image,
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

/* True if the pixels of the row are whole numbers; false also if the first bytes of the file do not
 * show a size. */
static keel_status keeps_bytes(bool *out, const images *p, const char *path, keel_scratch *scratch)
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
    *out = told && keel_resample_keeps_bytes(&p->to, height, width);
    return s;
}

static keel_status choose_type(images *p)
{
    keel_scratch scratch = { 0 };
    keel_status s = KEEL_OK;
    bool exact = p->to.method != KEEL_GAUSSIAN && p->to.method != KEEL_MITCHELLCUBIC;
    for (int64_t i = 0; s >= 0 && exact && i < p->f.count && p->to.method != KEEL_NEAREST; i++)
        s = keeps_bytes(&exact, p, p->f.at[i].path, &scratch);
    p->f.x.dtype = exact ? KEEL_UINT8 : KEEL_FLOAT32;
    keel_scratch_free(&scratch);
    return s;
}

/* Find truncated files before step 1. */
static keel_status check_files(const images *p)
{
    enum { DECODED_MOST = 256 }; /* at most so many files with an unusual end are decoded */
    keel_scratch scratch = { 0 };
    keel_status s = KEEL_OK;
    int decoded = 0;
    for (int64_t i = 0; s >= 0 && i < p->f.count && decoded < DECODED_MOST; i++) {
        keel_image image;
        if (ends_whole(p->f.at[i].path)) continue;
        decoded++;
        s = decode(p, p->f.at[i].path, &image, &scratch);
    }
    keel_scratch_free(&scratch);
    return s;
}

static keel_status write_pixels(const images *p, const char *path, keel_image *image, void *x,
                                keel_dtype want, keel_scratch *scratch)
{
    const keel_data_field *f = &p->f.x;
    const bool bytes = f->dtype == KEEL_UINT8;
    const size_t count = (size_t)keel_shape_count(&f->shape);
    keel_status s = KEEL_OK;
    if (bytes && !keel_resample_keeps_bytes(&p->to, image->height, image->width))
        return keel_fail(KEEL_EDATA,
                         "%s: %lld x %lld pixels, but %lld x %lld when the directory was "
                         "opened; open it again",
                         path, (long long)image->height, (long long)image->width,
                         (long long)p->to.height, (long long)p->to.width);
    void *to = want == f->dtype ? x : keel_scratch_reserve(scratch, 3, count * sizeof(float));
    if (!to) return KEEL_ENOMEM;
    s = bytes ? keel_resample_bytes(&p->to, image, to)
              : keel_resample_floats(&p->to, image, to, scratch, 2);
    if (s == KEEL_EDATA) s = keel_fail_within(s, "%s", path);
    if (s < 0 || to == x) return s;
    return keel_field_write(x, want, to, f, (int64_t)count);
}

static keel_status read_row(const void *state, int64_t index, const keel_row *row,
                            keel_scratch *scratch)
{
    const images *p = state;
    const char *path = p->f.at[index].path;
    keel_image image;
    if (p->f.label_mode != KEEL_LABEL_NONE && row->at[1])
        KEEL_TRY(keel_folder_write_label(&p->f, index, row->at[1], row->want[1]));
    if (!row->at[0]) return KEEL_OK;
    KEEL_TRY(decode(p, path, &image, scratch));
    return write_pixels(p, path, &image, row->at[0], row->want[0], scratch);
}

static const char *row_name(const void *state, int64_t index)
{
    return ((const images *)state)->f.at[index].path;
}

static void close_images(void *state)
{
    keel_folder_free(&((images *)state)->f);
    keel_free(state);
}

/* A folder without "audio:" or "text:" is opened here, whatever its files are. */
static bool claims(const char *spec)
{
    const char *path;
    struct stat st;
    const keel_file_kind kind = keel_folder_kind(spec, &path);
    return kind == KEEL_FILE_IMAGE || (!stat(spec, &st) && S_ISDIR(st.st_mode));
}

static keel_status open_directory(keel_dataset **out, const char *spec,
                                  const keel_dataset_options *o)
{
    const char *path;
    struct stat st;
    const keel_file_kind kind = keel_folder_kind(spec, &path);
    if (!stat(spec, &st)) return keel_folder_open(out, spec, KEEL_FILE_KINDS, o);
    return keel_folder_open(out, path, kind, o);
}

const keel_source keel_source_image_directory = {
    .name = "image_directory",
    .help = "a directory that has one folder of images (" KEEL_IMAGE_KINDS ") for each class",
    .shuffled_split = true,
    .claims = claims,
    .open = open_directory,
    .read = read_row,
    .row_name = row_name,
    .close = close_images,
};

static keel_status check_options(const keel_dataset_options *o, const char *path)
{
    if (!o->height || !o->width)
        return keel_fail(KEEL_EARG, "%s: give the height and width that images are resized to",
                         path);
    if (o->height > KEEL_IMAGE_SIDE_MAX || o->width > KEEL_IMAGE_SIDE_MAX)
        return keel_fail(KEEL_EARG, "%s: images can be resized to at most %d pixels a side", path,
                         KEEL_IMAGE_SIDE_MAX);
    if (o->crop_to_aspect_ratio && o->pad_to_aspect_ratio)
        return keel_fail(KEEL_EARG,
                         "%s: crop_to_aspect_ratio and pad_to_aspect_ratio: only one of "
                         "them can be used",
                         path);
    if (o->crop_to_aspect_ratio &&
        (o->interpolation == KEEL_GAUSSIAN || o->interpolation == KEEL_MITCHELLCUBIC))
        return keel_fail(
            KEEL_EUNSUP,
            "%s: crop_to_aspect_ratio does not go with the interpolations gaussian and "
            "mitchellcubic, as in Keras",
            path);
    return KEEL_OK;
}

keel_status keel_images_open(keel_dataset **out, keel_folder *f, const char *path,
                             const keel_dataset_options *o)
{
    keel_data_spec spec;
    images *p = NULL;
    keel_status s = check_options(o, path);
    if (s >= 0 && !(p = keel_calloc(1, sizeof *p))) s = KEEL_ENOMEM;
    if (s < 0) {
        keel_folder_free(f);
        keel_free(f);
        return s;
    }
    p->f = *f;
    keel_free(f);
    p->to = (keel_resample){ o->height, o->width, o->interpolation, o->crop_to_aspect_ratio,
                             o->pad_to_aspect_ratio };
    p->channels = o->color_mode == KEEL_COLOR_GRAYSCALE ? 1
                  : o->color_mode == KEEL_COLOR_RGBA    ? 4
                                                        : 3;
    p->f.x.shape = KEEL_SHAPE(o->height, o->width, p->channels);
    if ((s = check_files(p)) < 0 || (s = choose_type(p)) < 0) {
        close_images(p);
        return s;
    }
    keel_folder_describe(&p->f, &spec);
    return keel_dataset_create(out, &keel_source_image_directory, p, &spec, path);
}

keel_status keel_dataset_from_image_directory(keel_dataset **out, const char *path,
                                              const keel_dataset_options *options)
{
    keel_dataset_options o;
    if (!out || !path)
        return keel_fail(KEEL_EARG, "image directory: out and path must not be NULL");
    KEEL_TRY(keel_dataset_options_read(&o, options));
    KEEL_TRY(check_options(&o, path)); /* before the files are listed, which may take long */
    return keel_folder_open(out, path, KEEL_FILE_IMAGE, &o);
}
