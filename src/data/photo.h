/* Writes a decoded image as a row: brought to the size of the rows, as bytes or as float32. */
#ifndef KEEL_DATA_PHOTO_H
#define KEEL_DATA_PHOTO_H
#include "data/codecs/jpeg.h"
#include "data/resample.h"

typedef struct keel_photo {
    int64_t height, width; /* of the rows */
    int channels;
    keel_interpolation interpolation;
    /* Pixels are bytes if that is exact for all images (keel_photo_keeps_bytes). Otherwise they are
     * float32, as always in Keras. */
    bool exact;
    bool crop, pad; /* to keep the aspect ratio */
    bool shrinks;   /* JPEG: by the decoder, where the image stays larger than the row */
} keel_photo;

/* The options for images; `exact` is true for the nearest pixel only. KEEL_EARG: no size, one that
 * is too large, crop and pad; KEEL_EUNSUP: a crop that Keras refuses. `what` names the data. */
keel_status keel_photo_init(keel_photo *out, const keel_dataset_options *o, const char *what);

/* The type and shape of a row. */
void keel_photo_field(const keel_photo *p, keel_data_field *out);

/* True if an image of this size gives whole numbers. */
bool keel_photo_keeps_bytes(const keel_photo *p, int64_t height, int64_t width);

static inline keel_resample keel_photo_resample(const keel_photo *p)
{
    return (keel_resample){ p->height, p->width, p->interpolation, p->crop, p->pad };
}

/* KEEL_EDATA: an image of this size must be resized, but none had to be when the data were opened;
 * `what` names it. */
keel_status keel_photo_check(const keel_photo *p, int64_t height, int64_t width, const char *what);

/* Write an image to a row of `field`. Uses scratch buffers 2 and 3. KEEL_EDATA: as
 * keel_photo_check, or it is too narrow to be padded. */
keel_status keel_photo_write(const keel_photo *p, const keel_data_field *field,
                             const keel_image *image, void *to, keel_dtype want,
                             keel_scratch *scratch, const char *what);

/* Decode an image file in memory and write it to a row of `field`. A JPEG is decoded straight into
 * the row or, if it is resized, line by line; the bits are the same. Uses scratch buffers 1 to 3;
 * `data` may be in buffer 0. Fails as keel_image_decode and keel_photo_write. */
keel_status keel_photo_read(const keel_photo *p, const keel_data_field *field, const void *data,
                            size_t n_bytes, void *to, keel_dtype want, keel_scratch *scratch,
                            const char *what);

/* The bytes that keel_photo_read takes for a file of n_bytes with this head, besides `data`: of
 * scratch, and of the decoder. False: the head does
 * not tell. What is no image, or cannot be a row, takes none. */
bool keel_photo_needs(const keel_photo *p, const void *head, size_t n_head, size_t n_bytes,
                      int64_t *out);
/* What is taken if `want` is not the type of the field. */
int64_t keel_photo_converted(const keel_photo *p);
int64_t keel_photo_jpeg_needs(const keel_photo *p, const keel_jpeg_head *head);

/* Of keel_photo_read, for a JPEG (photo_jpeg.c). KEEL_END: the row takes all of it, so it
 * was decoded to *image, in buffer 1. */
keel_status keel_photo_read_jpeg(const keel_photo *p, const keel_data_field *field,
                                 const void *data, size_t n_bytes, void *to, keel_dtype want,
                                 keel_image *image, keel_scratch *scratch, const char *what);

#endif
