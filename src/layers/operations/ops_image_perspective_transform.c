/* Images seen through the projection that moves four points to four others, the same for all. */
#include "layers/operations/_image.h"
#include "ops/warp.h"
#include <math.h>

typedef struct args_t {
    int interpolation, data_format;
    double fill_value;
} args_t;

static const keel_field fields[] = {
    KEEL_CHOICE(args_t, interpolation, "\"bilinear\"", "bilinear|nearest", "between pixels"),
    KEEL_FLOAT(args_t, fill_value, "0", 0, 0, "what is seen outside of the image"),
    KEEL_IMAGE_FORMAT(args_t),
    { 0 },
};

static keel_status read_points(const keel_emit *e, size_t place, const char *name,
                               keel_numbers_args *out)
{
    const json_t *v = keel_argument(e, place, name);
    const keel_shape *s = &out->shape;
    if (!json_is_array(v))
        return keel_fail(KEEL_EUNSUP, "argument %s: only an array of four points is supported",
                         name);
    KEEL_TRY(keel_list_read(v, name, out));
    if (keel_shape_count(s) == 8 && s->rank >= 2 && s->dim[s->rank - 1] == 2) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP,
                     "argument %s: four points for all images together are "
                     "supported, not others for each row of a batch",
                     name);
}

enum { N = 8 };

/* Solves a x = b, b being column N, by elimination. False: there is no one solution. */
static bool solve(double a[N][N + 1], double x[N])
{
    for (int k = 0; k < N; k++) {
        int most = k;
        for (int i = k + 1; i < N; i++)
            if (fabs(a[i][k]) > fabs(a[most][k])) most = i;
        if (!(fabs(a[most][k]) > 1e-12)) return false;
        for (int j = 0; j <= N; j++) {
            const double moved = a[k][j];
            a[k][j] = a[most][j];
            a[most][j] = moved;
        }
        for (int i = k + 1; i < N; i++)
            for (int j = N; j >= k; j--) a[i][j] -= a[k][j] * a[i][k] / a[k][k];
    }
    for (int k = N - 1; k >= 0; k--) {
        x[k] = a[k][N];
        for (int j = k + 1; j < N; j++) x[k] -= a[k][j] * x[j];
        x[k] /= a[k][k];
    }
    return true;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_numbers_args start = { 0 }, end = { 0 };
    keel_warp_args op = { .kind = KEEL_WARP_MATRIX,
                          .nearest = a->interpolation == 1,
                          .fill = KEEL_FILL_CONSTANT,
                          .fill_value = a->fill_value };
    double m[N][N + 1] = { { 0 } };
    keel_shape in;
    KEEL_TRY(keel_image_in(e, a->data_format, &in));
    KEEL_TRY(read_points(e, 1, "start_points", &start));
    KEEL_TRY(read_points(e, 2, "end_points", &end));
    for (int i = 0; i < N; i++) { /* coordinate i % 2 of point i / 2 */
        const double x = end.at[i / 2 * 2], y = end.at[i / 2 * 2 + 1], to = start.at[i];
        const double row[N + 1] = { [6] = -to * x, [7] = -to * y, [N] = to };
        for (int j = 0; j <= N; j++) m[i][j] = row[j];
        m[i][i % 2 * 3] = x;
        m[i][i % 2 * 3 + 1] = y;
        m[i][i % 2 * 3 + 2] = 1;
    }
    if (!solve(m, op.matrix))
        return keel_fail(KEEL_EARG, "end_points: three of the points are on one line");
    return keel_emit_on(e, &keel_op_warp, &op, e->in, 1, e->out);
}

KEEL_IMAGE_OPERATION(ops_image_perspective_transform, "PerspectiveTransform", args_t,
                     "Images seen through a projection of four points.", .places = true)
