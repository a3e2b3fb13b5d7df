/* Orthonormal columns, or rows if these are fewer: the Q of the QR decomposition of a random normal
 * matrix, with the diagonal of R positive (Saxe et al. 2014). Gram-Schmidt, done twice, is accurate
 * enough (Giraud et al. 2005) and gives a positive diagonal. */
#include "initializers/initializer.h"
#include "base/memory.h"
#include <math.h>

typedef struct args_t {
    keel_seeded seeded;
    double gain;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, gain, "1.0", 0, 0, "the matrix is multiplied by this"),
    KEEL_SEED_FIELD(args_t),
    { 0 },
};

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    const args_t *a = args;
    if (shape->rank < 2)
        return keel_fail(KEEL_ESHAPE, "Orthogonal initializes weights of rank 2 or more, not %d",
                         shape->rank);
    const keel_chance mine = keel_seeded_chance(&a->seeded, c, &row);
    const int64_t cols = shape->dim[shape->rank - 1];
    const int64_t rows = cols ? keel_shape_count(shape) / cols : 0;
    const int64_t n = rows < cols ? rows : cols, length = rows < cols ? cols : rows;
    double *q =
        keel_calloc((size_t)n * (size_t)length, sizeof *q); /* n vectors, one after another */
    if (!q) return KEEL_ENOMEM;
    keel_fill(q, n * length, KEEL_UNTRUNCATED_NORMAL, 0, 1, &mine, row);
    for (int64_t i = 0; i < n; i++) {
        double *v = q + i * length;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t j = 0; j < i; j++) {
                const double *u = q + j * length, along = dot(u, v, length);
                for (int64_t k = 0; k < length; k++) v[k] -= along * u[k];
            }
        const double size = sqrt(dot(v, v, length));
        for (int64_t k = 0; k < length; k++) v[k] = size > 0 ? v[k] / size : 0;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            out[i * cols + j] = a->gain * (rows < cols ? q[i * length + j] : q[j * length + i]);
    keel_free(q);
    return KEEL_OK;
}

const keel_initializer keel_initializer_orthogonal = {
    .type = {
        .name = "Orthogonal",
        .alias = "OrthogonalInitializer",
        .module = "keras.initializers",
        .help = "orthonormal columns or rows",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .fill = fill,
};
