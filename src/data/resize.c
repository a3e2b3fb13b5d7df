/* Resizing: one table for the columns, and each source row is widened once: first along x into a
 * row of floats, then two such rows are mixed along y. The order of operations is TensorFlow's
 * ResizeBilinear with half_pixel_centers, so results are equal to rounding. */
#include "data/resize.h"
#include <math.h>
#include <stdint.h>

typedef struct column { /* of an output pixel: elements of its neighbours, and how far to the right
                         */
    int32_t left, right;
    float part;
} column;

static column place(int64_t i, int64_t from, int64_t to, int step, bool nearest)
{
    const float at = ((float)i + 0.5f) * ((float)from / (float)to);
    if (nearest) {
        const int64_t p = (int64_t)floorf(at) < from - 1 ? (int64_t)floorf(at) : from - 1;
        return (column){ (int32_t)(p * step), (int32_t)(p * step), 0 };
    }
    const float centre = at - 0.5f, low = floorf(centre);
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
                        keel_interpolation interpolation, keel_scratch *scratch, int buffer)
{
    const bool nearest = interpolation == KEEL_NEAREST;
    const int n = image->channels;
    const size_t line = (size_t)width * (size_t)n, stride = (size_t)image->width * (size_t)n;
    char *space = keel_scratch_reserve(scratch, buffer,
                                       (size_t)width * sizeof(column) + 2 * line * sizeof(float));
    if (!space) return KEEL_ENOMEM;
    column *columns = (void *)space;
    float *rows[2];
    rows[0] = (float *)(void *)(space + (size_t)width * sizeof(column));
    rows[1] = rows[0] + line;
    int64_t holds[2] = { -1, -1 }; /* which source row each of the two has */
    for (int64_t i = 0; i < width; i++) columns[i] = place(i, image->width, width, n, nearest);

    for (int64_t y = 0; y < height; y++, out += line) {
        const column at = place(y, image->height, height, 1, nearest);
        const int64_t need[2] = { at.left, at.right };
        if (holds[0] != need[0] && holds[1] == need[0]) { /* the lower row becomes the upper one */
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
