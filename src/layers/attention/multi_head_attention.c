/* Attention with several heads (Vaswani et al. 2017). Query, key and value are projected to heads,
 * each head weighs the values by softmax(query key^T / sqrt(key_dim)), and another projection joins
 * the heads. The projections are layers, as in Keras. */
#include "layers/attention/_heads.h"
#include <math.h>

typedef struct args_t {
    keel_heads_args heads;
    int64_t num_heads, key_dim, value_dim;
    keel_ints output_shape, attention_axes;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, num_heads, NULL, 1, 1e6, "how many heads"),
    KEEL_INT(args_t, key_dim, NULL, 1, 1e9, "size of each head of query and key"),
    KEEL_INT(args_t, value_dim, "null", 1, 1e9, "size of each head of value; null: key_dim"),
    KEEL_INTS(args_t, output_shape, 0, "null", 1, 1e9,
              "last dims of the output; null: the query's"),
    KEEL_INTS(args_t, attention_axes, 0, "null", -6, 6,
              "dims that attend to each other, the batch is 0; null: all but the last"),
    KEEL_HEADS_FIELDS,
    { 0 },
};

static const keel_heads_keys keys = { "query_dense", "key_dense", "value_dense", "output_dense" };

static int64_t value_dim(const args_t *a)
{
    return a->value_dim == KEEL_INT_NULL ? a->key_dim : a->value_dim;
}

static keel_status make(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_ints heads = { 2, { a->num_heads, a->key_dim } };
    const keel_ints values = { 2, { a->num_heads, value_dim(a) } };
    keel_shape of[3];
    KEEL_TRY(keel_heads_shapes(e, of));
    if (of[0].rank < 2 || of[1].rank < 2 || of[2].rank < 2)
        return keel_fail(KEEL_ESHAPE, "expected rows of (time, ..., features)");
    return keel_heads_make(e, &keys, of,
                           &(keel_heads_sizes){ heads, heads, values, values, a->output_shape });
}

/* For rows [..., heads, size]: which dims attend to each other. */
static keel_status attending(const args_t *a, int rank, bool over[KEEL_RANK_MAX])
{
    for (int d = 0; d < KEEL_RANK_MAX; d++) over[d] = a->attention_axes.count < 0 && d < rank - 2;
    for (int i = 0; i < a->attention_axes.count; i++) {
        const int64_t axis = a->attention_axes.at[i];
        const int64_t d = (axis < 0 ? axis + rank : axis) - 1;
        if (d < 0 || d >= rank - 2 || over[d])
            return keel_fail(KEEL_EARG, "attention_axes: %lld is no dim between batch and features",
                             (long long)axis);
        over[d] = true;
    }
    return a->attention_axes.count == 0 ? keel_fail(KEEL_EARG, "attention_axes: none") : KEEL_OK;
}

/* How heads [..., heads, size] are turned: other dims first, then those that attend as one dim,
 * then the size; or each matrix transposed. Heads are the last of the others, or lie behind those
 * that attend. */
typedef struct turned {
    int64_t from[KEEL_RANK_MAX];
    keel_shape apart, joined; /* with the dims that attend, and with one for them */
} turned;

static turned turn(const bool over[KEEL_RANK_MAX], const keel_shape *s, bool heads_behind,
                   bool transposed)
{
    enum { OTHERS, ATTENDING, BEHIND };
    const int order[] = { OTHERS, transposed ? BEHIND : ATTENDING,
                          transposed ? ATTENDING : BEHIND };
    turned t = { .apart.rank = s->rank };
    int n = 0;
    for (int k = 0; k < 3; k++) {
        int64_t places = 1;
        for (int d = 0; d < s->rank; d++) {
            const bool behind = d == s->rank - 1 || (heads_behind && d == s->rank - 2);
            if ((behind ? BEHIND : over[d] ? ATTENDING : OTHERS) != order[k]) continue;
            t.apart.dim[n] = s->dim[d];
            t.from[n++] = d;
            places *= s->dim[d];
            if (order[k] != ATTENDING) t.joined.dim[t.joined.rank++] = s->dim[d];
        }
        if (order[k] == ATTENDING) t.joined.dim[t.joined.rank++] = places;
    }
    return t;
}

