/* Writes a decoded image as a row: resized to the size of the rows, as bytes or as float32. */
#ifndef KEEL_DATA_PHOTO_H
#define KEEL_DATA_PHOTO_H
#include "data/codecs/image.h"

typedef struct keel_photo {
    int64_t height, width; /* of the rows */
    int channels;
    keel_interpolation interpolation;
    /* Pixels are bytes if that is exact: all images have the size of the rows, or resizing takes
     * the nearest pixel. Otherwise they are float32, as always in Keras. */
    bool exact;
} keel_photo;

/* The options for images. KEEL_EARG: no size, or one that is too large; `what` names the data. */
keel_status keel_photo_init(keel_photo *out, const keel_dataset_options *o, const char *what);

/* The type and shape of a row. */
void keel_photo_field(const keel_photo *p, keel_data_field *out);

/* Write an image to a row of `field`. Uses scratch buffers 2 and 3. KEEL_EDATA: it must be resized,
 * but was not when the data were opened; `what` names the image. */
keel_status keel_photo_write(const keel_photo *p, const keel_data_field *field,
                             const keel_image *image, void *to, keel_dtype want,
                             keel_scratch *scratch, const char *what);

#endif
