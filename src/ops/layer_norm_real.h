/* The loops of the references of layer_norm and add_layer_norm. Included where REAL is defined (see
 * ops/real.h), so there is no include guard. */

/* y from x, for all places of the call. */
static inline void REAL_(normalize)(const keel_call *c, const REAL *x, REAL *y)
{
    const keel_layer_norm_args *a = c->node->args;
    const int64_t n = keel_layer_norm_length(c->node);
    const int64_t places = c->rows * (keel_row_count(&c->node->in[0]) / n);
    const REAL *gamma = a->scale ? c->weight[0] : NULL;
    const REAL *beta = a->center ? c->weight[a->scale] : NULL;
    REAL *stats = c->node->n_saved ? c->saved[0] : NULL;
    for (int64_t i = 0; i < places; i++, x += n, y += n) {
        double mean = 0, squares = 0;
        for (int64_t k = 0; k < n && !a->rms; k++) mean += x[k];
        mean /= (double)n;
        for (int64_t k = 0; k < n; k++) squares += (x[k] - mean) * (x[k] - mean);
        const double r = 1 / sqrt(squares / (double)n + a->epsilon);
        for (int64_t k = 0; k < n; k++)
            y[k] = (REAL)((x[k] - mean) * r * (gamma ? gamma[k] : 1) + (beta ? beta[k] : 0));
        if (!stats) continue;
        stats[2 * i] = (REAL)mean;
        stats[2 * i + 1] = (REAL)r;
    }
}

/* The gradient of x is that by dy (NULL: none) and `more` (NULL: nothing more). It goes to all
 * inputs. */
static inline void REAL_(normalize_back)(const keel_call *c, const REAL *x, const REAL *dy,
                                         const REAL *more)
{
    const keel_layer_norm_args *a = c->node->args;
    const int64_t n = keel_layer_norm_length(c->node);
    const int64_t places = c->rows * (keel_row_count(&c->node->in[0]) / n);
    const REAL *gamma = a->scale ? c->weight[0] : NULL, *stats = c->saved[0];
    for (int64_t i = 0; i < places; i++) {
        const double mean = stats[2 * i], r = stats[2 * i + 1];
        double sum = 0, product = 0;
        for (int64_t k = i * n; dy && k < (i + 1) * n; k++) {
            const double g = (double)dy[k] * (gamma ? gamma[k - i * n] : 1);
            sum += g;
            product += g * (x[k] - mean) * r;
        }
        const double shift = a->rms ? 0 : sum / (double)n, slope = product / (double)n;
        for (int64_t k = i * n; k < (i + 1) * n; k++) {
            const double g = dy ? (double)dy[k] * (gamma ? gamma[k - i * n] : 1) : 0;
            const double v = r * (g - shift - (x[k] - mean) * r * slope);
            const double all = more ? (double)(REAL)(more[k] + v) : v;
            for (int to = 0; to < c->node->n_in; to++) {
                REAL *dx = c->in_grad[to];
                if (dx) dx[k] = (REAL)(c->in_adds[to] ? dx[k] + all : all);
            }
        }
    }
}

static inline void REAL_(normalize_weights)(const keel_call *c, const REAL *x, const REAL *dy)
{
    const keel_layer_norm_args *a = c->node->args;
    const int64_t n = keel_layer_norm_length(c->node);
    const int64_t places = c->rows * (keel_row_count(&c->node->in[0]) / n);
    const REAL *stats = c->saved[0];
    REAL *dgamma = a->scale ? c->weight_grad[0] : NULL;
    REAL *dbeta = a->center ? c->weight_grad[a->scale] : NULL;
    for (int64_t k = 0; k < n; k++) {
        double sum = 0, product = 0;
        for (int64_t i = 0; dy && i < places; i++) {
            const double g = dy[i * n + k];
            sum += g;
            product += g * (x[i * n + k] - stats[2 * i]) * stats[2 * i + 1];
        }
        if (dgamma) dgamma[k] = (REAL)product + (c->weight_adds ? dgamma[k] : 0);
        if (dbeta) dbeta[k] = (REAL)sum + (c->weight_adds ? dbeta[k] : 0);
    }
}