static keel_status turn_back(keel_emit *e, const turned *t, int64_t size, keel_value *v)
{
    int64_t back[KEEL_RANK_MAX];
    keel_shape apart = t->apart;
    for (int d = 0; d < apart.rank; d++) back[t->from[d]] = d;
    apart.dim[apart.rank - 1] = size;
    KEEL_TRY(keel_emit_view(e, &apart, *v, v));
    return keel_emit_permuted(e, back, *v, v);
}

/* [others.., heads, T.., S..]; with T and S as one dim each: `joined`. */
static keel_status scores_of(const bool over[KEEL_RANK_MAX], const keel_shape *q,
                             const keel_shape *k, keel_shape *apart, keel_shape *joined)
{
    int64_t places[2] = { 1, 1 };
    int rank = q->rank - 1;
    *apart = *joined = (keel_shape){ 0 };
    for (int d = 0; d < q->rank - 1; d++) rank += over[d];
    if (rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "scores of more than %d dims", KEEL_RANK_MAX);
    for (int d = 0; d < q->rank - 1; d++)
        if (!over[d]) apart->dim[apart->rank++] = joined->dim[joined->rank++] = q->dim[d];
    for (int i = 0; i < 2; i++) {
        for (int d = 0; d < q->rank - 1; d++)
            if (over[d]) places[i] *= apart->dim[apart->rank++] = (i ? k : q)->dim[d];
        joined->dim[joined->rank++] = places[i];
    }
    return KEEL_OK;
}

static keel_status join(keel_emit *e, const keel_heads_call *c, keel_value mask, keel_value of[3],
                        keel_value *y)
{
    const args_t *a = e->args;
    const double scale = 1 / sqrt((double)a->key_dim);
    bool over[KEEL_RANK_MAX], plain = true;
    keel_shape shape[3], scores, given;
    turned t[3];
    mask = e->mask[c->in[KEEL_HEADS_QUERY]]; /* Keras takes no other */
    if (c->in[KEEL_HEADS_QUERY_MASK] >= 0 && mask < 0)
        return keel_fail(KEEL_EUNSUP, "query_mask: Keras reads the mask of the query alone");
    for (int i = 0; i < 3; i++) shape[i] = keel_graph_spec(e->graph, of[i])->shape;
    const int rank = shape[0].rank;
    KEEL_TRY(attending(a, rank, over));
    bool fits = rank == shape[1].rank && rank == shape[2].rank;
    for (int d = 0; fits && d < rank - 2; d++) {
        fits =
            shape[1].dim[d] == shape[2].dim[d] && (over[d] || shape[0].dim[d] == shape[1].dim[d]);
        plain = plain && over[d] == (d == rank - 3); /* the last alone attends */
    }
    if (!fits)
        return keel_fail(KEEL_ESHAPE, "key and value must have the same dims but the last, and "
                                      "those of the query where they do not attend");
    for (int i = 0; i < 3; i++) {
        t[i] = turn(over, &shape[i], !c->scores, c->scores && i == 1);
        KEEL_TRY(keel_emit_permuted(e, t[i].from, of[i], &of[i]));
        KEEL_TRY(keel_emit_view(e, &t[i].joined, of[i], &of[i]));
    }
    if (c->scores) {
        KEEL_TRY(scores_of(over, &shape[0], &shape[1], &given, &scores));
        KEEL_TRY(keel_heads_score(e, c, mask, plain, scale, of, &scores, &given, y));
    } else {
        KEEL_TRY(keel_heads_attend(e, c, mask, plain, scale, of, y));
    }
    return turn_back(e, &t[0], value_dim(a), y);
}

static keel_status emit(keel_emit *e)
{
    return keel_heads_emit(e, &keys, join);
}

const keel_layer keel_layer_multi_head_attention = {
    .type = { KEEL_LAYER_HEAD("MultiHeadAttention",
                              "Each place is a weighted sum of the places that it attends to."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 2,
    .max_inputs = KEEL_HEADS_INPUTS,
    .by_arguments = true,
    .takes_masks = true,
    .supports_masking = true,
    .make = make,
    .passes_activity = true,
    .emit = emit,
};
