/* A JPEG becomes a row while it is decoded. If the row has its pixels, they are decoded straight
 * into it, a crop included. If it is resized bilinearly and larger than a cache, its lines are used
 * as they come, so that it is never whole in memory, and lines between those that count are passed
 * over: a photo of 2000x1500 takes a tenth less time. Both have the bits of an image that is
 * decoded first (tests/test_photo.c). */
#include "data/codecs/jpeg.h"
#include "data/photo.h"
#include "data/work.h"
#include "tensor/shape.h"
#include <string.h>

enum {
    LINES = 16,        /* as many as the decoder has at a time */
    GAP = 3,           /* source lines for one of the row, from which on some are passed over */
    IN_CACHE = 1 << 20 /* bytes of an image that is resized 2 % faster after it was decoded */
};

typedef struct lines {
    keel_jpeg *jpeg;
    keel_image_part part;  /* of the image */
    int64_t left, width;   /* the columns that lines have */
    int64_t next;          /* the line of the image that is decoded next */
    int64_t first, n, ask; /* lines in the buffer, as of the part; how many are read at a time */
    unsigned char *buffer;
    size_t stride;
    int channels;
    keel_status status;
} lines;

static keel_status pass_over(lines *l, int64_t to)
{
    const int64_t n = to - l->next;
    l->next = to;
    return n > 0 ? keel_jpeg_skip(l->jpeg, n) : KEEL_OK;
}

static const unsigned char *line(void *context, int64_t y)
{
    lines *l = context;
    if (y >= l->first + l->n) {
        const int64_t left = l->part.height - y, n = left < l->ask ? left : l->ask;
        l->status = pass_over(l, l->part.top + y);
        if (l->status >= 0) l->status = keel_jpeg_read(l->jpeg, l->buffer, l->stride, n);
        if (l->status < 0) return NULL;
        l->next += n;
        l->first = y;
        l->n = n;
    }
    return l->buffer + (size_t)(y - l->first) * l->stride +
           (size_t)((l->part.left - l->left) * l->channels);
}

/* Begin to decode the columns of the part. */
static keel_status begin(lines *l, keel_scratch *scratch)
{
    l->left = l->part.left;
    l->width = l->part.width;
    KEEL_TRY(keel_jpeg_start(l->jpeg, &l->left, &l->width));
    l->stride = (size_t)(l->width * l->channels);
    l->buffer = keel_scratch_reserve(scratch, 1, LINES * l->stride);
    return l->buffer ? KEEL_OK : KEEL_ENOMEM;
}

/* The lines of the part as they are. */
static keel_status copy(lines *l, unsigned char *to, keel_scratch *scratch)
{
    const size_t n = (size_t)(l->part.width * l->channels);
    KEEL_TRY(begin(l, scratch));
    if (l->stride == n) {
        KEEL_TRY(pass_over(l, l->part.top));
        return keel_jpeg_read(l->jpeg, to, n, l->part.height);
    }
    for (int64_t y = 0; y < l->part.height; y++, to += n) {
        const unsigned char *from = line(l, y);
        if (!from) return l->status;
        memcpy(to, from, n);
    }
    return KEEL_OK;
}

static keel_status resize(lines *l, const keel_image_part *to, float *out, keel_scratch *scratch)
{
    const keel_image_lines from = { line, l, l->part.height, l->part.width, l->channels };
    l->ask = l->part.height >= GAP * to->height ? 2 : LINES;
    KEEL_TRY(begin(l, scratch));
    return keel_resize_lines(&from, out, to->height, to->width, scratch, 2);
}

static keel_status decode_whole(lines *l, keel_image *image, int64_t height, int64_t width,
                                keel_scratch *scratch)
{
    int64_t left = 0, columns = width;
    const size_t stride = (size_t)(width * l->channels);
    unsigned char *pixels = keel_scratch_reserve(scratch, 1, stride * (size_t)height);
    if (!pixels) return KEEL_ENOMEM;
    KEEL_TRY(keel_jpeg_start(l->jpeg, &left, &columns));
    KEEL_TRY(keel_jpeg_read(l->jpeg, pixels, stride, height));
    *image = (keel_image){ pixels, height, width, l->channels };
    return KEEL_END;
}

