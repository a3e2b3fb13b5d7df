/* JPEG by libjpeg-turbo. A file that ends early is refused; other faults, which the library
 * repairs, are warnings; TensorFlow says nothing of them.
 *
 * TensorFlow's decode_image, which Keras uses, takes the fast integer DCT and smooth chroma
 * upsampling, and makes RGB of CMYK without a colour profile; so pixels are equal to its
 * (tests/golden/make_images.py). */
#include "data/codecs/jpeg.h"
#include "base/memory.h"
#include "data/warnings.h"
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>
#include <setjmp.h>
#include <string.h>

enum { SCANS_MAX = 100 }; /* encoders write 1 to 20 */

struct keel_jpeg {
    struct jpeg_error_mgr errors; /* first member: the library casts to it */
    jmp_buf back;
    char text[JMSG_LENGTH_MAX]; /* of an error, or of the first warning */
    struct jpeg_decompress_struct c;
    const char *what;
    keel_account *account;
    int64_t taken;  /* from it */
    bool ends;      /* with the marker of the end */
    JSAMPROW spare; /* a line of inks, or one that nobody reads */
};

static void give_up(j_common_ptr c)
{
    keel_jpeg *j = (keel_jpeg *)c->err;
    c->err->format_message(c, j->text);
    longjmp(j->back, 1);
}

static keel_status failed(const keel_jpeg *j)
{
    return keel_fail(KEEL_EFORMAT, "%s: decode JPEG: %s; replace the file or remove it", j->what,
                     j->text);
}

static void note(j_common_ptr c, int level)
{
    const int code = c->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) give_up(c);
    if (level < 0 && !c->err->num_warnings++)
        c->err->format_message(c, ((keel_jpeg *)c->err)->text);
}

static void say_nothing(j_common_ptr c)
{
    (void)c;
}

/* For several scans the library keeps all coefficients in memory, 2 bytes each. */
static int64_t coefficient_bytes(struct jpeg_decompress_struct *c)
{
    int64_t blocks = 0;
    for (int i = 0; i < c->num_components && jpeg_has_multiple_scans(c); i++)
        blocks += (int64_t)c->comp_info[i].width_in_blocks * c->comp_info[i].height_in_blocks;
    return blocks * DCTSIZE2 * (int64_t)sizeof(JCOEF);
}

bool keel_jpeg_begins(const void *data, size_t n_bytes)
{
    return n_bytes >= 3 && !memcmp(data, "\xff\xd8\xff", 3);
}

/* Returns here by longjmp, so nothing but *j changes before. */
static keel_status read_head(keel_jpeg *j, const void *data, size_t n_bytes)
{
    if (setjmp(j->back)) return failed(j);
    jpeg_create_decompress(&j->c);
    j->c.mem->max_memory_to_use = 1L << 30;
    jpeg_mem_src(&j->c, data, (unsigned long)n_bytes);
    jpeg_read_header(&j->c, TRUE);
    return KEEL_OK;
}

keel_status keel_jpeg_open(keel_jpeg **out, const void *data, size_t n_bytes, int channels,
                           keel_account *a, int64_t *height, int64_t *width, const char *what)
{
    const unsigned char *b = data;
    const int scans = keel_jpeg_scans(data, n_bytes);
    if (scans > SCANS_MAX)
        return keel_fail(KEEL_EFORMAT, "%s: a JPEG of %d scans; at most %d are read", what, scans,
                         SCANS_MAX);
    keel_jpeg *j = keel_calloc(1, sizeof *j);
    if (!j) return KEEL_ENOMEM;
    struct jpeg_decompress_struct *c = &j->c;
    j->what = what;
    j->account = a;
    j->ends = n_bytes > 1 && b[n_bytes - 2] == 0xFF && b[n_bytes - 1] == JPEG_EOI;
    c->err = jpeg_std_error(&j->errors);
    j->errors.error_exit = give_up;
    j->errors.emit_message = note;
    j->errors.output_message = say_nothing;
    keel_status s = read_head(j, data, n_bytes);
    const bool inks = c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK;
    if (s >= 0 && inks && channels == 1)
        s = keel_fail(KEEL_EUNSUP, "%s: a JPEG in CMYK, of which no gray is made", what);
    if (s >= 0) {
        const int64_t there = (int64_t)c->image_height * c->image_width;
        const int64_t pixel_bytes = channels + (coefficient_bytes(c) + there - 1) / there;
        s = keel_image_check_size(c->image_height, c->image_width, pixel_bytes, what);
    }
    if (s < 0) {
        keel_jpeg_close(j);
        return s;
    }
    c->out_color_space = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    c->dct_method = JDCT_IFAST;
    c->do_fancy_upsampling = TRUE;
    *height = c->image_height;
    *width = c->image_width;
    *out = j;
    return KEEL_OK;
}

