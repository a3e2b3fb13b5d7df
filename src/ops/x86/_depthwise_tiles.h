/* Forward and backward of 3x3 windows, by tiles of pixels: a part of _depthwise.h. They are bound
 * by memory: 18 FLOP an output. So a tile takes all channels of its pixels, and every value of the
 * window's lines is read once a tile; the sums stay in registers. */
/* The sums of a tile at {h, w} of `to`, for the channels of m from k. stride, back and checked are
 * constants where this is called. What the tile below reads first is asked for. Forward reads the
 * lines from `at` on, backward those whose windows reach the tile: line a of `from` and tap i meet
 * in line stride a + i of `to`, and tap j likewise. What is not in `lines` and `cols` is not read,
 * not in `rows` and `places` not written.
 */
INLINE void VALUE_(sum_tile)(const VALUE_(image) * o, const VALUE *from, VALUE *to, int64_t k, vm m,
                             const int stride, const bool back, const bool checked, range lines,
                             range cols, range rows, range places)
{
    const int64_t c = o->channels, from_line = o->from_size[1] * c, to_line = o->to_size[1] * c;
    const int height = back ? (ROWS + 1 + stride) / stride : (ROWS - 1) * stride + 3;
    const int width = back ? (COLS + 1 + stride) / stride : (COLS - 1) * stride + 3;
    const int before = back ? 2 / stride : 0;
    vf weight[9], sum[ROWS][COLS];
    EACH(t, 9) weight[t] = vf_load_some(m, o->w + t * c + k);
    const vf start = o->bias ? vf_load_some(m, o->bias + k) : vf_zero();
    EACH(r, ROWS)
        EACH(q, COLS) sum[r][q] = start;
    const int lower = back ? ROWS / stride : ROWS * stride,
              across = back ? COLS / stride : COLS * stride;
    if (!checked && o->far)
        EACH(a, lower)
            EACH(b, across) __builtin_prefetch(from + (height + a) * from_line + b * c + k, 0, 2);
    EACH(a, height)
        EACH(b, width) {
            if (checked && !(has(lines, a) && has(cols, b))) continue;
            const vf x = vx_load_some(m, from + a * from_line + b * c + k);
            EACH(r, ROWS)
                EACH(q, COLS) {
                    const int i = back ? r - stride * (a - before) : a - stride * r;
                    const int j = back ? q - stride * (b - before) : b - stride * q;
                    if (i >= 0 && i < 3 && j >= 0 && j < 3)
                        sum[r][q] = vf_fma(x, weight[i * 3 + j], sum[r][q]);
                }
        }
    EACH(r, ROWS)
        EACH(q, COLS) {
            VALUE *y = to + r * to_line + q * c + k;
            if (checked && !(has(rows, r) && has(places, q))) continue;
            fetch_to_write_ahead(y, o->to_far);
            vx_store_some(m, y, o->adds ? vf_add(sum[r][q], vx_load_some(m, y)) : sum[r][q]);
        }
}

/* All channels of the tile that begins at from and to. */
INLINE void VALUE_(sum_channels)(const VALUE_(image) * o, const VALUE *from, VALUE *to,
                                 const int stride, const bool back, const bool checked, range lines,
                                 range cols, range rows, range places)
{
    VECTOR_EACH(k, o->channels, m, {
        VALUE_(sum_tile)
        (o, from, to, k, m, stride, back, checked, lines, cols, rows, places);
    });
}

typedef void VALUE_(edge)(const VALUE_(image) * o, const VALUE *from, VALUE *to, range lines,
                          range cols, range rows, range places);

/* All tiles of an image; those at its edges by `edge`. */
INLINE void VALUE_(tiles)(const VALUE_(image) * o, const keel_window *v, const int stride,
                          const bool back, VALUE_(edge) * edge)
{
    const int64_t c = o->channels, from_line = o->from_size[1] * c, to_line = o->to_size[1] * c;
    const int height = back ? (ROWS + 1 + stride) / stride : (ROWS - 1) * stride + 3;
    const int width = back ? (COLS + 1 + stride) / stride : (COLS - 1) * stride + 3;
    const int before = back ? 2 / stride : 0;
    for (int64_t h = back ? -(v->pad[0] % stride) : 0; h < o->to_size[0]; h += ROWS) {
        const int64_t y = back ? (h + v->pad[0]) / stride - before : h * stride - v->pad[0];
        const range lines = inside(y, height, o->from_size[0]);
        const range rows = inside(h, ROWS, o->to_size[0]);
        const bool inner = whole(lines, height) && whole(rows, ROWS);
        for (int64_t w = back ? -(v->pad[1] % stride) : 0; w < o->to_size[1]; w += COLS) {
            const int64_t x = back ? (w + v->pad[1]) / stride - before : w * stride - v->pad[1];
            const range cols = inside(x, width, o->from_size[1]);
            const range places = inside(w, COLS, o->to_size[1]);
            const VALUE *from = o->from + y * from_line + x * c;
            VALUE *to = o->to + h * to_line + w * c;
            if (inner && whole(cols, width) && whole(places, COLS)) VALUE_(sum_channels)
            (o, from, to, stride, back, false, lines, cols, rows, places);
            else edge(o, from, to, lines, cols, rows, places);
        }
    }
}

/* A function for each stride and way, and for its edges: in one, compiling them takes much longer.
 */
#define TILES(name, stride, back)                                                                  \
    static __attribute__((noinline)) void VALUE_(name##_edge)(                                     \
        const VALUE_(image) * o, const VALUE *from, VALUE *to, range lines, range cols,            \
        range rows, range places)                                                                  \
    {                                                                                              \
        VALUE_(sum_channels)(o, from, to, stride, back, true, lines, cols, rows, places);          \
    }                                                                                              \
    static __attribute__((noinline)) void VALUE_(name)(const VALUE_(image) * o,                    \
                                                       const keel_window *v)                       \
    {                                                                                              \
        VALUE_(tiles)(o, v, stride, back, VALUE_(name##_edge));                                    \
    }
TILES(forward_1, 1, false)
TILES(forward_2, 2, false)
TILES(backward_1, 1, true)
TILES(backward_2, 2, true)
#undef TILES
