/* Bilinear resize in two passes. Each source row is interpolated once along x, with a table of
 * columns; then two such rows are mixed along y. The order of operations is that of TensorFlow's
 * ResizeBilinear with half_pixel_centers, so results agree to rounding. */
#include "data/resize.h"
#include <math.h>
#include <stdint.h>

typedef struct column { /* of an output pixel: its left and right neighbour, and the mix of them */
    int32_t left, right;
    float part;
} column;

/* The centre of output pixel i in source pixels. */
static float middle(int64_t i, int64_t from, int64_t to)
{
    return ((float)i + 0.5f) * ((float)from / (float)to);
}

static column place(int64_t i, int64_t from, int64_t to, int step)
{
    const float centre = middle(i, from, to) - 0.5f, low = floorf(centre);
    const int64_t left = low < 0 ? 0 : (int64_t)low;
    const int64_t right = (int64_t)ceilf(centre) < from - 1 ? (int64_t)ceilf(centre) : from - 1;
    return (column){ (int32_t)((left < from ? left : from - 1) * step),
                     (int32_t)((right < 0 ? 0 : right) * step), centre - low };
}

static void widen_1(float *out, const unsigned char *row, const column *c, int64_t width)
{
    for (int64_t i = 0; i < width; i++) {
        const float a = row[c[i].left], b = row[c[i].right];
        out[i] = a + (b - a) * c[i].part;
    }
}

static void widen_3(float *out, const unsigned char *row, const column *c, int64_t width)
{
    for (int64_t i = 0; i < width; i++) {
        const unsigned char *l = row + c[i].left, *r = row + c[i].right;
        const float part = c[i].part;
        for (int k = 0; k < 3; k++) {
            const float a = l[k], b = r[k];
            out[3 * i + k] = a + (b - a) * part;
        }
    }
}

keel_status keel_resize(const keel_image *image, float *out, int64_t height, int64_t width,
                        keel_scratch *scratch, int buffer)
{
    const int n = image->channels;
    const size_t line = (size_t)width * (size_t)n, stride = (size_t)image->width * (size_t)n;
    char *space = keel_scratch_reserve(scratch, buffer,
                                       (size_t)width * sizeof(column) + 2 * line * sizeof(float));
    if (!space) return KEEL_ENOMEM;
    column *columns = (void *)space;
    float *rows[2];
    rows[0] = (float *)(void *)(space + (size_t)width * sizeof(column));
    rows[1] = rows[0] + line;
    int64_t holds[2] = { -1, -1 }; /* the source row that each buffer has */
    for (int64_t i = 0; i < width; i++) columns[i] = place(i, image->width, width, n);

    for (int64_t y = 0; y < height; y++, out += line) {
        const column at = place(y, image->height, height, 1);
        const int64_t need[2] = { at.left, at.right };
        if (holds[0] != need[0] && holds[1] == need[0]) { /* the lower row becomes the upper */
            float *const swap = rows[0];
            rows[0] = rows[1];
            rows[1] = swap;
            holds[1] = holds[0];
            holds[0] = need[0];
        }
        for (int k = 0; k < 2; k++) {
            if (holds[k] == need[k] || (k && need[1] == need[0])) continue;
            const unsigned char *row = image->pixels + (size_t)need[k] * stride;
            if (n == 1)
                widen_1(rows[k], row, columns, width);
            else
                widen_3(rows[k], row, columns, width);
            holds[k] = need[k];
        }
        const float *upper = rows[0], *lower = need[1] == need[0] ? rows[0] : rows[1];
        for (size_t i = 0; i < line; i++) out[i] = upper[i] + (lower[i] - upper[i]) * at.part;
    }
    return KEEL_OK;
}

static int64_t nearest(int64_t i, int64_t from, int64_t to)
{
    const int64_t p = (int64_t)floorf(middle(i, from, to));
    return p < from - 1 ? p : from - 1;
}

void keel_resize_nearest(const keel_image *image, unsigned char *out, int64_t height, int64_t width)
{
    const size_t n = (size_t)image->channels, stride = (size_t)image->width * n;
    for (int64_t y = 0; y < height; y++) {
        const unsigned char *row =
            image->pixels + (size_t)nearest(y, image->height, height) * stride;
        for (int64_t x = 0; x < width; x++, out += n) {
            const unsigned char *p = row + (size_t)nearest(x, image->width, width) * n;
            for (size_t k = 0; k < n; k++) out[k] = p[k];
        }
    }
}
