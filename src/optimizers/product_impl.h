/* Products of matrices in rows, for what changes whole weights. To be included where REAL is
 * defined (ops/real.h), after optimizers/one_pass.h. A vector of columns is packed, a part of the
 * inner dim at a time, so that it stays in the first cache while all rows pass by; the sums of six
 * rows stay in registers. Each sum is added in the order of k, so a row has the same bits in any
 * block. */
typedef REAL REAL_(vector) __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));
enum { REAL_(WIDE) = 64 / sizeof(REAL), REAL_(HIGH) = 6, REAL_(DEEP) = 256 };

typedef struct REAL_(product_t) { /* out = scale add + by left right, of rows x inner x columns */
    REAL *out;
    const REAL *left, *right, *add; /* scale 0: add is not read */
    REAL scale, by;
    int64_t inner, columns;
} REAL_(product_t);

typedef struct REAL_(panel) { /* [k][WIDE] of `right`; columns beyond the last are 0 */
    REAL at[REAL_(DEEP)][REAL_(WIDE)] __attribute__((aligned(64)));
    int64_t first, deep; /* of k */
    int64_t column;
    int wide; /* columns that there are */
} REAL_(panel);

static inline void REAL_(pack)(REAL_(panel) * x, const REAL_(product_t) * p)
{
    for (int64_t k = 0; k < x->deep; k++) {
        const REAL *from = p->right + (x->first + k) * p->columns + x->column;
        for (int j = 0; j < REAL_(WIDE); j++) x->at[k][j] = j < x->wide ? from[j] : 0;
    }
}

static inline REAL_(vector) REAL_(load)(const REAL *from, int n)
{
    REAL_(vector) v = { 0 };
    if (n == REAL_(WIDE)) return *(const REAL_(vector) *)from;
    for (int j = 0; j < n; j++) v[j] = from[j];
    return v;
}

static inline void REAL_(store)(REAL *to, REAL_(vector) v, int n)
{
    if (n == REAL_(WIDE)) *(REAL_(vector) *)to = v;
    for (int j = 0; j < n && n < REAL_(WIDE); j++) to[j] = v[j];
}

/* Rows i to i + n, at most HIGH: of fewer the last one is computed again, and left. */
static inline void REAL_(block)(const REAL_(product_t) * p, const REAL_(panel) * x, int64_t i,
                                int64_t n)
{
    REAL_(vector) sum[REAL_(HIGH)] = { 0 };
    const REAL *left[REAL_(HIGH)];
    for (int r = 0; r < REAL_(HIGH); r++) {
        const int64_t row = r < n ? i + r : i + n - 1;
        left[r] = p->left + row * p->inner + x->first;
        if (x->first > 0) sum[r] = REAL_(load)(p->out + row * p->columns + x->column, x->wide);
    }
    for (int64_t k = 0; k < x->deep; k++) {
        const REAL_(vector) right = *(const REAL_(vector) *)x->at[k];
        sum[0] += left[0][k] * right;
        sum[1] += left[1][k] * right;
        sum[2] += left[2][k] * right;
        sum[3] += left[3][k] * right;
        sum[4] += left[4][k] * right;
        sum[5] += left[5][k] * right;
    }
    for (int r = 0; r < REAL_(HIGH) && r < n; r++) {
        const int64_t at = (i + r) * p->columns + x->column;
        if (x->first + x->deep == p->inner) {
            sum[r] *= p->by;
            if (p->scale != 0) sum[r] += p->scale * REAL_(load)(p->add + at, x->wide);
        }
        REAL_(store)(p->out + at, sum[r], x->wide);
    }
}

/* A vector of columns of the rows from `begin` to `end`. */
static inline void REAL_(columns)(const REAL_(product_t) * p, REAL_(panel) * x, int64_t begin,
                                  int64_t end)
{
    const int64_t wide = p->columns - x->column;
    x->wide = wide < REAL_(WIDE) ? (int)wide : REAL_(WIDE);
    for (x->first = 0; x->first < p->inner; x->first += REAL_(DEEP)) {
        const int64_t deep = p->inner - x->first;
        x->deep = deep < REAL_(DEEP) ? deep : REAL_(DEEP);
        REAL_(pack)(x, p);
        for (int64_t i = begin; i < end; i += REAL_(HIGH)) REAL_(block)(p, x, i, end - i);
    }
}

KEEL_ONE_PASS
static void REAL_(product)(const REAL_(product_t) * p, int64_t begin, int64_t end)
{
    REAL_(panel) x;
    for (x.column = 0; x.column < p->columns; x.column += REAL_(WIDE))
        REAL_(columns)(p, &x, begin, end);
}
