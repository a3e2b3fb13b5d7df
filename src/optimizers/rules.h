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
 *        w -= m alpha / (sqrt(v) + eps), with amsgrad by the largest v so far.
 * The others are described in the files of their optimizers. */
typedef struct REAL_(rule_t) {
    REAL rate, decay, scale, clip, momentum, epsilon;
    REAL alpha, beta_1, beta_2, one_less_beta_1, one_less_beta_2, rho, one_less_rho, left, left_2;
    REAL of_m, under_m, of_g, under_g, l1, twice_l2, twice_shrinkage;
    REAL share, one_less_share, steps;
} REAL_(rule_t);

static inline REAL_(rule_t) REAL_(rule_of)(const keel_rule_numbers *n)
{
    REAL_(rule_t) f;
    f.rate = (REAL)n->rate;
    f.decay = (REAL)n->decay;
    f.scale = (REAL)n->scale;
    f.clip = (REAL)n->clip;
    f.momentum = (REAL)n->momentum;
    f.epsilon = (REAL)n->epsilon;
    f.alpha = (REAL)n->alpha;
    f.beta_1 = (REAL)n->beta_1;
    f.beta_2 = (REAL)n->beta_2;
    f.one_less_beta_1 = (REAL)n->one_less_beta_1;
    f.one_less_beta_2 = (REAL)n->one_less_beta_2;
    f.rho = (REAL)n->rho;
    f.one_less_rho = (REAL)n->one_less_rho;
    f.left = (REAL)n->left;
    f.left_2 = (REAL)n->left_2;
    f.of_m = (REAL)n->of_m;
    f.under_m = (REAL)n->under_m;
    f.of_g = (REAL)n->of_g;
    f.under_g = (REAL)n->under_g;
    f.l1 = (REAL)n->l1;
    f.twice_l2 = (REAL)n->twice_l2;
    f.twice_shrinkage = (REAL)n->twice_shrinkage;
    f.share = (REAL)n->share;
    f.one_less_share = (REAL)n->one_less_share;
    f.steps = (REAL)n->steps;
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

/* The mean square v, and what is under the root without a mean gradient. */
RULE REAL REAL_(mean_square)(const REAL_(rule_t) * f, REAL g, REAL *v)
{
    *v = TIMES(f->rho, *v) + TIMES(f->one_less_rho, TIMES(g, g));
    return *v + f->epsilon;
}

RULE REAL REAL_(variance)(const REAL_(rule_t) * f, REAL g, REAL *v, REAL *mean)
{
    const REAL vi = TIMES(f->rho, *v) + TIMES(f->one_less_rho, TIMES(g, g));
    const REAL ai = TIMES(f->rho, *mean) + TIMES(f->one_less_rho, g);
    *v = vi;
    *mean = ai;
    return vi - TIMES(ai, ai) + f->epsilon;
}

RULE void REAL_(rmsprop)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *v)
{
    const REAL gi = REAL_(clipped)(f, g), under = REAL_(mean_square)(f, gi, v);
    *w = REAL_(decayed)(f, *w) - TIMES(f->rate, gi) / REAL_SQRT(under);
}

RULE void REAL_(rmsprop_momentum)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *v, REAL *m)
{
    const REAL gi = REAL_(clipped)(f, g), under = REAL_(mean_square)(f, gi, v);
    *m = TIMES(f->momentum, *m) + TIMES(f->rate, gi) / REAL_SQRT(under);
    *w = REAL_(decayed)(f, *w) - *m;
}

RULE void REAL_(rmsprop_centered)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *v, REAL *mean)
{
    const REAL gi = REAL_(clipped)(f, g), under = REAL_(variance)(f, gi, v, mean);
    *w = REAL_(decayed)(f, *w) - TIMES(f->rate, gi) / REAL_SQRT(under);
}

