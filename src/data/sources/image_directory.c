/* A directory with one folder of images per class, or without labels all images in it, as
 * keras.utils.image_dataset_from_directory: the same classes, order of files and pixels. A file is
 * read with its row; truncated files are found when the directory is opened, by their ends.
 *
 * Pixels stay bytes if that is exact: all images have the size of the rows, by their first bytes,
 * or resizing takes the nearest pixel. Otherwise they are float32, as always in Keras. */
#include "base/memory.h"
#include "data/features.h"
#include "data/file_list.h"
#include "data/folders.h"
#include "data/largest.h"
#include "data/photo.h"
#include "data/work.h"
#include "io/file.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <sys/stat.h>

enum { FILE_MAX = 1 << 29 };

typedef struct images {
    keel_folder f; /* first, for keel_dataset_note */
    keel_photo photo;
    bool unchecked;
    keel_largest *largest; /* the bytes of rows, but for their conversion */
    bool known;            /* of all rows */
} images;

/* Read the whole file into scratch buffer 0. */
static keel_status read_file(const char *path, keel_scratch *scratch, size_t *n_bytes)
{
    keel_status s = KEEL_OK;
    keel_file f;
    void *data = NULL;
    keel_probe_part(scratch->probe, KEEL_PART_FILE);
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

/* True if the file ends as a complete image does, so that false is only a reason to decode it.
 * head: its first n bytes. */
static bool ends_whole(const keel_file *f, const void *head, size_t n)
{
    unsigned char tail[KEEL_IMAGE_TAIL];
    return n >= KEEL_IMAGE_HEAD && f->n_bytes > KEEL_IMAGE_HEAD &&
           keel_file_read_at(f, f->n_bytes - sizeof tail, tail, sizeof tail) >= 0 &&
           keel_image_ends(head, tail, f->n_bytes);
}

static keel_status of_image(keel_status s)
{
    if (s == KEEL_EFORMAT || s == KEEL_EUNSUP)
        return keel_fail_within(s, "an image cannot be read");
    return s;
}

static keel_status decode(const images *p, const char *path, keel_image *image,
                          keel_scratch *scratch)
{
    size_t n = 0;
    KEEL_TRY(read_file(path, scratch, &n));
    return of_image(
        keel_image_decode(image, scratch->at[0], n, p->photo.channels, scratch, 1, path));
}

/* What is read of a file to learn of its image: mostly the first number of bytes is enough. */
static const size_t heads[] = { 4 << 10, 256 << 10, SIZE_MAX };

/* The head of number i; NULL: there is no memory, with *s set, or it cannot be read. */
static void *read_head(const keel_file *f, int i, size_t *n, keel_scratch *scratch, keel_status *s)
{
    *n = f->n_bytes < heads[i] ? f->n_bytes : heads[i];
    void *head = *n <= FILE_MAX ? keel_scratch_reserve(scratch, 0, *n + 1) : NULL;
    if (!head && *n <= FILE_MAX) *s = KEEL_ENOMEM;
    return head && keel_file_read_at(f, 0, head, *n) >= 0 ? head : NULL;
}

/* True if the pixels of the row are whole numbers; false also if the first bytes of the file do not
 * show a size, unless such files may fail with their rows. */
static keel_status keeps_bytes(bool *out, const images *p, const char *path, keel_scratch *scratch)
{
    int64_t height = 0, width = 0;
    keel_file f;
    bool told = false, whole = false;
    keel_status s = KEEL_OK;
    *out = p->unchecked;
    if (keel_file_open(&f, path) < 0) return KEEL_OK; /* reading its row will report the error */
    for (int i = 0; !told && !whole && i < 2; i++) {
        size_t n;
        const void *head = read_head(&f, i, &n, scratch, &s);
        if (!head) break;
        told = keel_image_size(head, n, &height, &width);
        whole = n == f.n_bytes;
    }
    keel_file_close(&f);
    *out = told ? keel_photo_keeps_bytes(&p->photo, height, width) : p->unchecked;
    return s;
}

static keel_status choose_type(images *p)
{
    keel_scratch scratch = { 0 };
    keel_status s = KEEL_OK;
    bool exact = true;
    for (int64_t i = 0; s >= 0 && exact && i < p->f.count && !p->photo.exact; i++)
        s = keeps_bytes(&exact, p, p->f.at[i].path, &scratch);
    p->photo.exact = exact;
    keel_photo_field(&p->photo, &p->f.x);
    keel_scratch_free(&scratch);
    return s;
}

/* Look at an open file: whether it ends as it should, and what its row takes. */
static keel_status look(images *p, const keel_file *f, int64_t number, bool *whole,
                        keel_scratch *scratch)
{
    keel_status s = KEEL_OK;
    bool told = false;
    for (int i = 0; s >= 0 && !told; i++) {
        size_t n;
        int64_t row;
        const void *head = read_head(f, i, &n, scratch, &s);
        if (!head) break;
        if (i == 0) *whole = ends_whole(f, head, n);
        told = keel_photo_needs(&p->photo, head, n, f->n_bytes, &row);
        if (told) keel_largest_note(p->largest, row + (int64_t)f->n_bytes + 1, number);
    }
    return s;
}

/* Find truncated files before step 1, and the memory that rows take. */
static keel_status check_files(images *p)
{
    enum { DECODED_MOST = 256 }; /* at most so many files with an unusual end are decoded */
    keel_scratch scratch = { 0 };
    keel_status s = KEEL_OK;
    int decoded = 0;
    for (int64_t i = 0; s >= 0 && i < p->f.count; i++) {
        keel_image image;
        keel_file f;
        bool whole = false;
        if (keel_file_open(&f, p->f.at[i].path) >= 0) {
            s = look(p, &f, i, &whole, &scratch);
            keel_file_close(&f);
        }
        if (s < 0 || whole || decoded == DECODED_MOST) continue;
        decoded++;
        s = decode(p, p->f.at[i].path, &image, &scratch);
    }
    keel_scratch_free(&scratch);
    return s;
}

static int64_t at_least(const void *state, const keel_dtype *want)
{
    const images *p = state;
    const bool converts = want && want[0] != p->f.x.dtype;
    return keel_largest_bytes(p->largest, NULL) + (converts ? keel_photo_converted(&p->photo) : 0);
}

static void largest(const void *state, char *text, size_t size)
{
    const images *p = state;
    int64_t row;
    keel_largest_bytes(p->largest, &row);
    snprintf(text, size, "%s", row < 0 ? "" : p->f.at[row].path);
}

static int64_t needs(const void *state, const keel_dtype *want)
{
    return ((const images *)state)->known ? at_least(state, want) : -1;
}

static int64_t note_row(const images *p, int64_t index, const void *data, size_t n)
{
    int64_t row;
    keel_photo_needs(&p->photo, data, n, n, &row);
    row += (int64_t)n + 1;
    keel_largest_note(p->largest, row, index);
    return row;
}

static keel_status no_room(const char *path, int64_t n_bytes)
{
    return keel_fail_within(KEEL_ENOMEM, "%s: reading it takes %lld bytes", path,
                            (long long)n_bytes);
}

static keel_status read_row(const void *state, int64_t index, const keel_row *row,
                            keel_scratch *scratch)
{
    const images *p = state;
    const char *path = p->f.at[index].path;
    size_t n = 0;
    KEEL_TRY(keel_folder_write_label(&p->f, index, row));
    if (!row->at[0]) return KEEL_OK;
    keel_status s = read_file(path, scratch, &n);
    if (s == KEEL_ENOMEM) return no_room(path, (int64_t)n + 1);
    if (s < 0) return s;
    if (!p->known) note_row(p, index, scratch->at[0], n);
    s = keel_photo_read(&p->photo, &p->f.x, scratch->at[0], n, row->at[0], row->want[0], scratch,
                        path);
    if (s == KEEL_ENOMEM) return no_room(path, note_row(p, index, scratch->at[0], n));
    return of_image(s);
}

static void close_images(void *state)
{
    keel_largest_destroy(((images *)state)->largest);
    keel_folder_free(&((images *)state)->f);
    keel_free(state);
}

/* A folder without "audio:" or "text:" is opened here, whatever its files are. */
static bool claims(const char *spec)
{
    const char *path;
    struct stat st;
    const keel_file_kind kind = keel_folder_kind(spec, &path);
    if (kind == KEEL_FILE_IMAGE) return true;
    return !stat(spec, &st) && S_ISDIR(st.st_mode) &&
           !keel_file_list_claims_shards(spec, keel_tfrecord_endings) &&
           !keel_file_list_claims_shards(spec, keel_tar_endings) && !keel_file_list_is_texts(spec);
}

static keel_status open_directory(keel_dataset **out, const char *spec,
                                  const keel_dataset_options *o)
{
    const char *path;
    struct stat st;
    const keel_file_kind kind = keel_folder_kind(spec, &path);
    KEEL_TRY(keel_feature_types_refuse(o, spec));
    if (!stat(spec, &st)) return keel_folder_open(out, spec, KEEL_FILE_KINDS, o);
    return keel_folder_open(out, path, kind, o);
}

const keel_source keel_source_image_directory = {
    .name = "image_directory",
    .help = "a directory that has one folder of images (" KEEL_IMAGE_KINDS ") for each class",
    .shuffled_split = true,
    .prefix = "images",
    .claims = claims,
    .open = open_directory,
    .read = read_row,
    .soon = keel_folder_soon,
    .needs = needs,
    .at_least = at_least,
    .largest = largest,
    .row_name = keel_folder_row_name,
    .close = close_images,
};

static keel_status begin(void *state, const char *path, const keel_dataset_options *o)
{
    images *p = state;
    KEEL_TRY(keel_photo_init(&p->photo, o, path));
    p->unchecked = o->unchecked;
    if (!(p->largest = keel_largest_create())) return KEEL_ENOMEM;
    KEEL_TRY(choose_type(p));
    p->known = !p->unchecked;
    return p->unchecked ? KEEL_OK : check_files(p);
}

const keel_folder_reader keel_images_reader = { &keel_source_image_directory, sizeof(images),
                                                begin };

keel_status keel_dataset_from_image_directory(keel_dataset **out, const char *path,
                                              const keel_dataset_options *options)
{
    keel_dataset_options o;
    keel_photo photo;
    if (!out || !path)
        return keel_fail(KEEL_EARG, "image directory: out and path must not be NULL");
    KEEL_TRY(keel_dataset_options_read(&o, options));
    KEEL_TRY(
        keel_photo_init(&photo, &o, path)); /* before the files are listed, which may take long */
    return keel_folder_open(out, path, KEEL_FILE_IMAGE, &o);
}
