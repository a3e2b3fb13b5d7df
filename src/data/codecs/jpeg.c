/* JPEG by libjpeg-turbo. A file that ends early is refused; other faults, which the library
 * repairs, are warnings; TensorFlow says nothing of them.
 *
 * TensorFlow's decode_image, which Keras uses, takes the fast integer DCT and smooth chroma
 * upsampling; with them pixels are equal to its (tests/golden/make_images.py). */
#include "data/codecs/image.h"
#include "data/warnings.h"
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>
#include <setjmp.h>
#include <string.h>

enum { SCANS_MAX = 100 }; /* encoders write 1 to 20 */

typedef struct errors {
    struct jpeg_error_mgr base; /* first member: the library casts to it */
    jmp_buf back;
    char text[JMSG_LENGTH_MAX]; /* of an error, or of the first warning */
} errors;

static void give_up(j_common_ptr c)
{
    errors *e = (errors *)c->err;
    c->err->format_message(c, e->text);
    longjmp(e->back, 1);
}

static void note(j_common_ptr c, int level)
{
    const int code = c->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) give_up(c);
    if (level < 0 && !c->err->num_warnings++) c->err->format_message(c, ((errors *)c->err)->text);
}

static void say_nothing(j_common_ptr c)
{
    (void)c;
}

/* The code of the next marker from *at on, which moves past it; -1: none. Bytes between two markers
 * are skipped, as the library does. */
static int next_marker(const unsigned char *b, size_t n, size_t *at)
{
    while (*at + 1 < n) {
        const unsigned char *marker = memchr(b + *at, 0xFF, n - *at - 1);
        if (!marker) return -1;
        *at = (size_t)(marker - b) + (marker[1] == 0xFF ? 1 : 2); /* fill bytes may be repeated */
        if (marker[1] != 0 && marker[1] != 0xFF) return marker[1];
    }
    return -1;
}

static bool stands_alone(int code) /* no length follows */
{
    return code < 0xC0 || (code >= 0xD0 && code < 0xD9);
}

static void skip_segment(const unsigned char *b, size_t n, size_t *at)
{
    const size_t left = n - *at, length = left < 2 ? left : (size_t)b[*at] << 8 | b[*at + 1];
    *at += length < left ? length : left;
}

/* From the frame header, which tables and comments may precede. */
bool keel_jpeg_size(const unsigned char *b, size_t n, int64_t *height, int64_t *width)
{
    enum { TABLES = 0xC4, EXTENSION = 0xC8, CONDITIONS = 0xCC, FRAME_HEAD = 7 };
    size_t at = 2;
    int code;
    while ((code = next_marker(b, n, &at)) >= 0) {
        if (stands_alone(code)) continue;
        if (code >= 0xD9 && code <= 0xDA) return false; /* the image has begun or ended */
        if (n - at < FRAME_HEAD) return false;
        if (code >= 0xC0 && code <= 0xCF && code != TABLES && code != EXTENSION &&
            code != CONDITIONS) {
            *height = b[at + 3] << 8 | b[at + 4];
            *width = b[at + 5] << 8 | b[at + 6];
            return true;
        }
        skip_segment(b, n, &at);
    }
    return false;
}

/* The number of start-of-scan markers: each is a pass over the whole image. A scan that changes
 * nothing is a few bytes long, so a small file could ask for very many. */
static int count_scans(const unsigned char *b, size_t n)
{
    int scans = 0, code;
    size_t at = 2;
    while ((code = next_marker(b, n, &at)) >= 0 && code != 0xD9 /* the end */) {
        if (stands_alone(code)) continue;
        scans += code == 0xDA;
        skip_segment(b, n, &at);
    }
    return scans;
}

/* For several scans the library keeps all coefficients in memory, 2 bytes each. */
static int64_t coefficient_bytes(struct jpeg_decompress_struct *c)
{
    int64_t blocks = 0;
    for (int i = 0; i < c->num_components && jpeg_has_multiple_scans(c); i++)
        blocks += (int64_t)c->comp_info[i].width_in_blocks * c->comp_info[i].height_in_blocks;
    return blocks * DCTSIZE2 * (int64_t)sizeof(JCOEF);
}

keel_status keel_jpeg_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                             keel_scratch *scratch, int buffer, const char *what)
{
    struct jpeg_decompress_struct c;
    errors e;
    keel_status s = KEEL_OK;
    unsigned char *volatile pixels = NULL;
    const int scans = count_scans(data, n_bytes);
    if (scans > SCANS_MAX)
        return keel_fail(KEEL_EFORMAT, "%s: a JPEG of %d scans; at most %d are read", what, scans,
                         SCANS_MAX);
    c.err = jpeg_std_error(&e.base);
    e.base.error_exit = give_up;
    e.base.emit_message = note;
    e.base.output_message = say_nothing;
    if (setjmp(e.back)) {
        jpeg_destroy_decompress(&c);
        return keel_fail(KEEL_EFORMAT, "%s: decode JPEG: %s; replace the file or remove it", what,
                         e.text);
    }
    jpeg_create_decompress(&c);
    c.mem->max_memory_to_use = 1L << 30;
    jpeg_mem_src(&c, data, (unsigned long)n_bytes);
    jpeg_read_header(&c, TRUE);
    if (c.jpeg_color_space == JCS_CMYK || c.jpeg_color_space == JCS_YCCK) {
        s = keel_fail(KEEL_EUNSUP, "%s: a JPEG in CMYK; convert it to RGB", what);
        goto out;
    }
    const int64_t pixels_there = (int64_t)c.image_height * c.image_width;
    const int64_t pixel_bytes =
        channels + (coefficient_bytes(&c) + pixels_there - 1) / pixels_there;
    if ((s = keel_image_check_size(c.image_height, c.image_width, pixel_bytes, what)) < 0) goto out;
    c.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    c.dct_method = JDCT_IFAST;
    c.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&c);
    const size_t stride = (size_t)c.output_width * (size_t)channels;
    pixels = keel_scratch_reserve(scratch, buffer, stride * c.output_height);
    if (!pixels) {
        s = KEEL_ENOMEM;
        goto out;
    }
    while (c.output_scanline < c.output_height) {
        JSAMPROW row[4];
        JDIMENSION n = 0;
        for (; n < 4 && c.output_scanline + n < c.output_height; n++)
            row[n] = pixels + stride * (c.output_scanline + n);
        jpeg_read_scanlines(&c, row, n);
    }
    jpeg_finish_decompress(&c);
    if (e.base.num_warnings) keel_warn(scratch, what, e.text);
    *out = (keel_image){ pixels, c.output_height, c.output_width, channels };
out:
    jpeg_destroy_decompress(&c);
    return s;
}