RULE void REAL_(rmsprop_centered_momentum)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *v,
                                           REAL *m, REAL *mean)
{
    const REAL gi = REAL_(clipped)(f, g), under = REAL_(variance)(f, gi, v, mean);
    *m = TIMES(f->momentum, *m) + TIMES(f->rate, gi) / REAL_SQRT(under);
    *w = REAL_(decayed)(f, *w) - *m;
}

RULE void REAL_(adagrad)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *sum)
{
    const REAL gi = REAL_(clipped)(f, g), si = *sum + TIMES(gi, gi);
    *sum = si;
    *w = REAL_(decayed)(f, *w) - TIMES(f->rate, gi) / REAL_SQRT(si + f->epsilon);
}

RULE void REAL_(adadelta)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *a, REAL *x)
{
    const REAL gi = REAL_(clipped)(f, g);
    const REAL under = REAL_(mean_square)(f, gi, a);
    const REAL d = -(TIMES(REAL_SQRT(*x + f->epsilon), gi) / REAL_SQRT(under));
    *x = TIMES(f->rho, *x) + TIMES(f->one_less_rho, TIMES(d, d));
    *w = REAL_(decayed)(f, *w) + TIMES(f->rate, d);
}

RULE void REAL_(adamax)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *m, REAL *most)
{
    const REAL gi = REAL_(clipped)(f, g);
    const REAL mi = *m + TIMES(gi - *m, f->one_less_beta_1);
    const REAL size = gi < 0 ? -gi : gi, kept = TIMES(f->beta_2, *most);
    const REAL ui = kept > size ? kept : size;
    *m = mi;
    *most = ui;
    *w = REAL_(decayed)(f, *w) - TIMES(f->rate, mi) / TIMES(f->left, ui + f->epsilon);
}

RULE void REAL_(nadam)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *m, REAL *v)
{
    const REAL gi = REAL_(clipped)(f, g);
    const REAL mi = *m + TIMES(gi - *m, f->one_less_beta_1);
    const REAL vi = *v + TIMES(TIMES(gi, gi) - *v, f->one_less_beta_2);
    const REAL ahead = TIMES(f->of_m, mi) / f->under_m + TIMES(f->of_g, gi) / f->under_g;
    *m = mi;
    *v = vi;
    *w = REAL_(decayed)(f, *w) - TIMES(ahead, f->rate) / (REAL_SQRT(vi / f->left) + f->epsilon);
}

RULE void REAL_(lion)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *m)
{
    const REAL gi = REAL_(clipped)(f, g);
    const REAL way = TIMES(*m, f->beta_1) + TIMES(gi, f->one_less_beta_1);
    const REAL sign = way > 0 ? (REAL)1 : way < 0 ? (REAL)-1 : (REAL)0;
    *w = REAL_(decayed)(f, *w) - TIMES(f->rate, sign);
    *m = TIMES(*m, f->beta_2) + TIMES(gi, f->one_less_beta_2);
}

/* With roots; other powers have other bits on each device. */
RULE void REAL_(ftrl)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *a, REAL *z)
{
    const REAL gi = REAL_(clipped)(f, g), wi = REAL_(decayed)(f, *w);
    const REAL sum = *a + TIMES(gi, gi), after = REAL_SQRT(sum), before = REAL_SQRT(*a);
    const REAL zi =
        *z + ((gi + TIMES(f->twice_shrinkage, wi)) - TIMES((after - before) / f->rate, wi));
    *w = (KEEL_CLAMP(zi, f->l1) - zi) / (after / f->rate + f->twice_l2);
    *z = zi;
    *a = sum;
}

RULE void REAL_(schedule_free)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *z, REAL *v)
{
    const REAL gi = REAL_(clipped)(f, g);
    const REAL vi = *v + TIMES(TIMES(gi, gi) - *v, f->one_less_beta_2);
    const REAL zi = *z - TIMES(f->alpha, gi) / (REAL_SQRT(vi / f->left) + f->epsilon);
    const REAL mean = (REAL_(decayed)(f, *w) - TIMES(f->one_less_beta_1, *z)) / f->beta_1;
    const REAL all = TIMES(f->one_less_share, mean) + TIMES(f->share, zi);
    *v = vi;
    *z = zi;
    *w = TIMES(f->one_less_beta_1, zi) + TIMES(f->beta_1, all);
}

