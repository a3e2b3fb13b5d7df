/* Of recolor.c, once for each REAL: changes of hue and saturation, and their gradients. */

/* Of HSV with value v = max x and saturation s = (v - min x) / v the new colour is
 * v (1 - s' (v - x) / (v - min x)). */
typedef struct REAL_(hsv) {
    int most, least; /* channels */
    REAL v, range, s;
} REAL_(hsv);

static REAL_(hsv) REAL_(hsv_of)(const REAL x[3])
{
    REAL_(hsv) h = { 0 };
    for (int k = 1; k < 3; k++) {
        if (x[k] > x[h.most]) h.most = k;
        if (x[k] < x[h.least]) h.least = k;
    }
    h.v = x[h.most];
    h.range = h.v - x[h.least];
    h.s = h.v > 0 ? h.range / h.v : 0;
    return h;
}

static void REAL_(saturate)(REAL *y, const REAL *x, int64_t n, REAL factor, REAL low, REAL high)
{
    for (int64_t i = 0; i < n; i++, x += 3, y += 3) {
        const REAL_(hsv) h = REAL_(hsv_of)(x);
        const REAL s = REAL_(clip)(h.s * factor, low, high);
        for (int k = 0; k < 3; k++) {
            /* A gray pixel has no hue: TensorFlow takes red. */
            const REAL from = h.range > 0 ? (h.v - x[k]) / h.range : (REAL)(k > 0);
            y[k] = h.v * (1 - s * from);
        }
    }
}

static void REAL_(saturate_back)(REAL *dx, const REAL *dy, const REAL *x, int64_t n, REAL factor,
                                 REAL low, REAL high)
{
    for (int64_t i = 0; i < n; i++, x += 3, dy += 3, dx += 3) {
        const REAL_(hsv) h = REAL_(hsv_of)(x);
        const REAL s = h.s * factor;
        const bool free = s >= low && s <= high && h.v > 0; /* then s v / range is the factor */
        const REAL bound = REAL_(clip)(s, low, high);
        for (int k = 0; k < 3; k++) {
            const REAL from = h.range > 0 ? (h.v - x[k]) / h.range : (REAL)(k > 0);
            if (free) {
                dx[h.most] += dy[k] * (1 - factor);
                dx[k] += dy[k] * factor;
                continue;
            }
            dx[h.most] += dy[k] * (1 - bound * from);
            if (!(h.range > 0)) continue;
            const REAL g = dy[k] * bound * h.v / h.range;
            dx[k] += g;
            dx[h.most] -= g * (1 - from);
            dx[h.least] -= g * from;
        }
    }
}

/* Where a hue of h sixths of a turn has channel k between v (0) and the least (1), and how it moves
 * there with h. */
static REAL REAL_(below)(REAL h, int k, REAL *slope)
{
    const REAL at = h - 2 * (REAL)k; /* red is 0, green 2, blue 4 */
    const REAL turn = at > 3 ? at - 6 : at < -3 ? at + 6 : at, away = turn < 0 ? -turn : turn;
    *slope = away > 1 && away < 2 ? (turn < 0 ? (REAL)-1 : (REAL)1) : 0;
    return REAL_(clip)(away - 1, 0, 1);
}

/* Hue in sixths of a turn, and of its formula the sector and the two channels it subtracts. */
static REAL REAL_(hue_of)(const REAL x[3], const REAL_(hsv) * h, int *plus, int *minus)
{
    *plus = (h->most + 1) % 3;
    *minus = (h->most + 2) % 3;
    if (!(h->range > 0)) return 0;
    const REAL hue = 2 * (REAL)h->most + (x[*plus] - x[*minus]) / h->range;
    return hue < 0 ? hue + 6 : hue;
}

static REAL REAL_(turned)(REAL hue, REAL turn)
{
    const REAL h = hue + 6 * turn;
    return h > 6 ? h - 6 : h < 0 ? h + 6 : h;
}

static void REAL_(hue)(REAL *y, const REAL *x, int64_t n, REAL turn, REAL low, REAL high)
{
    for (int64_t i = 0; i < n; i++, x += 3, y += 3) {
        int plus, minus;
        REAL slope, unit[3];
        for (int k = 0; k < 3; k++) unit[k] = (x[k] - low) / (high - low);
        REAL_(hsv) h = REAL_(hsv_of)(unit);
        const REAL hue = REAL_(turned)(REAL_(hue_of)(unit, &h, &plus, &minus), turn);
        for (int k = 0; k < 3; k++) {
            const REAL v = h.v - h.s * h.v * REAL_(below)(hue, k, &slope);
            y[k] = REAL_(clip)(v, 0, 1) * (high - low) + low;
        }
    }
}

static void REAL_(hue_back)(REAL *dx, const REAL *dy, const REAL *x, int64_t n, REAL turn, REAL low,
                            REAL high)
{
    for (int64_t i = 0; i < n; i++, x += 3, dy += 3, dx += 3) {
        int plus, minus;
        REAL unit[3];
        for (int k = 0; k < 3; k++) unit[k] = (x[k] - low) / (high - low);
        const REAL_(hsv) h = REAL_(hsv_of)(unit);
        const REAL hue = REAL_(hue_of)(unit, &h, &plus, &minus);
        const REAL range = h.s * h.v; /* 0 where v is not above 0 */
        const REAL share = h.range > 0 ? (unit[plus] - unit[minus]) / h.range : 0;
        for (int k = 0; k < 3; k++) {
            REAL slope;
            const REAL below = REAL_(below)(REAL_(turned)(hue, turn), k, &slope);
            const REAL v = h.v - range * below;
            if (!(v >= 0 && v <= 1)) continue;
            dx[h.most] += dy[k];
            if (!(range > 0)) continue;
            const REAL by_range = below - slope * share; /* of the range; the hue has it too */
            dx[h.most] -= dy[k] * by_range;
            dx[h.least] += dy[k] * by_range;
            dx[plus] -= dy[k] * slope;
            dx[minus] += dy[k] * slope;
        }
    }
}
