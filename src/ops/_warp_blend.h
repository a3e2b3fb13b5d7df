/* The pixels that warp.c blends, of images of type FROM into outputs of type TO; NAME(x) names a
 * function. FOUR(v, x) reads four values into a vector.
 * Included once for each pair. */

/* One pixel of any number of channels, at the border or wherever vectors would read too far. */
static inline void NAME(blend_one)(TO *y, const FROM *x, const keel_shape *in, const spots *s,
                                   int i, bool whole, TO fill)
{
    int64_t at[4];
    const TO right = (TO)s->right[i], down = (TO)s->down[i];
    places(at, in, s, i);
    for (int64_t k = 0; k < in->dim[2]; k++) {
        TO v[4];
        for (int p = 0; p < (whole ? 1 : 4); p++) v[p] = at[p] < 0 ? fill : (TO)x[at[p] + k];
        y[k] = whole ? v[0]
                     : (1 - down) * ((1 - right) * v[0] + right * v[1]) +
                           down * ((1 - right) * v[2] + right * v[3]);
    }
}

/* n pixels of any number of channels */
static void NAME(blend_any)(TO *y, const FROM *x, const keel_shape *in, const spots *s, int n,
                            bool whole, TO fill)
{
    for (int i = 0; i < n; i++, y += in->dim[2]) NAME(blend_one)(y, x, in, s, i, whole, fill);
}

/* n pixels of three channels, four values at a time: the fourth is that of the next pixel, or what
 * the next one will write over. `last`: there is no next one. */
KEEL_CLONES static void NAME(blend_colours)(TO *y, const FROM *x, const keel_shape *in,
                                            const spots *s, int n, bool last, TO fill)
{
    typedef TO to4 __attribute__((vector_size(4 * sizeof(TO))));
    const int64_t w = in->dim[1], line = 3 * w, end = in->dim[0] * w - 1;
    for (int i = 0; i < n; i++, y += 3) {
        const int64_t left = s->left[i], top = s->top[i], at = top * w + left;
        if (!s->seen[i] || left < 0 || top < 0 || left + 1 >= w || at + w + 1 >= end ||
            (last && i == n - 1)) {
            NAME(blend_one)(y, x, in, s, i, false, fill);
            continue;
        }
        const FROM *from = x + 3 * at;
        to4 v[4];
        FOUR(v[0], from);
        FOUR(v[1], from + 3);
        FOUR(v[2], from + line);
        FOUR(v[3], from + line + 3);
        const TO right = (TO)s->right[i], down = (TO)s->down[i];
        const to4 made = (1 - down) * ((1 - right) * v[0] + right * v[1]) +
                         down * ((1 - right) * v[2] + right * v[3]);
        memcpy(y, &made, sizeof made);
    }
}

static void NAME(blend)(const keel_call *c, TO *y, const FROM *x, const float m[8])
{
    const keel_warp_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape, *out = &c->node->out[0].shape;
    const TO fill = (TO)a->fill_value;
    spots s;
    for (int64_t i = 0; i < out->dim[0]; i++)
        for (int64_t j = 0; j < out->dim[1]; j += SPOTS) {
            const int n = out->dim[1] - j < SPOTS ? (int)(out->dim[1] - j) : SPOTS;
            look(&s, c, m, i, j, n);
            if (a->nearest || out->dim[2] != 3)
                NAME(blend_any)(y, x, in, &s, n, a->nearest, fill);
            else
                NAME(blend_colours)
            (y, x, in, &s, n, i + 1 == out->dim[0] && j + n == out->dim[1], fill);
            y += n * out->dim[2];
        }
}
