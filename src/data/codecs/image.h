/* Decodes image files to 8-bit gray, RGB or RGBA, with the pixels of tf.io.decode_image.
 *
 * Where TensorFlow refuses a combination (a GIF in gray, a JPEG with alpha) Keel converts: gray has
 * the weights of TensorFlow's PNG decoder, alpha that a file lacks is 255. */
#ifndef KEEL_DATA_CODECS_IMAGE_H
#define KEEL_DATA_CODECS_IMAGE_H
#include "data/source.h"

enum { KEEL_IMAGE_SIDE_MAX = 32768 }; /* pixels; a larger image is refused */
#define KEEL_IMAGE_BYTES_MAX (INT64_C(1) << 30)
#define KEEL_IMAGE_KINDS     "jpg, jpeg, png, bmp, gif, webp"

typedef struct keel_image { /* rows of interleaved bytes, no padding; lives in a scratch buffer */
    const unsigned char *pixels;
    int64_t height, width;
    int channels; /* 1, 3 or 4, as requested */
} keel_image;

/* Decode a file in memory, of the format that its first bytes show, into scratch buffer `buffer`.
 * channels: 1, 3 or 4. `what` names the file in messages. Of an animated GIF the first frame is
 * taken. KEEL_EFORMAT: not an image, truncated or damaged; KEEL_EUNSUP: another image format. */
keel_status keel_image_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                              keel_scratch *scratch, int buffer, const char *what);

/* What the head of a file tells of the memory that decoding it takes. */
typedef struct keel_image_head {
    int64_t height, width;
    int64_t decoded; /* bytes of the buffer that all of it is decoded into */
    int64_t own;     /* bytes that the decoder takes for itself meanwhile */
} keel_image_head;

/* Look at the first n_head bytes of a file of n_bytes, to be decoded to so many channels. False:
 * they do not tell, which for a whole file means that it cannot be decoded. */
bool keel_image_look(keel_image_head *out, const void *head, size_t n_head, size_t n_bytes,
                     int channels);

/* True if the bytes begin as an image of one of the formats does. */
bool keel_image_begins(const void *data, size_t n_bytes);

/* The image size from the first bytes of a file. False: these bytes do not contain it. */
bool keel_image_size(const void *data, size_t n_bytes, int64_t *height, int64_t *width);

enum { KEEL_IMAGE_HEAD = 32, KEEL_IMAGE_TAIL = 12 };

/* True if a file of n_bytes with this head and tail ends as a complete image does. Bytes after the
 * image may make this false too, so false is only a reason to decode the file. */
bool keel_image_ends(const unsigned char head[KEEL_IMAGE_HEAD],
                     const unsigned char tail[KEEL_IMAGE_TAIL], size_t n_bytes);

/* The codecs. Each takes the channels that its comment names. */
typedef keel_status keel_image_decoder(keel_image *out, const void *data, size_t n_bytes,
                                       int channels, keel_scratch *scratch, int buffer,
                                       const char *what);
keel_status keel_jpeg_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                             keel_scratch *scratch, int buffer, const char *what); /* 1, 3 */
keel_status keel_png_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                            keel_scratch *scratch, int buffer, const char *what); /* 1, 3, 4 */
keel_image_decoder keel_bmp_decode;                                               /* 3, 4 */
keel_image_decoder keel_gif_decode;                                               /* 3, 4 */
keel_image_decoder keel_webp_decode;                                              /* 3, 4 */

/* Of decoders that take memory from nobody but the system: what they take is bounded by the head of
 * a file, and taken from the account while they work. 0: it cannot be told. */
int64_t keel_gif_own(const void *head, size_t n_head, size_t n_bytes);
int64_t keel_webp_own(const void *head, size_t n_head, size_t n_bytes);
int64_t keel_png_own(const void *head, size_t n_head, size_t n_bytes);

typedef bool keel_image_sizer(const unsigned char *data, size_t n_bytes, int64_t *height,
                              int64_t *width);
bool keel_jpeg_size(const unsigned char *data, size_t n_bytes, int64_t *height, int64_t *width);
keel_image_sizer keel_bmp_size, keel_gif_size, keel_webp_size;

/* Gray from RGB in place: 0.299 red + 0.587 green + the rest blue, as 15-bit factors. */
enum { KEEL_GRAY_RED = 9797, KEEL_GRAY_GREEN = 19234 };
void keel_image_gray(unsigned char *pixels, size_t count);

/* KEEL_EFORMAT: a side is 0 or too large, or decoding, at pixel_bytes of memory per pixel, would
 * take more than KEEL_IMAGE_BYTES_MAX. */
keel_status keel_image_check_size(int64_t height, int64_t width, int64_t pixel_bytes,
                                  const char *what);

#endif
