/* Values of a row as people see them: images as pixels, for a PNG or for a terminal, and sound as a
 * curve. What the values are as colours is decided for all rows that are shown, so that a dark
 * image is not shown as a bright one. */
#ifndef KEEL_CLI_PICTURE_H
#define KEEL_CLI_PICTURE_H
#include <keel/keel.h>
#include <stdio.h>

/* ---- what a value is ---------------------------------------------------------------------------
 */

typedef enum keel_look {
    KEEL_LOOK_VALUES, /* numbers or texts, in a table */
    KEEL_LOOK_IMAGE,  /* (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) */
    KEEL_LOOK_SOUND   /* (frames), (frames, 1) or (frames, 2) */
} keel_look;

keel_look keel_look_at(const keel_tensor *t);

int64_t keel_value_count(const keel_tensor *t);
double keel_value(const keel_tensor *t, int64_t i); /* not of texts */

/* ---- the range of values -----------------------------------------------------------------------
 */

/* The range that is black to white, and what the values are. */
typedef struct keel_range {
    double least, most;  /* of the finite values; least > most: there is none */
    double black, white; /* 0 to 255, 0 to 1, -1 to 1, or least to most */
    int64_t not_finite;  /* values, which are shown black */
} keel_range;

#define KEEL_RANGE ((keel_range){ .least = 1, .most = -1 })
void keel_range_add(keel_range *r, const keel_tensor *t);
void keel_range_decide(keel_range *r, keel_dtype dtype);
/* "0 to 1 is black to white; values are 0.1 to 0.9". Returns out. */
const char *keel_range_text(char *out, size_t size, const keel_range *r);

/* ---- pixels ------------------------------------------------------------------------------------
 */

typedef struct keel_picture {
    unsigned char *pixel; /* [height, width, channels] */
    int64_t height, width;
    int channels; /* 1, 3 or 4 */
} keel_picture;

/* The pixels of an image, made smaller, if a side is longer than `side_max`, by means of areas.
 * False: out of memory. The caller frees pixel with free. */
bool keel_picture_make(keel_picture *out, const keel_tensor *t, const keel_range *r,
                       int64_t height_max, int64_t width_max);

/* A PNG file in memory; NULL: out of memory, or larger than a PNG can be. Freed with free. */
unsigned char *keel_picture_png(const keel_picture *p, size_t *n_bytes);

/* Pictures beside each other for a terminal of 24-bit colours, two pixels a character, with a label
 * below each. Each picture is at most 40 columns wide; as many stand beside each other as `columns`
 * has room for. */
enum { KEEL_CELLS_WIDTH = 40, KEEL_CELLS_HEIGHT = 2 * 24 };
void keel_picture_print(FILE *f, const keel_picture *p, const char *const *label, int n,
                        int columns);

#endif
