/* Dense on rows of one place: tiles of the weight gradient equal the gradient, and no bit of it,
 * nor of the outputs, depends on how rows are cut or tiles are made. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "graph/choose.h"
#include "ops/all.h"

enum { ROWS_MAX = 520, C_MAX = 530, K_MAX = 3000 };
static float x[ROWS_MAX * C_MAX], dy[ROWS_MAX * K_MAX], w[C_MAX * K_MAX], bias[K_MAX];

static const struct {
    int64_t rows, c, k;
} sizes[] = { { 1, 1, 1 },     { 7, 5, 3 },     { 16, 33, 48 },  { 64, 20, 10 }, { 33, 130, 49 },
              { 70, 17, 140 }, { 13, 64, 113 }, { 2, 100, 16 },  { 9, 530, 51 }, { 256, 11, 64 },
              { 257, 19, 30 }, { 520, 17, 64 }, { 50, 9, 3000 }, { 19, 530, 1 }, { 300, 61, 1 } };

static void fill(float *out, int64_t n, float step)
{
    for (int64_t i = 0; i < n; i++) out[i] = sinf((float)i * step);
}

/* in [3]: its input and weights */
static keel_node node_of(int64_t c, int64_t k, keel_spec *in)
{
    in[0] = (keel_spec){ KEEL_FLOAT32, { 1, { c } } };
    in[1] = (keel_spec){ KEEL_FLOAT32, { 2, { c, k } } };
    in[2] = (keel_spec){ KEEL_FLOAT32, { 1, { k } } };
    keel_node n = { .op = keel_op_find("dense"),
                    .layer = "dense",
                    .training = true,
                    .backward = true,
                    .real = KEEL_FLOAT32,
                    .n_in = 1,
                    .in = in,
                    .n_weight = 2,
                    .weight = in + 1 };
    assert_int_equal(keel_node_infer(&n), KEEL_OK);
    return n;
}

/* The reference, and every kernel of this processor; what they all can do with goes to *scratch. */
static int tile_runs(const keel_node *n, keel_tile_run *run, void **scratch)
{
    int count = 0;
    int64_t bytes = 64;
    run[count++] = n->op->weights_tile[0];
    for (int i = 0; keel_kernels[i]; i++) {
        keel_prepare p = { .node = n, .pass = KEEL_WEIGHTS, .rows = ROWS_MAX };
        if (keel_kernels[i]->weights_tile && keel_kernels[i]->op == &keel_op_dense &&
            keel_kernel_prepare(keel_kernels[i], &p) >= 0) {
            run[count++] = keel_kernels[i]->weights_tile;
            if (p.scratch > bytes) bytes = p.scratch;
        }
    }
    *scratch = keel_aligned_calloc((size_t)bytes, 1);
    assert_non_null(*scratch);
    return count;
}

/* kept: of the kernel, or NULL: it must do without */
static void gradient(const keel_node *n, keel_tile_run run, int weight, int64_t rows, int64_t cut,
                     int64_t tile, void *kept, float *out)
{
    const int64_t c = n->weight[0].shape.dim[0], k = n->weight[0].shape.dim[1];
    const int64_t count = weight ? k : c * k, step = weight ? tile : tile * k;
    const keel_span span[] = { { x, dy, cut }, { x + cut * c, dy + cut * k, rows - cut } };
    for (int64_t at = 0; at < count; at += step)
        run(&(keel_tile_call){ .node = n,
                               .n_span = cut < rows ? 2 : 1,
                               .span = span,
                               .weight = weight,
                               .first = at,
                               .count = count - at < step ? count - at : step,
                               .grad = out + at,
                               .scratch = kept,
                               .scratch_ready = at > 0 });
}

