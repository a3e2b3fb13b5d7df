/* Products of matrices in rows, for what changes whole weights. To be included where REAL is
 * defined (ops/real.h), after optimizers/one_pass.h. Four rows by two vectors of sums stay in
 * registers; each sum is added in the order of k, so a row has the same bits in any block. */
typedef REAL REAL_(vector) __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));
enum { REAL_(LANES) = 64 / sizeof(REAL), REAL_(WIDE) = 2 * REAL_(LANES), REAL_(HIGH) = 4 };

typedef struct REAL_(product_t) { /* out = scale add + by left right, of rows x inner x columns */
    REAL *out;
    const REAL *left, *right, *add;
    REAL scale, by;
    int64_t inner, columns;
} REAL_(product_t);

static inline void REAL_(block)(const REAL_(product_t) * p, int64_t i, int64_t j)
{
    REAL_(vector) sum[REAL_(HIGH)][2] = { 0 };
    const REAL *left = p->left + i * p->inner, *right = p->right + j;
    for (int64_t k = 0; k < p->inner; k++, right += p->columns) {
        const REAL_(vector) r0 = *(const REAL_(vector) *)right;
        const REAL_(vector) r1 = *(const REAL_(vector) *)(right + REAL_(LANES));
        sum[0][0] += left[k] * r0;
        sum[0][1] += left[k] * r1;
        sum[1][0] += left[p->inner + k] * r0;
        sum[1][1] += left[p->inner + k] * r1;
        sum[2][0] += left[2 * p->inner + k] * r0;
        sum[2][1] += left[2 * p->inner + k] * r1;
        sum[3][0] += left[3 * p->inner + k] * r0;
        sum[3][1] += left[3 * p->inner + k] * r1;
    }
    for (int r = 0; r < REAL_(HIGH); r++)
        for (int h = 0; h < 2; h++) {
            const int64_t at = (i + r) * p->columns + j + h * REAL_(LANES);
            *(REAL_(vector) *)(p->out + at) =
                p->scale * *(const REAL_(vector) *)(p->add + at) + p->by * sum[r][h];
        }
}

static inline void REAL_(element)(const REAL_(product_t) * p, int64_t i, int64_t j)
{
    REAL sum = 0;
    for (int64_t k = 0; k < p->inner; k++)
        sum += p->left[i * p->inner + k] * p->right[k * p->columns + j];
    p->out[i * p->columns + j] = p->scale * p->add[i * p->columns + j] + p->by * sum;
}

KEEL_ONE_PASS
static void REAL_(product)(const REAL_(product_t) * p, int64_t begin, int64_t end)
{
    const int64_t wide = p->columns / REAL_(WIDE) * REAL_(WIDE);
    const int64_t high = begin + (end - begin) / REAL_(HIGH) * REAL_(HIGH);
    for (int64_t j = 0; j < wide; j += REAL_(WIDE)) {
        for (int64_t i = begin; i < high; i += REAL_(HIGH)) REAL_(block)(p, i, j);
        for (int64_t i = high; i < end; i++)
            for (int64_t k = j; k < j + REAL_(WIDE); k++) REAL_(element)(p, i, k);
    }
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = wide; j < p->columns; j++) REAL_(element)(p, i, j);
}
