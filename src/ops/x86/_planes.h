/* Windows over an image as shifts over planes of places: how kernels whose products want
 * neighbouring places see a convolution.
 *
 *     forward   y[q]        = sum over taps: x[phase of the tap][q + shift of the tap] W[tap]
 *     backward  dx[class][q] = sum over taps of the class: dy[q + shift of the tap] W[tap] turned
 *     weights   dW[tap]     = sum over q: x[phase of the tap][q + shift of the tap] dy[q]
 *
 * A plane is [height][width] places of one image, line by line; images follow one another. So a tap
 * of the window is a shift. Zeros at the end of a line serve as those at the beginning of the next,
 * and so with lines and images; places there are computed and thrown away. Under strides each phase
 * of the image that is read, every second line and column say, is a plane of its own. In backward
 * the image that is written has the strides: its pixels are in classes, and the taps that saw a
 * pixel are those of its class.
 *
 * A place is a pointer to its channels; NULL: a place of zeros, or one that is not wanted. A pixel
 * that no window reads is never listed, so it may be no number. */
#ifndef KEEL_OPS_X86_PLANES_H
#define KEEL_OPS_X86_PLANES_H
#include "base/memory.h"
#include "ops/window.h"
#include <stdbool.h>
#include <stddef.h>

enum { PLANE_TAPS = 64, PLANE_PHASES = 16 };

/* In one dim: places [first, end) are the elements from + place * step of the image. */
typedef struct plane_phase {
    int64_t from, first, end;
} plane_phase;

typedef struct plane_side {
    int64_t size[2], step[2]; /* of the image */
    int n;
    plane_phase at[PLANE_PHASES][2];
} plane_side;

typedef struct plane_tap {
    int phase; /* of the side that is read */
    int64_t shift;
    int tap; /* of the window */
} plane_tap;

typedef struct planes {
    plane_side read, written;
    int64_t n[2];              /* lines and columns of places that are wanted */
    int64_t height, width;     /* of a plane */
    int64_t reach;             /* the largest shift */
    int64_t places;            /* of a stretch at most: see planes_stretch */
    int n_tap[PLANE_PHASES];   /* of each class */
    plane_tap tap[PLANE_TAPS]; /* one class after the other */
} planes;

/* ---- geometry -------------------------------------------------------------------------------- */

/* One dim by itself. */
typedef struct plane_dim {
    int64_t n, extent, reach;
    int n_read, n_written;
    plane_phase read[PLANE_PHASES], written[PLANE_PHASES];
    struct {
        int read, written;
        int64_t shift;
    } tap[PLANE_TAPS];
} plane_dim;

static inline int64_t plane_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t plane_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What remains: the places of each phase that windows read and that are among `size` elements, and
 * the extent. */
static inline void plane_dim_close(plane_dim *d, int64_t taps, int64_t size, int64_t step)
{
    int64_t first = INT64_MAX, end = 0;
    for (int r = 0; r < d->n_read; r++) {
        plane_phase *const p = &d->read[r];
        int64_t least = INT64_MAX, reach = 0;
        for (int64_t t = 0; t < taps; t++)
            if (d->tap[t].read == r) {
                least = plane_smaller(least, d->tap[t].shift);
                reach = plane_larger(reach, d->tap[t].shift);
            }
        p->first = plane_larger(p->from < 0 ? (step - 1 - p->from) / step : 0, least);
        p->end = p->from < size ? (size - 1 - p->from) / step + 1 : 0;
        p->end = plane_larger(plane_smaller(p->end, d->n + reach), p->first);
        first = plane_smaller(first, p->first);
        end = plane_larger(end, p->end);
        d->reach = plane_larger(d->reach, reach);
    }
    d->extent = plane_larger(plane_larger(d->n, end), d->n + d->reach - first);
}

/* Forward: phases of the input. false: too many. */
static inline bool plane_dim_forward(plane_dim *d, const keel_window *v, int dim)
{
    *d = (plane_dim){ .n = v->out[dim], .n_written = 1, .written = { { 0, 0, v->out[dim] } } };
    for (int64_t i = 0; i < v->size[dim]; i++) {
        const int64_t at = i * v->dilation[dim], step = v->stride[dim];
        const int64_t from = at % step - v->pad[dim];
        int r = 0;
        while (r < d->n_read && d->read[r].from != from) r++;
        if (r == PLANE_PHASES) return false;
        if (r == d->n_read) d->read[d->n_read++].from = from;
        d->tap[i].read = r;
        d->tap[i].shift = at / step;
    }
    plane_dim_close(d, v->size[dim], v->in[dim], v->stride[dim]);
    return true;
}

/* Backward: classes of the input, and the output with what the windows lack before it. */
static inline bool plane_dim_backward(plane_dim *d, const keel_window *v, int dim)
{
    const int64_t step = v->stride[dim], in = v->in[dim];
    int64_t before = 0;
    *d = (plane_dim){ .n = (in + step - 1) / step, .n_read = 1 };
    for (int64_t r = 0; r < step && r < in; r++) {
        if (r == PLANE_PHASES) return false;
        d->written[d->n_written++] = (plane_phase){ r, 0, (in - 1 - r) / step + 1 };
    }
    for (int64_t i = 0; i < v->size[dim]; i++) {
        /* element r + q step was read by this tap at place q + shift of the output */
        const int64_t distance = v->pad[dim] - i * v->dilation[dim];
        const int64_t r = ((-distance) % step + step) % step;
        d->tap[i].written = (int)r;
        d->tap[i].shift = (r + distance) / step;
        before = plane_larger(before, -d->tap[i].shift);
    }
    for (int64_t i = 0; i < v->size[dim]; i++) d->tap[i].shift += before;
    d->read[0].from = -before;
    plane_dim_close(d, v->size[dim], v->out[dim], 1);
    return true;
}