/* w and its moment, moved by a kernel that will, else by the gradient as optimizers do. */
static void move(const keel_node *n, keel_tile_run run, int64_t rows, int64_t tile, void *kept,
                 float *to, float *m, bool *moved)
{
    static float grad[C_MAX * K_MAX];
    const int64_t c = n->weight[0].shape.dim[0], k = n->weight[0].shape.dim[1];
    const keel_span span[] = { { x, dy, 1 }, { x + c, dy + k, rows - 1 } };
    for (int64_t at = 0; at < c * k; at += tile * k) {
        const int64_t count = c * k - at < tile * k ? c * k - at : tile * k;
        keel_tile_move how = { to + at, m + at, 0.9f, 0.3f, 0.01f, false };
        run(&(keel_tile_call){ .node = n,
                               .n_span = rows > 1 ? 2 : 1,
                               .span = span,
                               .first = at,
                               .count = count,
                               .grad = grad,
                               .n_prefetch = 2,
                               .prefetch = { to + at, m + at },
                               .scratch = kept,
                               .scratch_ready = at > 0,
                               .move = moved ? &how : NULL });
        if (how.moved) *moved = true;
        for (int64_t i = 0; i < count && !how.moved; i++) {
            volatile float keep = m[at + i] * 0.9f, g = grad[i] * 0.3f; /* rounded one by one */
            volatile float step = g * 0.01f;
            m[at + i] = keep - step;
            to[at + i] += m[at + i];
        }
    }
}

static void a_kernel_that_moves_gives_the_bits_of_the_optimizer(void **unused)
{
    (void)unused;
    static float a[C_MAX * K_MAX], ma[C_MAX * K_MAX], b[C_MAX * K_MAX], mb[C_MAX * K_MAX];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t c = sizes[i].c, k = sizes[i].k;
        keel_spec in[3];
        keel_node n = node_of(c, k, in);
        keel_tile_run run[8];
        void *kept;
        const int n_run = tile_runs(&n, run, &kept);
        bool any = n_run == 1 || k < 48;
        for (int r = 0; r < n_run; r++)
            for (int64_t tile = 1; tile <= c; tile += 7) {
                fill(a, c * k, 0.3f), fill(b, c * k, 0.3f);
                fill(ma, c * k, 0.7f), fill(mb, c * k, 0.7f);
                move(&n, run[r], sizes[i].rows, tile, kept, a, ma, NULL);
                move(&n, run[r], sizes[i].rows, tile, kept, b, mb, &any);
                assert_memory_equal(a, b, (size_t)(c * k) * sizeof *a);
                assert_memory_equal(ma, mb, (size_t)(c * k) * sizeof *a);
            }
        assert_true(any);
        keel_free(kept);
        keel_node_clear(&n);
    }
}

static void tiles_are_the_gradient_whatever_the_cut(void **unused)
{
    (void)unused;
    static float want[C_MAX * K_MAX], got[C_MAX * K_MAX], again[C_MAX * K_MAX], want_bias[K_MAX];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t rows = sizes[i].rows, c = sizes[i].c, k = sizes[i].k;
        keel_spec in[3];
        keel_node n = node_of(c, k, in);
        keel_tile_run run[8];
        n.op->weights[0](&(keel_call){ .node = &n,
                                       .rows = rows,
                                       .in = (const void *[]){ x },
                                       .out_grad = (const void *[]){ dy },
                                       .weight_grad = (void *[]){ want, want_bias } });
        void *kept;
        const int n_run = tile_runs(&n, run, &kept);
        for (int r = 0; r < n_run; r++)
            for (int weight = 0; weight < 2; weight++) {
                const int64_t count = weight ? k : c * k;
                const float *right = weight ? want_bias : want;
                gradient(&n, run[r], weight, rows, rows, weight ? k : c, NULL, got);
                for (int64_t e = 0; e < count; e++)
                    if (!(fabsf(got[e] - right[e]) <= 2e-6f * (1 + (float)rows)))
                        fail_msg("%d x %d x %d, kernel %d: [%d] is %g, not %g", (int)rows, (int)c,
                                 (int)k, r, (int)e, (double)got[e], (double)right[e]);
                for (int64_t cut = 1; cut <= rows; cut += 3)
                    for (int64_t tile = 1; tile <= (weight ? k : c); tile += 5) {
                        gradient(&n, run[r], weight, rows, cut, tile, cut % 2 ? kept : NULL, again);
                        if (memcmp(got, again, (size_t)count * sizeof *got))
                            fail_msg("%d x %d x %d, kernel %d: cut at %d, tiles of %d, other bits",
                                     (int)rows, (int)c, (int)k, r, (int)cut, (int)tile);
                    }
            }
        keel_free(kept);
        keel_node_clear(&n);
    }
}

