/* Rounded products by the tiles of AMX. See _rounded.h and _tile_blocks.h.
 *
 * The left operand is rounded into the room, in rows of whole steps that end with zeros. A last
 * tile reads up to 16 rows there, of which those that nobody wants may be anything. */
#include "ops/x86/_rounded.h"
#include "ops/x86/_tile_operands.h"

static int64_t words_of(int64_t lines, int64_t columns)
{
    return blocks(lines) * blocks(columns) * (STEP_HALVES / 2);
}

/* ---- the right operand ----------------------------------------------------------------------- */

static void pack(uint32_t *to, const float *w, int64_t row, int64_t lines, int64_t columns)
{
    uint16_t *tile = (uint16_t *)to;
    for (int64_t k = 0; k < columns; k += SIDE)
        for (int64_t i = 0; i < lines; i += SIDE)
            for (int64_t h = k; h < k + SIDE; h += HALF, tile += TILE_HALVES)
                pack_weights(tile, w + i * row + h, row, lines - i, columns - h);
}

static void pack_transpose(uint32_t *to, const float *w, int64_t row, int64_t lines,
                           int64_t columns)
{
    uint16_t *tile = (uint16_t *)to;
    for (int64_t k = 0; k < columns; k += SIDE)
        for (int64_t i = 0; i < lines; i += SIDE)
            for (int64_t h = k; h < k + SIDE; h += HALF, tile += TILE_HALVES)
                pack_turned_weights(tile, w + h * row + i, row, lines - i, columns - h);
}

/* ---- the left operand ------------------------------------------------------------------------ */

static void round_rows(keel_bf16 *to, const float *a, int64_t a_row, int64_t n, int64_t lines)
{
    for (; n > 0; n--, a += a_row)
        for (int64_t i = 0; i < lines; i += SIDE)
            for (int64_t h = i; h < i + SIDE; h += HALF, to += HALF)
                *(vh *)to = __builtin_convertvector(rounded(load_some(a + h, lines - h)) >> 16, vh);
}

/* Rows [n][row] of a [lines, n]. */
static void turn_lines(keel_bf16 *to, int64_t row, const float *a, int64_t a_row, int64_t lines,
                       int64_t n)
{
    for (int64_t k = 0; k < n; k += HALF)
        for (int64_t i = 0; i < lines; i += SIDE) {
            vi r[HALF];
            for (int64_t m = 0, at = i; m < HALF; m++, at += 2) {
                const float *const from = a + at * a_row + k;
                const vi even = rounded(load_some(at < lines ? from : NULL, n - k));
                const vi odd = rounded(load_some(at + 1 < lines ? from + a_row : NULL, n - k));
                r[m] = pair(even, odd);
            }
            transpose(r);
            for (int64_t m = 0; m < HALF; m++) *(vi *)(to + (k + m) * row + i) = r[m];
        }
}

/* ---- products -------------------------------------------------------------------------------- */

/* What is left of a product without lines. */
static void begin_rows(const keel_rounded_product *p, const float *start)
{
    for (int64_t i = 0; i < p->n && !p->adds; i++)
        for (int64_t k = 0; k < p->columns; k++) p->out[i * p->out_row + k] = start ? start[k] : 0;
}

/* Of the rounded rows x, and the copy of `all` lines, from line `first` on. */
static void multiply_rows(const keel_rounded_product *p, const keel_bf16 *x, const uint16_t *copy,
                          int64_t all, const float *start)
{
    const int64_t steps = blocks(p->lines), row = steps * SIDE;
    line l;
    if (p->lines == 0) {
        begin_rows(p, start);
        return;
    }
    line_begin(&l);
    for (int64_t from = 0; from < p->n; from += PLACES) {
        const int64_t end = at_most(p->n, from + PLACES);
        const uint16_t *b = copy + p->first / SIDE * STEP_HALVES;
        for (int64_t k = 0; k < p->columns; k += SIDE, b += blocks(all) * STEP_HALVES)
            for (int64_t q = from; q < end; q += SIDE) {
                const left a = left_rows(x + q * row, row, at_most(end - q, SIDE));
                const place where = { .rows = a.rows,
                                      .columns = at_most(p->columns - k, SIDE),
                                      .apart = p->out_row,
                                      .gradient = p->out + q * p->out_row + k,
                                      .start = start ? start + k : NULL,
                                      .adds = p->adds };
                line_block(&l, &a, b, steps, &where, GRADIENT);
            }
    }
    line_end(&l, GRADIENT);
}

static void multiply(const keel_rounded_product *p, const uint32_t *packed, const float *start)
{
    round_rows(p->room, p->a, p->a_row, p->n, p->lines);
    multiply_rows(p, p->room, (const uint16_t *)packed, p->all ? p->all : p->lines, start);
}

static void multiply_lines(const keel_rounded_product *p, const float *w, int64_t w_row)
{
    uint32_t *const packed = (uint32_t *)p->room + words_of(p->lines, p->n);
    turn_lines(p->room, blocks(p->lines) * SIDE, p->a, p->a_row, p->lines, p->n);
    pack(packed, w, w_row, p->lines, p->columns);
    multiply_rows(p, p->room, (const uint16_t *)packed, p->lines, NULL);
}

const keel_rounded keel_rounded_tiles = { .needs = TILES_NEED,
                                          .together = SIDE,
                                          .words = words_of,
                                          .pack = pack,
                                          .pack_transpose = pack_transpose,
                                          .multiply = multiply,
                                          .multiply_lines = multiply_lines };
