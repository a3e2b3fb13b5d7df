/* How an optimizer changes one element: the same source for the host (_rules.c) and for GPUs
 * (cuda/move.cu), in the order of operations of Keras's update_step. To be included where REAL is
 * defined (ops/real.h), and where these are:
 *
 *     RULE               a function inside the loop
 *     TIMES(a, b)        a product that is rounded before it is added
 *     REAL_SQRT(x)       the nearest root
 *
 * SGD:   w -= w wd lr;  w -= g lr;  or m = m mu - g lr and w += m, or w += m mu - g lr.
 * Adam:  w -= w wd lr;  m += (g - m) (1 - b1);  v += (g^2 - v) (1 - b2);
 *        w -= m alpha / (sqrt(v) + eps), with amsgrad by the largest v so far. */
typedef struct REAL_(rule_t) {
    REAL rate, decay, scale, clip, momentum, alpha, one_less_beta_1, one_less_beta_2, epsilon;
} REAL_(rule_t);

static inline REAL_(rule_t) REAL_(rule_of)(const keel_rule_numbers *n)
{
    REAL_(rule_t) f;
    f.rate = (REAL)n->rate;
    f.decay = (REAL)n->decay;
    f.scale = (REAL)n->scale;
    f.clip = (REAL)n->clip;
    f.momentum = (REAL)n->momentum;
    f.alpha = (REAL)n->alpha;
    f.one_less_beta_1 = (REAL)n->one_less_beta_1;
    f.one_less_beta_2 = (REAL)n->one_less_beta_2;
    f.epsilon = (REAL)n->epsilon;
    return f;
}

RULE REAL REAL_(clipped)(const REAL_(rule_t) * f, REAL g)
{
    return KEEL_CLAMP(TIMES(g, f->scale), f->clip);
}

/* Without decay a weight is not touched: an infinite one, with which a model masks what it adds up,
 * would become NaN by w - w * 0. */
RULE REAL REAL_(decayed)(const REAL_(rule_t) * f, REAL w)
{
    return f->decay == 0 ? w : w - TIMES(TIMES(w, f->decay), f->rate);
}

RULE void REAL_(plain)(const REAL_(rule_t) * f, REAL g, REAL *w)
{
    *w = REAL_(decayed)(f, *w) - TIMES(REAL_(clipped)(f, g), f->rate);
}

RULE void REAL_(momentum)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *m)
{
    *m = TIMES(*m, f->momentum) - TIMES(REAL_(clipped)(f, g), f->rate);
    *w = REAL_(decayed)(f, *w) + *m;
}

/* Most trainings use neither decay nor a clip, and this loop is limited by its instructions. */
RULE void REAL_(momentum_only)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *m)
{
    *m = TIMES(*m, f->momentum) - TIMES(TIMES(g, f->scale), f->rate);
    *w = *w + *m;
}

RULE void REAL_(nesterov)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *m)
{
    const REAL step = TIMES(REAL_(clipped)(f, g), f->rate);
    *m = TIMES(*m, f->momentum) - step;
    *w = REAL_(decayed)(f, *w) + (TIMES(*m, f->momentum) - step);
}

RULE void REAL_(adam)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *m, REAL *v)
{
    const REAL gi = REAL_(clipped)(f, g);
    const REAL mi = *m + TIMES(gi - *m, f->one_less_beta_1);
    const REAL vi = *v + TIMES(TIMES(gi, gi) - *v, f->one_less_beta_2);
    *m = mi;
    *v = vi;
    *w = REAL_(decayed)(f, *w) - TIMES(mi, f->alpha) / (REAL_SQRT(vi) + f->epsilon);
}

RULE void REAL_(amsgrad)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *m, REAL *v, REAL *hat)
{
    const REAL gi = REAL_(clipped)(f, g);
    const REAL mi = *m + TIMES(gi - *m, f->one_less_beta_1);
    const REAL vi = *v + TIMES(TIMES(gi, gi) - *v, f->one_less_beta_2);
    const REAL hi = *hat > vi ? *hat : vi;
    *m = mi;
    *v = vi;
    *hat = hi;
    *w = REAL_(decayed)(f, *w) - TIMES(mi, f->alpha) / (REAL_SQRT(hi) + f->epsilon);
}

/* The slots of element i, as arguments. */
#define RULE_SLOTS_0
#define RULE_SLOTS_1 , &a[i]
#define RULE_SLOTS_2 , &a[i], &b[i]
#define RULE_SLOTS_3 , &a[i], &b[i], &c[i]