typedef struct copies { /* what kernels derive */
    keel_derived kept[8];
    int n;
    const float *weight;
} copies;

static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    copies *c = context;
    keel_derived *d = &c->kept[c->n++];
    *d = *want;
    d->data = keel_aligned_calloc(d->bytes, 1);
    d->refresh(d, c->weight);
    *got = d;
    return KEEL_OK;
}

static void outputs_do_not_depend_on_the_rows_beside_them(void **unused)
{
    (void)unused;
    static float whole[ROWS_MAX * K_MAX], parts[ROWS_MAX * K_MAX];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t rows = sizes[i].rows, c = sizes[i].c, k = sizes[i].k;
        keel_spec in[3];
        keel_node n = node_of(c, k, in);
        for (int e = 0; keel_kernels[e]; e++) {
            const keel_kernel *kernel = keel_kernels[e];
            if (kernel->op != &keel_op_dense || !kernel->weights_tile) continue;
            for (int pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++) {
                copies made = { .weight = w };
                keel_prepare p = { .node = &n,
                                   .pass = (keel_pass)pass,
                                   .rows = rows,
                                   .derive = derive,
                                   .context = &made };
                if (keel_kernel_prepare(kernel, &p) < 0) continue;
                const int64_t width = pass == KEEL_FORWARD ? k : c;
                void *scratch = keel_aligned_calloc((size_t)p.scratch + 1, 1);
                assert_non_null(scratch);
                for (int64_t part = 1; part <= rows; part += 4) {
                    float *out = part == 1 ? whole : parts;
                    const int64_t step = part == 1 ? rows : part;
                    for (int64_t at = 0; at < rows; at += step) {
                        void *grad = out + at * c;
                        const bool adds = false;
                        keel_call call = { .node = &n,
                                           .rows = rows - at < step ? rows - at : step,
                                           .in = (const void *[]){ x + at * c },
                                           .out = (void *[]){ out + at * k },
                                           .weight = (const void *[]){ w, bias },
                                           .out_grad = (const void *[]){ dy + at * k },
                                           .in_grad = &grad,
                                           .in_adds = &adds,
                                           .scratch = scratch,
                                           .plan = p.plan };
                        kernel->run[pass](&call);
                    }
                    if (part > 1 && memcmp(whole, parts, (size_t)(rows * width) * sizeof *whole))
                        fail_msg("%s, pass %d, %d x %d x %d: parts of %d rows give other bits",
                                 kernel->name, pass, (int)rows, (int)c, (int)k, (int)part);
                }
                keel_free(scratch);
                if (kernel->release) kernel->release(p.plan);
                for (int d = 0; d < made.n; d++) {
                    made.kept[d].release(made.kept[d].plan);
                    keel_free(made.kept[d].data);
                }
            }
        }
        keel_node_clear(&n);
    }
}

static int start(void **unused)
{
    (void)unused;
    fill(x, ROWS_MAX * C_MAX, 0.37f);
    fill(dy, ROWS_MAX * K_MAX, 0.73f);
    fill(w, C_MAX * K_MAX, 0.11f);
    fill(bias, K_MAX, 1.9f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_the_gradient_whatever_the_cut),
        cmocka_unit_test(a_kernel_that_moves_gives_the_bits_of_the_optimizer),
        cmocka_unit_test(outputs_do_not_depend_on_the_rows_beside_them),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
