/* A row's bits do not depend on the rows beside it: every kernel of ours gives the same values,
 * saved values, records and input gradients, also added to those that are there, for all rows in
 * one call and in several. Reproducible steps rest on that; of a vendor's kernels nobody promises
 * it. */
#include "device/cpu/cpu.h"
#include "kernel_bench.h"
#include "sweep.h"

enum { ROWS = 7 };

/* Numbers whose sums are rounded, unlike the bench's own. */
static void make_uneven(float *f, int64_t n)
{
    for (int64_t i = 0; f && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        f[i] *= 1 + (float)(seed >> 9) / 8388608.0f;
    }
}

static void make_bench_uneven(bench *b)
{
    for (int i = 0; i < b->wide.n_in; i++) {
        const int64_t n = b->rows * keel_row_count(&b->wide.in[i]);
        make_uneven(b->in[i], n);
        if (b->both) keel_bf16_narrow(b->in16[i], b->in[i], n);
    }
    for (int i = 0; i < b->wide.n_weight; i++)
        make_uneven(b->weight[i], keel_row_count(&b->wide.weight[i]));
    const int64_t n = b->rows * keel_row_count(&b->wide.out[0]);
    make_uneven(b->out_grad, n);
    if (b->both) keel_bf16_narrow(b->out_grad16, b->out_grad, n);
}

static void same_bits(const void *a, const void *b, size_t bytes, const char *name,
                      const char *what, int parts)
{
    if (memcmp(a, b, bytes)) fail_msg("%s: %s of rows in %d calls differ", name, what, parts);
}

static void compare_all(const bench *b, const results *a, const results *c, const char *name,
                        int parts)
{
    const keel_node *n = b->both ? &b->narrow : &b->wide;
    const size_t size = b->both ? sizeof(keel_bf16) : sizeof(float);
    same_bits(a->out, c->out, (size_t)(b->rows * keel_row_count(&n->out[0])) * size, name, "values",
              parts);
    for (int i = 1; i < n->n_out; i++)
        if (!b->both || is_narrow(b, i))
            same_bits(a->more_out[i], c->more_out[i],
                      (size_t)(b->rows * keel_row_count(&n->out[i])) * size, name, "further values",
                      parts);
    for (int i = 0; i < n->n_saved; i++)
        same_bits(a->saved[i], c->saved[i],
                  (size_t)(b->rows * keel_row_count(&n->saved[i])) *
                      keel_dtype_size(n->saved[i].dtype),
                  name, "saved values", parts);
    for (int i = 0; i < n->n_in; i++)
        same_bits(a->in_grad[i], c->in_grad[i],
                  (size_t)(b->rows * keel_row_count(&n->in[i])) * size, name, "gradients", parts);
    const int64_t one = n->partial > n->partial_backward ? n->partial : n->partial_backward;
    same_bits(a->partial, c->partial, (size_t)(one * b->rows) * sizeof(double), name, "records",
              parts);
}

/* How many passes were compared; adds: gradients are added to those that are there. */
static int compare_case(const keel_kernel *k, const char *op_name, const keel_case *c, bool both,
                        bool adds)
{
    static const keel_pass passes[] = { KEEL_FORWARD, KEEL_BACKWARD, KEEL_PARTIAL,
                                        KEEL_PARTIAL_BACKWARD };
    static const int parts[] = { 3, ROWS };
    char name[160];
    int ran = 0;
    bench b;
    snprintf(name, sizeof name, "%s_%s%s in %s weights %s args %s", op_name, k->name,
             both ? " of bfloat16" : "", c->in, c->weights ? c->weights : "-",
             c->args ? c->args : "-");
    if (bench_open(&b, keel_op_find(op_name), c, true, ROWS, both) < 0)
        fail_msg("%s: %s", name, keel_error());
    make_bench_uneven(&b);
    merge(&b);
    for (size_t p = 0; p < sizeof passes / sizeof *passes; p++) {
        if (adds && passes[p] != KEEL_BACKWARD) continue;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            results whole, cut;
            results_open(&whole, &b, both);
            results_open(&cut, &b, both);
            bool takes = true;
            if (passes[p] != KEEL_FORWARD) /* what backward reads of forward */
                takes = pass_run(&b, both ? k : NULL, KEEL_FORWARD, false, 1, &whole) &&
                        pass_run(&b, both ? k : NULL, KEEL_FORWARD, false, 1, &cut);
            takes = takes && pass_run(&b, k, passes[p], adds, 1, &whole);
            if (takes) {
                assert_true(pass_run(&b, k, passes[p], adds, parts[i], &cut));
                compare_all(&b, &whole, &cut, name, parts[i]);
                ran++;
            }
            results_free(&whole);
            results_free(&cut);
        }
    }
    bench_close(&b);
    return ran;
}

static void bits_of_a_row_do_not_depend_on_the_rows_beside_it(void **state)
{
    (void)state;
    int kernels = 0;
    keel_cpu_single_thread();
    const int every = thin(1, 4, KERNEL_CASES); /* test_ops_kernels.c runs more of those */
    for (int i = 0; keel_kernels[i]; i++) {
        const keel_kernel *k = keel_kernels[i];
        const keel_op *op = k->op;
        int ran = 0;
        if (k->vendor) continue;
        for (int way = 0; way < 4; way++) {
            const bool both = way & 1, adds = way & 2;
            for (const keel_case *c = op->cases; c && c->in; c++)
                ran += compare_case(k, op->name, c, both, adds);
            for (int e = i % every; e < KERNEL_CASES; e += every)
                if (!strcmp(kernel_cases[e].op, op->name))
                    ran += compare_case(k, op->name, &kernel_cases[e].c, both, adds);
        }
        if (ran) print_message("%s_%s: %d comparisons\n", op->name, k->name, ran);
        kernels += ran > 0;
    }
    if (keel_cpu_level() >= KEEL_CPU_AVX2) assert_true(kernels > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_of_a_row_do_not_depend_on_the_rows_beside_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
