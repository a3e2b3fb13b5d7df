/* Brings images to the size of the rows by any of Keras's interpolations, as tf.image.resize
 * without antialias: distorted, cropped (keras.utils' smart_resize) or padded
 * (tf.image.resize_with_pad). */
#ifndef KEEL_DATA_RESAMPLE_H
#define KEEL_DATA_RESAMPLE_H
#include "data/resize.h"

typedef struct keel_resample {
    int64_t height, width; /* of the result */
    keel_interpolation method;
    bool crop, pad; /* to keep the aspect ratio; at most one of them */
} keel_resample;

/* True if an image of this size gives whole numbers, 0..255, so that keel_resample_bytes serves. */
bool keel_resample_keeps_bytes(const keel_resample *r, int64_t height, int64_t width);

typedef struct keel_image_part {
    int64_t top, left, height, width;
} keel_image_part;

/* The part of an image that is resized, and where in the result it lies; around it is black.
 * KEEL_EDATA: padded, a side would have no pixel left. */
keel_status keel_resample_windows(const keel_resample *r, int64_t height, int64_t width,
                                  keel_image_part *from, keel_image_part *to);
/* Move a picture of the size of `to`, from the begin of `out`, to its place there. */
void keel_resample_spread(const keel_resample *r, const keel_image_part *to, void *out,
                          size_t pixel_bytes);

/* out [height, width, channels]. A crop moves the pixels of the image in its buffer. Uses scratch
 * buffer `buffer`. KEEL_EDATA: padded, a side would have no pixel left; KEEL_ENOMEM. */
keel_status keel_resample_floats(const keel_resample *r, keel_image *image, float *out,
                                 keel_scratch *scratch, int buffer);
keel_status keel_resample_bytes(const keel_resample *r, keel_image *image, unsigned char *out);

/* The bytes of scratch that keel_resample_floats takes for an image of this size. */
int64_t keel_resample_space(const keel_resample *r, int64_t height, int64_t width, int channels);

#endif