static bool same_size(const keel_image_part *a, const keel_image_part *b)
{
    return a->height == b->height && a->width == b->width;
}

typedef enum way { WHOLE, AS_IS, BY_LINES } way;

/* How a JPEG of this size becomes a row. */
static way way_of(const keel_photo *p, const keel_image_part *from, const keel_image_part *to,
                  int64_t height, int64_t width)
{
    const bool small = !p->crop && height * width * p->channels <= IN_CACHE;
    if (p->exact && same_size(from, to)) return AS_IS;
    return p->interpolation != KEEL_BILINEAR || p->exact || small ? WHOLE : BY_LINES;
}

int64_t keel_photo_jpeg_needs(const keel_photo *p, const keel_jpeg_head *head)
{
    const keel_resample r = keel_photo_resample(p);
    keel_jpeg_head h = *head;
    keel_image_part from, to;
    int64_t height = h.height, width = h.width;
    if (keel_resample_windows(&r, height, width, &from, &to) < 0) return 0;
    if (p->shrinks) {
        h.shrunk = keel_jpeg_shrunk(&h, to.height, to.width);
        height = (height + h.shrunk - 1) / h.shrunk;
        width = (width + h.shrunk - 1) / h.shrunk;
        if (keel_resample_windows(&r, height, width, &from, &to) < 0) return 0;
    }
    const int64_t own = keel_jpeg_own(&h), n = p->channels;
    const way w = way_of(p, &from, &to, height, width);
    if (w == WHOLE) {
        const int64_t space = p->exact ? 0 : keel_resample_space(&r, height, width, p->channels);
        return height * width * n + (own > space ? own : space);
    }
    const int64_t columns = keel_jpeg_columns(&h, from.left, from.width);
    const bool resized = w == BY_LINES && !same_size(&from, &to);
    return own + LINES * columns * n +
           (resized ? (int64_t)keel_resize_space(to.width, p->channels) : 0);
}

static keel_status read_open(const keel_photo *p, const keel_data_field *field, lines *l,
                             int64_t height, int64_t width, void *to, keel_dtype want,
                             keel_image *image, keel_scratch *scratch, const char *what)
{
    const keel_resample r = keel_photo_resample(p);
    const int64_t count = p->height * p->width * p->channels;
    keel_image_part at;
    KEEL_TRY(keel_photo_check(p, height, width, what));
    keel_status s = keel_resample_windows(&r, height, width, &l->part, &at);
    if (s >= 0 && p->shrinks) {
        keel_jpeg_shrink(l->jpeg, at.height, at.width, &height, &width);
        s = keel_resample_windows(&r, height, width, &l->part, &at);
    }
    if (s < 0) return keel_fail_within(s, "%s", what);
    const way w = way_of(p, &l->part, &at, height, width);
    const bool as_is = w == AS_IS;
    if (w == WHOLE) return decode_whole(l, image, height, width, scratch);
    void *row =
        want == field->dtype ? to : keel_scratch_reserve(scratch, 3, (size_t)count * sizeof(float));
    if (!row) return KEEL_ENOMEM;
    KEEL_TRY(as_is ? copy(l, row, scratch) : resize(l, &at, row, scratch));
    keel_resample_spread(&r, &at, row, (size_t)p->channels * (as_is ? 1 : sizeof(float)));
    return row == to ? KEEL_OK : keel_field_write(to, want, row, field, count);
}

keel_status keel_photo_read_jpeg(const keel_photo *p, const keel_data_field *field,
                                 const void *data, size_t n_bytes, void *to, keel_dtype want,
                                 keel_image *image, keel_scratch *scratch, const char *what)
{
    lines l = { .channels = p->channels, .ask = LINES };
    int64_t height = 0, width = 0;
    keel_probe_part(scratch->probe, KEEL_PART_DECODE); /* and resizing, line by line */
    KEEL_TRY(keel_jpeg_open(&l.jpeg, data, n_bytes, p->channels, scratch->account, &height, &width,
                            what));
    keel_status s = read_open(p, field, &l, height, width, to, want, image, scratch, what);
    if (s >= 0) {
        const keel_status end = keel_jpeg_finish(l.jpeg, scratch);
        if (end < 0) s = end;
    }
    keel_jpeg_close(l.jpeg);
    return s;
}
