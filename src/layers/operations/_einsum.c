/* See _einsum.h. Two operands become one product of matrices: letters of both that the result has
 * are its places, letters of both that it has not are summed over by the product. Of more operands
 * the first two are multiplied, and what comes out by the next: it keeps the letters that the
 * result or a later operand has. */
#include "layers/operations/_einsum.h"
#include "base/plural.h"
#include "layers/operations/_values.h"
#include <stdio.h>
#include <string.h>

bool keel_letters_have(const char *letters, char c)
{
    return c && strchr(letters, c);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- '...' ----------------------------------------------------------------------------------- */

enum { SUBSCRIPTS_MAX = 160 };

/* How many dims the '...' of an operand stands for, whose term is `part`; 0: it has none. */
static keel_status dims_of_ellipsis(const keel_emit *e, const keel_term *x, const char *part,
                                    int *out)
{
    int letters = 0;
    bool there = false;
    for (; *part && *part != ',' && *part != '-'; part++) {
        letters += is_letter(*part);
        there = there || *part == '.';
    }
    *out = 0;
    if (!there) return KEEL_OK;
    if (x->value < 0) return keel_fail(KEEL_EUNSUP, "subscripts: '...' in a kernel");
    const int dims = keel_graph_spec(e->graph, x->value)->shape.rank + !x->array;
    *out = dims - letters;
    return *out >= 0 ? KEEL_OK
                     : keel_fail(KEEL_ESHAPE, "subscripts: %d letters for %d dims with the batch",
                                 letters, dims);
}

/* Writes the subscripts with letters in place of '...': the dims that it stands for in different
 * terms are counted from the last one. */
static keel_status name_all(const keel_emit *e, const char *text, const keel_term *x, int n,
                            char to[SUBSCRIPTS_MAX], char name[KEEL_LETTERS])
{
    int most = 0, named = 0, dims = 0, k = 0, at = 0;
    const char *part = text;
    for (int i = 0; i < n && part; i++) {
        KEEL_TRY(dims_of_ellipsis(e, &x[i], part, &dims));
        most = dims > most ? dims : most;
        part = strchr(part, ',');
        part = part ? part + 1 : NULL;
    }
    for (char c = 'A'; c <= 'Z' && named < most; c++)
        if (!strchr(text, c)) name[named++] = c;
    if (named < most) return keel_fail(KEEL_EUNSUP, "subscripts: no letters are left for '...'");

    if (n > 0) KEEL_TRY(dims_of_ellipsis(e, &x[0], text, &dims));
    for (const char *c = text; *c; c++) {
        if (at + most + 1 >= SUBSCRIPTS_MAX)
            return keel_fail(KEEL_EUNSUP, "subscripts: more than %d letters", SUBSCRIPTS_MAX);
        if (*c == ',' && ++k < n) KEEL_TRY(dims_of_ellipsis(e, &x[k], c + 1, &dims));
        if (*c == '>') dims = most;
        if (*c != '.') {
            to[at++] = *c;
            continue;
        }
        if (strncmp(c, "...", 3)) return keel_fail(KEEL_EARG, "subscripts: '.' is no letter");
        memcpy(to + at, name + most - dims, (size_t)dims);
        at += dims;
        c += 2;
    }
    to[at] = 0;
    return KEEL_OK;
}

/* ---- terms ----------------------------------------------------------------------------------- */

/* Reads the letters of one term, up to `end`, with the batch first. */
static keel_status read_term(const char *at, const char *end, char batch, keel_term *out)
{
    int n = 0;
    bool begun = out->array;
    for (; at < end; at++) {
        if (*at == ' ') continue;
        if (!is_letter(*at)) return keel_fail(KEEL_EARG, "subscripts: '%c' is no letter", *at);
        if ((*at == batch) == begun)
            return keel_fail(KEEL_EUNSUP,
                             "subscripts: the batch must stay first in each value of "
                             "the model and in the result, and be nowhere else: rows do "
                             "not mix");
        if (begun && n == KEEL_RANK_MAX)
            return keel_fail(KEEL_EUNSUP, "more than %d dims of a row", KEEL_RANK_MAX);
        if (begun) out->letter[n++] = *at;
        begun = true;
    }
    return begun ? KEEL_OK
                 : keel_fail(KEEL_EUNSUP, "subscripts: each term must have the batch: rows do not "
                                          "mix");
}

/* Writes the result that NumPy means where there is no '->': what '...' stands for, then the
 * letters that are there once, sorted. */
static keel_status name_result(char text[SUBSCRIPTS_MAX], const char *dots)
{
    char result[SUBSCRIPTS_MAX];
    if (strstr(text, "->")) return KEEL_OK;
    int n = snprintf(result, sizeof result, "%s", dots);
    for (int c = 'A'; c <= 'z' && n < SUBSCRIPTS_MAX - 1; c++) {
        const char *first = is_letter((char)c) ? strchr(text, c) : NULL;
        if (first && !strchr(first + 1, c) && !strchr(dots, c)) result[n++] = (char)c;
    }
    result[n] = 0;
    if (strlen(text) + 2 + (size_t)n >= SUBSCRIPTS_MAX)
        return keel_fail(KEEL_EUNSUP, "subscripts: more than %d letters", SUBSCRIPTS_MAX);
    strcat(strcat(text, "->"), result);
    return KEEL_OK;
}

/* Reads "ab,ac->abc" into n operands and the result. */
static keel_status read(const char *text, int n, keel_term *in, keel_term *out)
{
    const char *arrow = strstr(text, "->"), *at = text;
    const char batch = arrow[2 + strspn(arrow + 2, " ")];
    for (int i = 0; i < n; i++) {
        const char *comma = memchr(at, ',', (size_t)(arrow - at));
        if ((comma != NULL) != (i < n - 1))
            return keel_fail(KEEL_EARG, "subscripts: '%.80s' for %d operand%s", text, n, keel_s(n));
        KEEL_TRY(read_term(at, comma ? comma : arrow, batch, &in[i]));
        at = comma ? comma + 1 : arrow;
    }
    KEEL_TRY(read_term(arrow + 2, text + strlen(text), batch, out));
    for (const char *c = out->letter; *c; c++) {
        bool there = false;
        for (int i = 0; i < n; i++) there = there || keel_letters_have(in[i].letter, *c);
        if (!there)
            return keel_fail(KEEL_EARG, "subscripts: '%c' is in %s operand", *c,
                             n == 2 ? "neither" : "no");
        if (keel_letters_have(c + 1, *c))
            return keel_fail(KEEL_EARG, "subscripts: '%c' twice in the result", *c);
    }
    return KEEL_OK;
}

keel_status keel_terms_read(const keel_emit *e, const char *subscripts, keel_term *in, int n,
                            keel_term *out, char dots[KEEL_LETTERS])
{
    char text[SUBSCRIPTS_MAX];
    memset(dots, 0, KEEL_LETTERS);
    KEEL_TRY(name_all(e, subscripts, in, n, text, dots));
    KEEL_TRY(name_result(text, dots));
    return read(text, n, in, out);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Sums over the dims whose letters are in none of the two lists. */
static keel_status sum_rest(keel_emit *e, keel_term *t, const char *kept, const char *also)
{
    keel_reduce_args op = { .to = KEEL_REDUCE_SUM };
    char left[KEEL_RANK_MAX + 1] = "";
    int n = 0;
    for (int d = 0; t->letter[d]; d++) {
        op.over[d] =
            !keel_letters_have(kept, t->letter[d]) && !keel_letters_have(also, t->letter[d]);
        if (!op.over[d]) left[n++] = t->letter[d];
    }
    if (t->letter[n] == 0) return KEEL_OK;
    memcpy(t->letter, left, sizeof left);
    return keel_emit_on(e, &keel_op_reduce, &op, &t->value, 1, &t->value);
}

keel_status keel_term_reorder(keel_emit *e, keel_term *t, const char *order)
{
    int64_t from[KEEL_RANK_MAX];
    for (int d = 0; order[d]; d++) from[d] = strchr(t->letter, order[d]) - t->letter;
    strcpy(t->letter, order);
    return keel_emit_permuted(e, from, t->value, &t->value);
}

static int64_t dim_of(const keel_emit *e, const keel_term *t, char c)
{
    return keel_graph_spec(e->graph, t->value)->shape.dim[strchr(t->letter, c) - t->letter];
}

void keel_letters_choose(char *to, const char *of, const char *a, bool in_a, const char *b,
                         bool in_b)
{
    for (; *of; of++)
        if (keel_letters_have(a, *of) == in_a && keel_letters_have(b, *of) == in_b) *to++ = *of;
    *to = 0;
}

static keel_status as_matrices(keel_emit *e, keel_term *t, const char *first, const char *second,
                               const char *third)
{
    const char *group[3] = { first, second, third };
    char order[3 * KEEL_RANK_MAX + 1] = "";
    keel_shape shape = KEEL_SHAPE(1, 1, 1);
    for (int g = 0; g < 3; g++) {
        strcat(order, group[g]);
        for (const char *c = group[g]; *c; c++) shape.dim[g] *= dim_of(e, t, *c);
    }
    KEEL_TRY(keel_term_reorder(e, t, order));
    return keel_emit_view(e, &shape, t->value, &t->value);
}

/* A term that has a letter twice becomes its diagonal there. */
static keel_status take_diagonals(keel_emit *e, keel_term *t)
{
    for (int d = 0; t->letter[d];) {
        const char c = t->letter[d], *twin = strchr(t->letter + d + 1, c);
        if (!twin) {
            d++;
            continue;
        }
        const int other = (int)(twin - t->letter), rank = (int)strlen(t->letter);
        const keel_shape *s = keel_value_shape(e, t->value);
        if (s->dim[d] != s->dim[other])
            return keel_fail(KEEL_ESHAPE, "'%c' is %lld and %lld in one operand", c,
                             (long long)s->dim[d], (long long)s->dim[other]);
        KEEL_TRY(keel_emit_diagonal_of(e, t->value, d, other, 0, &t->value));
        /* it is the last dim now; what stood between moves down */
        int n = 0;
        for (int k = 0; k < rank; k++)
            if (k != d && k != other) t->letter[n++] = t->letter[k];
        t->letter[n++] = c;
        t->letter[n] = 0;
    }
    return KEEL_OK;
}

/* *a becomes the product, with the letters `kept`. */
static keel_status multiply(keel_emit *e, keel_term *a, keel_term *b, const char *kept)
{
    char both[KEEL_RANK_MAX + 1], over[KEEL_RANK_MAX + 1];
    char left[KEEL_RANK_MAX + 1], right[KEEL_RANK_MAX + 1];
    keel_shape shape = { 0 };
    keel_term y = { .value = -1 };
    keel_letters_choose(both, a->letter, b->letter, true, kept, true);
    keel_letters_choose(over, a->letter, b->letter, true, kept, false);
    keel_letters_choose(left, a->letter, b->letter, false, kept, true);
    keel_letters_choose(right, b->letter, a->letter, false, kept, true);
    for (const char *c = a->letter; *c; c++)
        if (keel_letters_have(b->letter, *c) && dim_of(e, a, *c) != dim_of(e, b, *c))
            return keel_fail(KEEL_ESHAPE, "'%c' is %lld in one operand, %lld in the other", *c,
                             (long long)dim_of(e, a, *c), (long long)dim_of(e, b, *c));
    for (const char *c = both; *c; c++) shape.dim[shape.rank++] = dim_of(e, a, *c);
    for (const char *c = left; *c; c++) shape.dim[shape.rank++] = dim_of(e, a, *c);
    for (const char *c = right; *c; c++) shape.dim[shape.rank++] = dim_of(e, b, *c);
    KEEL_TRY(as_matrices(e, a, both, left, over));
    KEEL_TRY(as_matrices(e, b, both, over, right));
    const keel_value in[2] = { a->value, b->value };
    KEEL_TRY(keel_emit_on(e, &keel_op_matmul, NULL, in, 2, &y.value));
    KEEL_TRY(keel_emit_view(e, &shape, y.value, &y.value));
    strcat(strcat(strcpy(y.letter, both), left), right); /* the same letters as `kept` */
    *a = y;
    return KEEL_OK;
}

/* in[0] is what operands 0 to i - 1 have made: the letters that it and operand i have, and that are
 * still wanted. */
static keel_status letters_of_product(const keel_term *in, int i, int n, const keel_term *out,
                                      char kept[KEEL_RANK_MAX + 1])
{
    char all[2 * KEEL_RANK_MAX + 1];
    int at = 0;
    keel_letters_choose(all, in[i].letter, in[0].letter, false, "", false);
    strcat(all, in[0].letter);
    for (const char *c = all; *c; c++) {
        bool wanted = keel_letters_have(out->letter, *c);
        for (int k = i + 1; k < n; k++) wanted = wanted || keel_letters_have(in[k].letter, *c);
        if (!wanted) continue;
        if (at == KEEL_RANK_MAX)
            return keel_fail(KEEL_EUNSUP,
                             "the product of the first %d operands has more than %d "
                             "dims of a row",
                             i + 1, KEEL_RANK_MAX);
        kept[at++] = *c;
    }
    kept[at] = 0;
    return KEEL_OK;
}

keel_status keel_emit_einsum(keel_emit *e, const char *subscripts, const keel_term *x, int n)
{
    char dots[KEEL_LETTERS], kept[KEEL_RANK_MAX + 1];
    keel_term in[KEEL_EINSUM_MAX] = { 0 }, out = { 0 };
    for (int i = 0; i < n; i++) in[i] = x[i];
    KEEL_TRY(keel_terms_read(e, subscripts, in, n, &out, dots));
    for (int i = 0; i < n; i++) {
        const int rank = keel_value_shape(e, in[i].value)->rank;
        if ((int)strlen(in[i].letter) != rank)
            return keel_fail(KEEL_ESHAPE, "subscripts: %d letter%s for %d dim%s of a row",
                             (int)strlen(in[i].letter), keel_s((int)strlen(in[i].letter)), rank,
                             keel_s(rank));
        KEEL_TRY(take_diagonals(e, &in[i]));
    }
    for (int i = 0; i < n; i++) {
        char others[KEEL_EINSUM_MAX * KEEL_RANK_MAX + 1] = "";
        for (int k = 0; k < n; k++)
            if (k != i) strcat(others, in[k].letter);
        KEEL_TRY(sum_rest(e, &in[i], out.letter, others));
    }
    for (int i = 1; i < n; i++) {
        KEEL_TRY(letters_of_product(in, i, n, &out, kept));
        KEEL_TRY(multiply(e, &in[0], &in[i], kept));
    }
    KEEL_TRY(keel_term_reorder(e, &in[0], out.letter));
    e->out[0] = in[0].value;
    return KEEL_OK;
}

keel_status keel_emit_summed(keel_emit *e, const keel_term in[2], int over, const int64_t *first,
                             const int64_t *second)
{
    char term[2][KEEL_LETTERS] = { "", "" }, out[2 * KEEL_LETTERS] = "", text[6 * KEEL_LETTERS];
    int n = 0;
    for (int k = 0; k < 2; k++)
        for (int d = 0; d < keel_graph_spec(e->graph, in[k].value)->shape.rank; d++)
            term[k][d] = (char)((k ? 'A' : 'b') + d);
    for (int i = 0; i < over; i++) term[1][second[i]] = term[0][first[i]];
    for (int k = 0; k < 2; k++)
        for (const char *c = term[k]; *c; c++)
            if (!keel_letters_have(term[1 - k], *c)) out[n++] = *c;
    snprintf(text, sizeof text, "%s%s,%s%s->a%s", in[0].array ? "" : "a", term[0],
             in[1].array ? "" : "a", term[1], out);
    return keel_emit_einsum(e, text, in, 2);
}

keel_status keel_emit_contraction(keel_emit *e, int over, const int64_t *x_axes,
                                  const int64_t *axes)
{
    keel_term in[2] = { { .value = e->in[0] }, { .array = true } };
    int64_t first[KEEL_RANK_MAX + 1], second[KEEL_RANK_MAX + 1];
    const int rank = keel_emit_in(e, 0)->shape.rank;
    const json_t *array = keel_argument(e, 1, "x2");
    keel_operand x;
    KEEL_TRY(keel_operand_at(e, 0, "x1", &x));
    if (x.value < 0 || !json_is_array(array))
        return keel_fail(KEEL_EUNSUP, "a value of the model and an array are supported: of two "
                                      "values each row of a batch would meet all others");
    KEEL_TRY(keel_emit_numbers(e, array, "x2", &in[1].value));
    const int array_rank = keel_graph_spec(e->graph, in[1].value)->shape.rank;
    for (int i = 0; i < over; i++) {
        first[i] = x_axes[i] < 0 ? x_axes[i] + rank : x_axes[i] - 1;
        second[i] = axes[i] < 0 ? axes[i] + array_rank : axes[i];
        if (first[i] < 0 || first[i] >= rank || second[i] < 0 || second[i] >= array_rank)
            return keel_fail(KEEL_EUNSUP,
                             "axes %lld and %lld: they must be there, and not be the "
                             "batch: rows do not mix",
                             (long long)x_axes[i], (long long)axes[i]);
    }
    return keel_emit_summed(e, in, over, first, second);
}
