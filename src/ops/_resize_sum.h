/* The sums of resize.c, for inputs of type FROM and outputs of type TO; NAME(x) names a function.
 * Included once for each pair. */

KEEL_CLONES static void NAME(add_share)(TO *restrict y, const FROM *restrict x, TO share, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] += share * (TO)x[k];
}

KEEL_CLONES static void NAME(one_line)(TO *restrict y, const FROM *restrict x, TO share, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = share * (TO)x[k];
}

KEEL_CLONES static void NAME(two_lines)(TO *restrict y, const FROM *restrict a, TO of_a,
                                        const FROM *restrict b, TO of_b, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = of_a * (TO)a[k] + of_b * (TO)b[k];
}

static inline __attribute__((always_inline)) void
NAME(each_place)(TO *restrict y, const FROM *restrict x, const table *t, int64_t size, int64_t n)
{
    const float *w = t->weight;
    for (int64_t o = 0; o < size; o++, y += n, w += 2) {
        const FROM *from = x + t->first[o] * n;
        const TO one = (TO)w[0], other = (TO)w[1];
        if (other == 0) /* at a border, behind which nothing may be read */
            for (int64_t k = 0; k < n; k++) y[k] = one * (TO)from[k];
        else
            for (int64_t k = 0; k < n; k++) y[k] = one * (TO)from[k] + other * (TO)from[n + k];
    }
}

/* Places of few values, such as pixels: a call for each would cost more than its sum. */
KEEL_CLONES static void NAME(two_places)(TO *restrict y, const FROM *restrict x, const table *t,
                                         int64_t size, int64_t n)
{
    if (n == 1)
        NAME(each_place)(y, x, t, size, 1);
    else if (n == 3)
        NAME(each_place)(y, x, t, size, 3);
    else
        NAME(each_place)(y, x, t, size, n);
}

/* Two neighbours of what is there make each place. */
static void NAME(sum_two)(const keel_call *c, const table *t)
{
    enum { FEW = 8 };
    const keel_resize_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    const FROM *x = c->in[0];
    TO *y = c->out[0];
    for (int64_t outer = 0; outer < s.outer; outer++, x += s.n * s.inner) {
        if (s.inner <= FEW) {
            NAME(two_places)(y, x, t, a->size, s.inner);
            y += a->size * s.inner;
            continue;
        }
        for (int64_t o = 0; o < a->size; o++, y += s.inner) {
            const float *w = t->weight + 2 * o;
            const FROM *from = x + t->first[o] * s.inner;
            if (w[1] == 0)
                NAME(one_line)(y, from, (TO)w[0], s.inner);
            else
                NAME(two_lines)(y, from, (TO)w[0], from + s.inner, (TO)w[1], s.inner);
        }
    }
}

static void NAME(sum)(const keel_call *c)
{
    const keel_resize_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    const table t = table_of(c);
    const FROM *x = c->in[0];
    TO *y = c->out[0];
    if (t.taps == 2 && a->begin == 0 && a->length == s.n && !a->moves &&
        keel_resize_radius(a) == 0) {
        NAME(sum_two)(c, &t);
        return;
    }
    for (int64_t outer = 0; outer < s.outer; outer++, x += s.n * s.inner)
        for (int64_t o = 0; o < a->size; o++, y += s.inner) {
            TO outside = 0;
            memset(y, 0, (size_t)s.inner * sizeof *y);
            for (int64_t k = 0; k < t.taps; k++) {
                const TO weight = (TO)t.weight[o * t.taps + k];
                const int64_t at = a->begin + t.first[o] + k;
                if (weight == 0) continue;
                if (at >= 0 && at < s.n)
                    NAME(add_share)(y, x + at * s.inner, weight, s.inner);
                else
                    outside += weight * (TO)a->fill;
            }
            for (int64_t k = 0; outside != 0 && k < s.inner; k++) y[k] += outside;
        }
}

#undef FROM
#undef TO
#undef NAME