RULE void REAL_(lamb)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *m, REAL *v)
{
    const REAL gi = REAL_(clipped)(f, g);
    *m = *m + TIMES(gi - *m, f->one_less_beta_1);
    *v = *v + TIMES(TIMES(gi, gi) - *v, f->one_less_beta_2);
    *w = REAL_(decayed)(f, *w);
}

RULE void REAL_(lamb_step)(const REAL_(rule_t) * f, REAL g, REAL *w, const REAL *m, const REAL *v)
{
    (void)g;
    *w = *m / f->left / (REAL_SQRT(*v / f->left_2) + f->epsilon);
}

RULE void REAL_(muon)(const REAL_(rule_t) * f, REAL g, REAL *w, REAL *m)
{
    *m = *m + (REAL_(clipped)(f, g) - TIMES(*m, f->one_less_beta_1));
    *w = REAL_(decayed)(f, *w);
}

RULE void REAL_(muon_step)(const REAL_(rule_t) * f, REAL g, REAL *w, const REAL *m)
{
    (void)g;
    *w = TIMES(f->of_g, REAL_(clipped)(f, *w)) + TIMES(f->of_m, *m);
}

/* Adafactor's, whose epsilon, rho and alpha are eps1, b and p: what means are taken of; a mean
 * after a step; and the step before its length is known. */
RULE REAL REAL_(factored_square)(const REAL_(rule_t) * f, REAL g)
{
    const REAL gi = REAL_(clipped)(f, g);
    return TIMES(gi, gi) + f->epsilon;
}

RULE REAL REAL_(factored_mean)(const REAL_(rule_t) * f, REAL before, REAL now)
{
    return TIMES(f->rho, before) + TIMES(f->one_less_rho, now);
}

RULE REAL REAL_(factored_step)(const REAL_(rule_t) * f, REAL g, REAL v)
{
    return REAL_(clipped)(f, g) / REAL_SQRT(v);
}

/* w -= length (step / over), from the sums of squares of all w and of all steps. */
RULE REAL REAL_(rms)(double squares, int64_t count)
{
    return REAL_SQRT((REAL)(squares / (double)count));
}

RULE REAL REAL_(factored_length)(const REAL_(rule_t) * f, REAL rms, REAL least)
{
    return TIMES(rms > least ? rms : least, f->alpha);
}

RULE REAL REAL_(factored_over)(REAL rms, REAL threshold)
{
    const REAL ratio = rms / threshold;
    return ratio > 1 ? ratio : 1;
}

RULE void REAL_(sum)(const REAL_(rule_t) * f, REAL g, REAL *w)
{
    (void)f;
    *w = *w + g;
}

RULE void REAL_(mean)(const REAL_(rule_t) * f, REAL g, REAL *w)
{
    *w = (*w + g) / f->steps;
}

RULE void REAL_(average)(const REAL_(rule_t) * f, REAL g, REAL *w)
{
    *w = TIMES(f->momentum, *w) + TIMES(1 - f->momentum, g);
}

RULE void REAL_(penalty)(const REAL_(rule_t) * f, REAL g, REAL *w)
{
    *w = *w + (TIMES(f->twice_l2, g) + (g > 0 ? f->l1 : g < 0 ? -f->l1 : (REAL)0));
}

/* The slots of element i, as arguments. */
#define RULE_SLOTS_0
#define RULE_SLOTS_1 , &a[i]
#define RULE_SLOTS_2 , &a[i], &b[i]
#define RULE_SLOTS_3 , &a[i], &b[i], &c[i]