/* The places of a convolution `v` over two dims. false: too many taps, phases or places. */
static inline bool planes_of(planes *p, const keel_window *v, bool backward)
{
    plane_dim d[2];
    int64_t all;
    *p = (planes){ 0 };
    if (v->size[0] > PLANE_TAPS || v->size[1] > PLANE_TAPS || v->size[0] * v->size[1] > PLANE_TAPS)
        return false;
    for (int k = 0; k < 2; k++) {
        if (!(backward ? plane_dim_backward : plane_dim_forward)(&d[k], v, k)) return false;
        p->n[k] = d[k].n;
        p->read.size[k] = backward ? v->out[k] : v->in[k];
        p->read.step[k] = backward ? 1 : v->stride[k];
        p->written.size[k] = backward ? v->in[k] : v->out[k];
        p->written.step[k] = backward ? v->stride[k] : 1;
    }
    p->height = d[0].extent;
    p->width = d[1].extent;
    p->read.n = d[0].n_read * d[1].n_read;
    p->written.n = d[0].n_written * d[1].n_written;
    if (p->read.n > PLANE_PHASES || p->written.n > PLANE_PHASES ||
        !keel_mul_i64(p->height, p->width, &all) || !keel_mul_i64(d[0].reach + 1, p->width, &all))
        return false;
    p->reach = d[0].reach * p->width + d[1].reach;
    for (int r = 0; r < p->read.n; r++)
        for (int k = 0; k < 2; k++)
            p->read.at[r][k] = d[k].read[k ? r % d[1].n_read : r / d[1].n_read];
    plane_tap *tap = p->tap;
    for (int g = 0; g < p->written.n; g++) {
        const int class[2] = { g / d[1].n_written, g % d[1].n_written };
        for (int k = 0; k < 2; k++) p->written.at[g][k] = d[k].written[class[k]];
        for (int64_t i = 0; i < v->size[0]; i++)
            for (int64_t j = 0; j < v->size[1]; j++) {
                if (d[0].tap[i].written != class[0] || d[1].tap[j].written != class[1]) continue;
                *tap++ = (plane_tap){ d[0].tap[i].read * d[1].n_read + d[1].tap[j].read,
                                      d[0].tap[i].shift * p->width + d[1].tap[j].shift,
                                      (int)(i * v->size[1] + j) };
                p->n_tap[g]++;
            }
    }
    return true;
}

/* ---- stretches ------------------------------------------------------------------------------- */

/* What is packed at a time: of `images`, whole ones where at least one fits in `most` places, else
 * lines of one. */
static inline void planes_stretch(planes *p, int64_t most, int64_t images)
{
    const int64_t image = p->height * p->width;
    p->places = image <= most ? plane_smaller(most / image, images) * image
                              : plane_larger(most / p->width, 1) * p->width;
}

typedef struct stretch {
    int64_t image, images; /* all of the call's */
    int64_t line, lines;   /* of each of them */
} stretch;

/* From { 0 } on, through all images. */
static inline bool next_stretch(const planes *p, stretch *at, int64_t images)
{
    const int64_t image = p->height * p->width;
    if (at->images == 0) {
        at->image = at->line = 0;
    } else if (at->line + at->lines < p->n[0]) {
        at->line += at->lines;
    } else {
        at->image += at->images;
        at->line = 0;
    }
    at->images = plane_smaller(plane_larger(p->places / image, 1), images - at->image);
    at->lines = plane_smaller(plane_larger(p->places / p->width, 1), p->n[0] - at->line);
    return at->image < images;
}

static inline int64_t stretch_places(const planes *p, const stretch *at)
{
    return ((at->images - 1) * p->height + at->lines) * p->width;
}

/* The first n places from the stretch's first on, in phase k of the images at x. */
static inline void list_places(const planes *p, const plane_side *side, int k, const stretch *at,
                               const void *x, int64_t pixel_bytes, int64_t n, const void **to)
{
    const plane_phase *h = &side->at[k][0], *w = &side->at[k][1];
    int64_t image = at->image, line = at->line;
    for (int64_t q = 0; q < n; q += p->width, to += p->width) {
        const int64_t columns = plane_smaller(p->width, n - q);
        const bool there = image < at->image + at->images && line >= h->first && line < h->end;
        const int64_t first = there ? plane_smaller(w->first, columns) : columns;
        const int64_t end = plane_larger(plane_smaller(w->end, columns), first);
        const int64_t pixel =
            (image * side->size[0] + line * side->step[0] + h->from) * side->size[1] + w->from;
        for (int64_t c = 0; c < first; c++) to[c] = NULL;
        for (int64_t c = first; c < end; c++)
            to[c] = (const char *)x + (pixel + c * side->step[1]) * pixel_bytes;
        for (int64_t c = end; c < columns; c++) to[c] = NULL;
        if (++line < p->height || at->lines < p->n[0]) continue;
        line = 0;
        image++;
    }
}

#endif