void keel_jpeg_shrink(keel_jpeg *j, int64_t height, int64_t width, int64_t *new_height,
                      int64_t *new_width)
{
    const int64_t h = j->c.image_height, w = j->c.image_width;
    const keel_jpeg_head head = { .height = h, .width = w };
    const int by = keel_jpeg_shrunk(&head, height, width);
    j->c.scale_num = 1;
    j->c.scale_denom = (unsigned)by;
    *new_height = (h + by - 1) / by;
    *new_width = (w + by - 1) / by;
}

/* The upsampling of colours looks at a neighbour, so lines keep a block beside the columns: the
 * bytes within are then those of whole lines. */
static void keep_columns(struct jpeg_decompress_struct *c, int64_t *left, int64_t *width)
{
    const int64_t all = c->output_width, block = (int64_t)c->max_h_samp_factor * DCTSIZE;
    const int64_t begin = *left > block ? *left - block : 0;
    const int64_t end = *left + *width + block < all ? *left + *width + block : all;
    JDIMENSION from = (JDIMENSION)begin, n = (JDIMENSION)(end - begin);
    if (end - begin + 2 * block < all) /* else it saves nothing */
        jpeg_crop_scanline(c, &from, &n);
    else
        from = 0;
    *left = from;
    *width = c->output_width;
}

/* Take what the decoder is about to allocate. */
static keel_status take_own(keel_jpeg *j)
{
    struct jpeg_decompress_struct *c = &j->c;
    keel_jpeg_head h = { .height = c->image_height,
                         .width = c->image_width,
                         .components = c->num_components < 4 ? c->num_components : 4,
                         .several_scans = jpeg_has_multiple_scans(c),
                         .shrunk = (int)(c->scale_denom / c->scale_num) };
    for (int i = 0; i < h.components; i++) {
        h.h[i] = c->comp_info[i].h_samp_factor;
        h.v[i] = c->comp_info[i].v_samp_factor;
    }
    const int64_t n = keel_jpeg_own(&h);
    if (!keel_account_take(j->account, n)) return KEEL_ENOMEM;
    j->taken = n;
    return KEEL_OK;
}

keel_status keel_jpeg_start(keel_jpeg *j, int64_t *left, int64_t *width)
{
    KEEL_TRY(take_own(j));
    if (setjmp(j->back)) return failed(j);
    jpeg_start_decompress(&j->c);
    keep_columns(&j->c, left, width);
    return KEEL_OK;
}

/* Adobe's programs store how much light is left, all others how much ink there is. */
static void rgb_of_inks(unsigned char *to, const unsigned char *cmyk, JDIMENSION width, bool light)
{
    enum { INKS = 4, COLOURS = 3, BLACK = 3, ALL = 255 };
    for (JDIMENSION x = 0; x < width; x++, to += COLOURS, cmyk += INKS)
        for (int i = 0; i < COLOURS; i++)
            to[i] = (unsigned char)((light ? cmyk[BLACK] * cmyk[i]
                                           : (ALL - cmyk[BLACK]) * (ALL - cmyk[i])) /
                                    ALL);
}

