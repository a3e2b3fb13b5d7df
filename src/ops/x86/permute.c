/* The dims of a row in another order. Last dims that stay where they are make lines, which are
 * moved whole. Else the last dims of both sides make a matrix, which is turned by tiles of TILE x
 * TILE. */
#include "ops/args.h"
#include "ops/x86/_turn.h"
#include "ops/x86/_vector.h"

KEEL_USES_OP(permute);

enum { TILE = 8 };

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    return p->node->in[0].shape.rank > 0 ? KEEL_OK : KEEL_EUNSUP;
}

/* The dims of the output: their lengths, and how far apart their elements lie in the input and in
 * the output. `turned` is the one that is last in the input; those from `line` on stay. */
typedef struct sides {
    int rank, turned, line;
    int64_t dim[KEEL_RANK_MAX], in[KEEL_RANK_MAX], out[KEEL_RANK_MAX];
} sides;

static sides sides_of(const keel_node *n)
{
    const keel_permute_args *a = n->args;
    const keel_shape *in = &n->in[0].shape;
    sides s = { .rank = in->rank, .line = in->rank };
    while (s.line > 0 && a->from[s.line - 1] == s.line - 1) s.line--;
    int64_t step = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        s.dim[d] = in->dim[a->from[d]];
        s.out[d] = step;
        step *= s.dim[d];
        s.in[d] = 1;
        for (int e = (int)a->from[d] + 1; e < in->rank; e++) s.in[d] *= in->dim[e];
        if (a->from[d] == in->rank - 1) s.turned = d;
    }
    return s;
}

/* to [n, m] (+)= from [m, n] turned, of at most TILE x TILE. */
static void turn_tile(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t n,
                      int64_t m, bool adds)
{
    float tile[TILE * TILE];
    if (n == TILE && m == TILE && !adds) {
        turn_eight(to, to_row, from, from_row);
        return;
    }
    if (n == TILE && m == TILE) {
        turn_eight(tile, TILE, from, from_row);
        from = tile;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++) to[i * to_row + j] += from[i * TILE + j];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            to[i * to_row + j] =
                adds ? to[i * to_row + j] + from[j * from_row + i] : from[j * from_row + i];
}

/* The matrix of the last dims of both sides: lines [first, end) of that of the output. */
static void move(const sides *s, int64_t first, int64_t end, float *to, const float *from,
                 bool back, bool adds)
{
    const int last = s->rank - 1, turned = s->turned;
    const int64_t in_row = s->in[last], out_row = s->out[turned];
    for (int64_t i = first; i < end; i += TILE)
        for (int64_t j = 0; j < s->dim[last]; j += TILE) {
            const int64_t n = end - i < TILE ? end - i : TILE;
            const int64_t m = s->dim[last] - j < TILE ? s->dim[last] - j : TILE;
            const int64_t in = j * in_row + i, out = i * out_row + j;
            if (back)
                turn_tile(to + in, in_row, from + out, out_row, m, n, adds);
            else
                turn_tile(to + out, out_row, from + in, in_row, n, m, adds);
        }
}

/* The lines of dims d and on. */
static void move_lines(const sides *s, int d, float *to, const float *from, bool back, bool adds)
{
    const int64_t to_step = back ? s->in[d] : s->out[d], from_step = back ? s->out[d] : s->in[d];
    if (d == s->line) {
        VECTOR_MOVE(to, from, s->dim[d] * s->out[d], adds);
        return;
    }
    for (int64_t i = 0; i < s->dim[d]; i++)
        move_lines(s, d + 1, to + i * to_step, from + i * from_step, back, adds);
}

/* All such matrices of a row; of a row of one matrix, some of the lines of the output. */
static void move_matrices(const sides *s, keel_columns some, float *to, const float *from,
                          bool back, bool adds)
{
    const int64_t end = some.count > 0 ? some.first + some.count : s->dim[s->turned];
    const int64_t count = s->dim[0] * s->out[0], size = s->dim[s->turned] * s->dim[s->rank - 1];
    for (int64_t k = 0; k < count / size; k++) {
        int64_t left = k, in = 0, out = 0;
        for (int d = s->rank - 2; d >= 0; d--) {
            if (d == s->turned) continue;
            in += left % s->dim[d] * s->in[d];
            out += left % s->dim[d] * s->out[d];
            left /= s->dim[d];
        }
        move(s, some.first, end, to + (back ? in : out), from + (back ? out : in), back, adds);
    }
}

/* back: from the order of the output to that of the input. */
static void run(const keel_call *c, float *to, const float *from, bool back, bool adds)
{
    const sides s = sides_of(c->node);
    const int64_t count = keel_row_count(&c->node->out[0]);
    for (int64_t row = 0; row < c->rows; row++, to += count, from += count)
        if (s.line < s.rank)
            move_lines(&s, 0, to, from, back, adds);
        else
            move_matrices(&s, c->columns, to, from, back, adds);
}

static void forward(const keel_call *c)
{
    run(c, c->out[0], c->in[0], false, false);
}

static void backward(const keel_call *c)
{
    if (c->in_grad[0]) run(c, c->in_grad[0], c->out_grad[0], true, c->in_adds[0]);
}

const keel_kernel VECTOR_KERNEL(permute) = {
    .op = &keel_op_permute,
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY(VECTOR),
    .needs = VECTOR_LEVEL,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
};
