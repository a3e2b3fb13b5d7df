/* A JPEG that is decoded line by line, so that its lines can be used while they are in the cache,
 * and those that nobody needs are left out. Lines have the same bytes as those of keel_jpeg_decode,
 * unless the image is shrunk. */
#ifndef KEEL_DATA_CODECS_JPEG_H
#define KEEL_DATA_CODECS_JPEG_H
#include "data/codecs/image.h"

typedef struct keel_jpeg keel_jpeg;

/* True if the bytes begin as a JPEG does. */
bool keel_jpeg_begins(const void *data, size_t n_bytes);

/* What its memory depends on. */
typedef struct keel_jpeg_head {
    int64_t height, width;
    int components, h[4], v[4]; /* sampling factors */
    bool several_scans;         /* as progressive ones: all coefficients are in memory */
    int shrunk;                 /* 1, 2, 4 or 8: keel_jpeg_shrink divides by it */
} keel_jpeg_head;

/* False: the first n_bytes of the file do not tell. */
bool keel_jpeg_look(keel_jpeg_head *out, const void *data, size_t n_bytes);
/* By how much a JPEG is shrunk to leave at least `height` and `width`. */
int keel_jpeg_shrunk(const keel_jpeg_head *h, int64_t height, int64_t width);
/* The columns that its lines have where columns [left, left + width) are asked for:
 * keel_jpeg_start. */
int64_t keel_jpeg_columns(const keel_jpeg_head *h, int64_t left, int64_t width);
/* Bytes that the decoder takes for itself: no fewer than it needs, and 20 KB more at most. */
int64_t keel_jpeg_own(const keel_jpeg_head *h);

/* The number of start-of-scan markers: each is a pass over the whole image. A scan that changes
 * nothing is a few bytes long, so a small file could ask for very many. */
int keel_jpeg_scans(const unsigned char *b, size_t n);

/* Read the head. `data` and `what`, which names the file in messages, must outlive it. channels: 1
 * or 3. a: the account that the decoder's own memory is taken from until it is closed; NULL: none.
 * KEEL_EFORMAT, KEEL_EUNSUP: as keel_image_decode; KEEL_ENOMEM. */
keel_status keel_jpeg_open(keel_jpeg **out, const void *data, size_t n_bytes, int channels,
                           keel_account *a, int64_t *height, int64_t *width, const char *what);

/* Let the decoder shrink the image to a half, a quarter or an eighth: the smallest that leaves at
 * least `height` and `width`. Values change: pixels are means. The new size is in *new_height and
 * *new_width. */
void keel_jpeg_shrink(keel_jpeg *j, int64_t height, int64_t width, int64_t *new_height,
                      int64_t *new_width);

/* Begin with the columns [*left, *left + *width). Lines may have more of them: *left and *width
 * become those that they have. */
keel_status keel_jpeg_start(keel_jpeg *j, int64_t *left, int64_t *width);

/* The next lines, `stride` bytes apart; or pass over them. At most as many as are left. */
keel_status keel_jpeg_read(keel_jpeg *j, unsigned char *to, size_t stride, int64_t lines);
keel_status keel_jpeg_skip(keel_jpeg *j, int64_t lines);

/* No further lines are needed. A file that does not end as a JPEG does is decoded to its end, so
 * that one which is cut off is refused whatever lines were read. Faults that were repaired are told
 * to the dataset whose row the thread of this scratch is reading. */
keel_status keel_jpeg_finish(keel_jpeg *j, const keel_scratch *scratch);
void keel_jpeg_close(keel_jpeg *j); /* NULL is allowed */

#endif