/* Decode n lines into a spare one, and make RGB of them if they are wanted. */
static void spare_lines(keel_jpeg *j, JDIMENSION n, unsigned char *to, size_t stride)
{
    struct jpeg_decompress_struct *c = &j->c;
    const size_t n_bytes = (size_t)c->output_width * (size_t)c->output_components;
    if (!j->spare) j->spare = c->mem->alloc_large((j_common_ptr)c, JPOOL_IMAGE, n_bytes);
    for (; n; n--) {
        jpeg_read_scanlines(c, &j->spare, 1);
        if (!to) continue;
        rgb_of_inks(to, j->spare, c->output_width, c->saw_Adobe_marker);
        to += stride;
    }
}

keel_status keel_jpeg_read(keel_jpeg *j, unsigned char *to, size_t stride, int64_t lines)
{
    enum { MANY = 16 };
    struct jpeg_decompress_struct *c = &j->c;
    const JDIMENSION first = c->output_scanline, end = first + (JDIMENSION)lines;
    if (setjmp(j->back)) return failed(j);
    if (c->out_color_space == JCS_CMYK) {
        spare_lines(j, (JDIMENSION)lines, to, stride);
        return KEEL_OK;
    }
    while (c->output_scanline < end) {
        JSAMPROW row[MANY];
        JDIMENSION n = 0;
        for (; n < MANY && c->output_scanline + n < end; n++)
            row[n] = to + stride * (c->output_scanline + n - first);
        jpeg_read_scanlines(c, row, n);
    }
    return KEEL_OK;
}

keel_status keel_jpeg_skip(keel_jpeg *j, int64_t lines)
{
    struct jpeg_decompress_struct *c = &j->c;
    if (setjmp(j->back)) return failed(j);
    /* libjpeg-turbo 2.1 loses its place in the gray of images that have fewer lines of colour */
    if (c->out_color_space == JCS_GRAYSCALE && c->max_v_samp_factor > 1)
        spare_lines(j, (JDIMENSION)lines, NULL, 0);
    else
        jpeg_skip_scanlines(c, (JDIMENSION)lines);
    return KEEL_OK;
}

keel_status keel_jpeg_finish(keel_jpeg *j, const keel_scratch *scratch)
{
    struct jpeg_decompress_struct *c = &j->c;
    const JDIMENSION left = c->output_height - c->output_scanline;
    if (!left || !j->ends) {
        if (setjmp(j->back)) return failed(j);
        if (left) spare_lines(j, left, NULL, 0);
        jpeg_finish_decompress(c);
    }
    if (j->errors.num_warnings) keel_warn(scratch, j->what, j->text);
    return KEEL_OK;
}

void keel_jpeg_close(keel_jpeg *j)
{
    if (!j) return;
    jpeg_destroy_decompress(&j->c);
    keel_account_give(j->account, j->taken);
    keel_free(j);
}

keel_status keel_jpeg_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                             keel_scratch *scratch, int buffer, const char *what)
{
    keel_jpeg *j = NULL;
    int64_t height = 0, width = 0, left = 0, columns;
    KEEL_TRY(keel_jpeg_open(&j, data, n_bytes, channels, scratch->account, &height, &width, what));
    columns = width;
    keel_status s = keel_jpeg_start(j, &left, &columns);
    const size_t stride = (size_t)width * (size_t)channels;
    unsigned char *pixels = NULL;
    if (s >= 0 && !(pixels = keel_scratch_reserve(scratch, buffer, stride * (size_t)height)))
        s = KEEL_ENOMEM;
    if (s >= 0) s = keel_jpeg_read(j, pixels, stride, height);
    if (s >= 0) s = keel_jpeg_finish(j, scratch);
    keel_jpeg_close(j);
    if (s >= 0) *out = (keel_image){ pixels, height, width, channels };
    return s;
}
