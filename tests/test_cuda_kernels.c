/* Every kernel for CUDA, on the emulator, computes what its op's reference computes, over the cases
 * of test_ops_kernels.c: at several numbers of rows, training and not, in float32, bfloat16 and
 * float16, results that overwrite and that are added; with the same bits for a row in any call and
 * for any order of threads and blocks. A pointer that the call does not have is NULL, and what a
 * pass only reads is the same afterwards. NVIDIA's libraries are doubles, which check how they are
 * called. */
#include "device/cpu/cpu.h"
#include "emulator.h"
#include "cuda_calls.h"
#include "cuda_double.h"
#include "kernel_bench.h"
#include "ops/args.h"
#include "sweep.h"

extern const keel_kernel *const keel_cuda_kernels[];

#ifndef PART /* of the kernels; the others are those of test_cuda_kernels_2.c and so on */
#define PART 0
#endif
#ifndef PARTS
#define PARTS 3
#endif

/* Of a row: cases with more are for the kernels of the processor, since the emulator runs only some
 * ten million instructions a second. On a GPU it is the reference that is slow. */
#ifdef KEEL_ON_GPU
static const double FLOPS_MAX = 3e6;
static const bool on_gpu = true;
#else
static const double FLOPS_MAX = 1e5;
static const bool on_gpu = false;
#endif

/* What copy_forward of test_ops_kernels.c does: what backward reads is the reference's. */
static void give_forward(const bench *b, const results *from, results *to)
{
    const keel_node *n = &b->wide;
    const int64_t count = b->rows * keel_row_count(&n->out[0]);
    if (b->both)
        narrow_to(to->out, from->out, count);
    else
        memcpy(to->out, from->out, (size_t)count * sizeof(float));
    for (int i = 0; i < n->n_saved; i++)
        memcpy(to->saved[i], from->saved[i],
               (size_t)(b->rows * keel_row_count(&n->saved[i])) *
                   keel_dtype_size(n->saved[i].dtype));
}

static void same_bytes(const char *what, const char *which, const void *a, const void *b,
                       int64_t count, size_t size)
{
    if (count > 0 && memcmp(a, b, (size_t)count * size) != 0)
        fail_msg("%s: %s has other bits in another call", what, which);
}

/* Bits of what belongs to rows; gradients of weights are sums over the rows of a call. */
static void compare_bits(const bench *b, keel_pass pass, const char *what, const results *x,
                         const results *y)
{
    const keel_node *n = &b->wide;
    const size_t size = b->both ? sizeof(keel_bf16) : sizeof(float);
    if (pass == KEEL_FORWARD) {
        same_bytes(what, "the output", x->out, y->out, b->rows * keel_row_count(&n->out[0]), size);
        for (int i = 0; i < n->n_saved; i++)
            same_bytes(what, "what is saved", x->saved[i], y->saved[i],
                       b->rows * keel_row_count(&n->saved[i]), keel_dtype_size(n->saved[i].dtype));
    }
    for (int i = 0; pass == KEEL_BACKWARD && i < n->n_in; i++)
        same_bytes(what, "an input's gradient", x->in_grad[i], y->in_grad[i],
                   b->rows * keel_row_count(&n->in[i]), size);
    if (pass == KEEL_PARTIAL || pass == KEEL_PARTIAL_BACKWARD)
        same_bytes(what, "the record", x->partial, y->partial,
                   b->rows * (pass == KEEL_PARTIAL ? n->partial : n->partial_backward),
                   sizeof(double));
}

enum { MANY_BLOCKS = 7, FEW_BLOCKS = 8 }; /* seeds of the emulator */

/* One pass by the kernel, in so many calls, with the threads in the order of a seed. */
static bool run_pass(bench *b, const keel_kernel *k, keel_pass pass, bool adds, int parts,
                     uint32_t order, const results *forward, results *got)
{
    results_open(got, b, b->both);
    if (pass != KEEL_FORWARD && forward) give_forward(b, forward, got);
    emu_seed(order);
    cuda_kernel = k;
    cuda_pass = pass;
    const keel_kernel on_emulator = cuda_staged(k);
    return pass_run(b, &on_emulator, pass, adds, parts, got);
}

static int compare_pass(bench *b, const keel_kernel *k, const char *name, keel_pass pass, bool adds,
                        results *forward)
{
    results want, got, other;
    char what[200];
    if (!(b->both ? narrow_pass(k, pass) : k->run[pass]) || !has_pass(b, pass)) return 0;
    if (!forward->out) {
        results_open(forward, b, false);
        pass_run(b, NULL, KEEL_FORWARD, false, 1, forward);
    }
    cuda_name = name;
    if (!run_pass(b, k, pass, adds, 1, FEW_BLOCKS, forward, &got)) {
        results_free(&got);
        return 0;
    }
    results_open(&want, b, false);
    memcpy(want.out, forward->out,
           (size_t)(b->rows * keel_row_count(&b->wide.out[0])) * sizeof(float));
    if (b->both && pass != KEEL_FORWARD) { /* what was rounded when it was stored is what is read */
        const int64_t count = b->rows * keel_row_count(&b->wide.out[0]);
        keel_bf16 *rounded = narrowed(want.out, count);
        for (int64_t i = 0; i < count; i++) ((float *)want.out)[i] = wide_of(rounded[i]);
        keel_free(rounded);
    }
    for (int i = 0; i < b->wide.n_saved; i++)
        memcpy(want.saved[i], forward->saved[i],
               (size_t)(b->rows * keel_row_count(&b->wide.saved[i])) *
                   keel_dtype_size(b->wide.saved[i].dtype));
    pass_run(b, NULL, pass, adds, 1, &want);
    gradients_rounded = !strcmp(k->name, "cudnn");  /* those of filters, as Keras has them */
    narrow_roundings = k->vendor && on_gpu ? 2 : 1; /* a library may round before it adds */
    /* a GPU's attention goes on from its rounded output, for lines of any length */
    if (b->both && pass == KEEL_BACKWARD && !strcmp(b->wide.op->name, "dot_product_attention"))
        narrow_inside = 2;
    compare(b, pass, name, &want, &got);
    narrow_inside = 0;
    snprintf(what, sizeof what, "%s, pass %d%s", name, (int)pass,
             !b->both                     ? ""
             : bench_held == KEEL_FLOAT16 ? ", float16"
                                          : ", bfloat16");
    if (pass == KEEL_WEIGHTS && !b->both && !strcmp(k->op->name, "gather"))
        same_bytes(what, "a row of the table, added up as by the reference,", want.weight_grad[0],
                   got.weight_grad[0], keel_row_count(&b->wide.weight[0]), sizeof(float));
    results_free(&want);
    /* rows one by one, other blocks and another order of threads, arrays that no vector fits;
     * gradients of weights are sums over the rows of a call */
    const bool alone = pass == KEEL_WEIGHTS;
    cuda_shift = 4;
    const bool fixed = alone || (on_gpu && k->vendor); /* a library chooses by the number of rows */
    run_pass(b, k, pass, adds, fixed ? 1 : (int)b->rows, MANY_BLOCKS, forward, &other);
    cuda_shift = 0;
    compare_bits(b, pass, what, &got, &other);
    for (int i = 0; alone && i < b->wide.n_weight; i++)
        same_bytes(what, "a weight's gradient", got.weight_grad[i], other.weight_grad[i],
                   keel_row_count(&b->wide.weight[i]), sizeof(float));
    results_free(&other);
    results_free(&got);
    return 1;
}

/* Gradients that are not wanted are NULL: the others come out as before. */
static void leave_out(bench *b, const keel_kernel *k, const char *name, keel_pass pass,
                      results *forward)
{
    const keel_node *n = &b->wide;
    const int count = pass == KEEL_BACKWARD ? n->n_in : n->n_weight;
    results all, some;
    cuda_name = name;
    if (!k->run[pass] || !has_pass(b, pass)) return;
    if (!run_pass(b, k, pass, false, 1, MANY_BLOCKS, forward,
                  &all)) { /* the kernel leaves it to others */
        results_free(&all);
        return;
    }
    for (int left = 0; left < count; left++) {
        cuda_left_out = left;
        run_pass(b, k, pass, false, 1, FEW_BLOCKS, forward, &some);
        cuda_left_out = -1;
        for (int i = 0; i < count; i++) {
            if (i == left) continue;
            const int64_t each = pass == KEEL_BACKWARD ? b->rows * keel_row_count(&n->in[i])
                                                       : keel_row_count(&n->weight[i]);
            same_bytes(name, "a gradient beside one that is not wanted",
                       pass == KEEL_BACKWARD ? all.in_grad[i] : all.weight_grad[i],
                       pass == KEEL_BACKWARD ? some.in_grad[i] : some.weight_grad[i], each,
                       sizeof(float));
        }
        results_free(&some);
    }
    results_free(&all);
}

enum { INFERENCE, TRAINING, IN_BFLOAT16, IN_FLOAT16, MODES };

/* Whatever they cost: those of ways that no smaller case goes. For Winograd's tiles: rests of
 * images, all kinds of padding, several pieces of rows with a rest, sums over tiles in several
 * parts, and parts that a rest does not have; then what these must leave to others. */
static const kernel_case large_cases[] = {
    { "conv2d", { "7,7,64", "3,3,64,64|64", "pad 1,1,1,1" } },
    { "conv2d", { "10,6,64", "3,3,64,64", NULL } },
    { "conv2d", { "9,4,36", "3,3,36,64|64", "pad 2,1,0,2" } },
    { "conv2d", { "4,11,64", "3,3,64,36", "pad 0,2,2,1" } },
    { "conv2d", { "3,10,68", "3,3,68,132|132", "pad 2,3,3,1" } },
    { "conv2d", { "4,4,64", "3,3,64,64|64", "pad 1,1,1,1" } },
    { "conv2d", { "4,9,64", "3,3,64,160|160", "pad 1,1,1,1" } },
    { "conv_transpose", { "1,7,4,64", "1,3,3,64,64|64", "pad 0,0,1,1,1,1 to 1,7,4" } },
    { "conv_transpose", { "1,6,6,64", "1,3,3,64,64|64", "to 1,8,8" } },
    { "conv2d", { "4,4,66", "3,3,66,66|66", "pad 1,1,1,1" } },
    { "conv2d", { "4,4,64", "3,5,64,64", "pad 1,1,2,2" } },
    { "conv2d", { "7,4,64", "3,3,64,64", "strides 2,1 pad 1,1,1,1" } },
    { "conv2d", { "4,4,64", "3,3,64,64", "dilation 1,2 pad 1,1,2,2" } },
    { "conv2d", { "4,4,128", "3,3,64,64", "groups 2 pad 1,1,1,1" } },
};

static bool is_large(const keel_case *c)
{
    for (size_t i = 0; i < sizeof large_cases / sizeof *large_cases; i++)
        if (c == &large_cases[i].c) return true;
    return false;
}

static int compare_case(const keel_kernel *k, const keel_op *op, const keel_case *c)
{
    static const int64_t rows[] = { 1, 3, 8 };
    const bool large = is_large(c);
    char name[160];
    int ran = 0;
    snprintf(name, sizeof name, "%s_cuda in %s weights %s args %s", op->name, c->in,
             c->weights ? c->weights : "-", c->args ? c->args : "-");
    for (int mode = 0; mode < MODES; mode++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const bool training = mode != INFERENCE, narrow = mode >= IN_BFLOAT16;
            bench b;
            results forward = { 0 };
            if (mode == IN_BFLOAT16 && rows[i] == 3) continue;
            if (mode == IN_FLOAT16 && rows[i] != 8) continue;
            if (large && narrow) continue;
            bench_choose(mode == IN_FLOAT16 ? 2 : narrow);
            const keel_status s = bench_open(&b, op, c, training, rows[i], narrow);
            if (s == KEEL_EUNSUP && narrow) { /* places of an axis that is too long for the type */
                bench_close(&b);
                continue;
            }
            if (s < 0) fail_msg("%s: %s", name, keel_error());
            if (!large && op->flops && op->flops(&b.wide) > FLOPS_MAX) {
                bench_close(&b);
                return ran;
            }
            merge(&b);
            ran += compare_pass(&b, k, name, KEEL_FORWARD, false, &forward);
            for (int adds = 0; training && adds < 2; adds++) {
                ran += compare_pass(&b, k, name, KEEL_BACKWARD, adds, &forward);
                ran += compare_pass(&b, k, name, KEEL_WEIGHTS, adds, &forward);
            }
            if (training) {
                ran += compare_pass(&b, k, name, KEEL_PARTIAL, false, &forward);
                ran += compare_pass(&b, k, name, KEEL_PARTIAL_BACKWARD, false, &forward);
            }
            if (mode == TRAINING && rows[i] == 3 && forward.out) {
                leave_out(&b, k, name, KEEL_BACKWARD, &forward);
                leave_out(&b, k, name, KEEL_WEIGHTS, &forward);
            }
            results_free(&forward);
            bench_close(&b);
        }
    return ran;
}

#ifndef KEEL_ON_GPU
static void every_kernel_equals_its_reference(void **state)
{
    (void)state;
    keel_cpu_single_thread();
    const int64_t live = keel_memory_live();
    for (int i = 0; keel_cuda_kernels[i]; i++) {
        const keel_kernel *k = keel_cuda_kernels[i];
        const keel_op *op = k->op;
        int ran = 0;
        if (i % PARTS != PART) continue;
        if (!op->cases) continue; /* of losses and metrics: test_cuda_scores.c */
        for (const keel_case *c = op->cases; c && c->in; c++) ran += compare_case(k, op, c);
        const int every = thin(1, 3, 6);
        for (int e = i % every; e < KERNEL_CASES; e += every)
            if (strcmp(kernel_cases[e].op, op->name) == 0)
                ran += compare_case(k, op, &kernel_cases[e].c);
        for (size_t e = 0; e < sizeof large_cases / sizeof *large_cases; e += (size_t)thin(1, 1, 5))
            if (strcmp(large_cases[e].op, op->name) == 0)
                ran += compare_case(k, op, &large_cases[e].c);
        print_message("%s_cuda: %d passes compared\n", op->name, ran);
        assert_true(ran > 0);
        assert_int_equal(keel_memory_live(), live);
    }
}

/* Where no library lacks anything, and no launch fails, on demand. */
/* What a library may not have on some GPU: the kernel then goes another way. */
static void other_ways_equal_the_reference(void **state)
{
    static const int without[] = { CUDA_DOUBLE_NO_MASK, CUDA_DOUBLE_NO_EPILOGUE };
    (void)state;
    for (int i = 0; keel_cuda_kernels[i]; i++)
        for (size_t w = 0; w < sizeof without / sizeof *without; w++) {
            const keel_kernel *k = keel_cuda_kernels[i];
            if (!k->vendor || i % PARTS != PART) continue;
            cuda_double_without(without[w]);
            assert_true(compare_case(k, k->op, &k->op->cases[1]) > 0);
            cuda_double_without(0);
        }
}

static void a_launch_that_fails_fails_the_step(void **state)
{
    (void)state;
    int failed = 0;
    for (int i = 0; keel_cuda_kernels[i]; i++) {
        const keel_kernel *k = keel_cuda_kernels[i];
        bench b;
        results got;
        if (i % PARTS != PART || !k->op->cases) continue;
        if (bench_open(&b, k->op, &k->op->cases[0], true, 2, false) < 0)
            fail_msg("%s", keel_error());
        merge(&b);
        cuda_expected = KEEL_EDEVICE;
        cuda_name = k->op->name;
        emu_fail_launch(1);
        if (run_pass(&b, k, KEEL_FORWARD, false, 1, MANY_BLOCKS, NULL, &got)) {
            assert_non_null(strstr(cuda_error, "a layer"));
            assert_non_null(strstr(cuda_error, k->op->name));
            failed++;
        }
        emu_fail_launch(0);
        cuda_expected = KEEL_OK;
        results_free(&got);
        bench_close(&b);
    }
    assert_true(failed > 0);
}
#endif

/* A kernel of floats must not be given doubles. */
static void no_kernel_takes_float64(void **state)
{
    (void)state;
    for (int i = 0; keel_cuda_kernels[i]; i++) {
        const keel_kernel *k = keel_cuda_kernels[i];
        bench b;
        if (i % PARTS != PART || !k->op->cases) continue;
        if (bench_open(&b, k->op, &k->op->cases[0], true, 2, false) < 0)
            fail_msg("%s", keel_error());
        b.wide.real = KEEL_FLOAT64;
        for (int pass = 0; pass < KEEL_PASS_COUNT; pass++) {
            keel_prepare p = {
                .node = &b.wide, .pass = (keel_pass)pass, .rows = 2, .device = emu_device()
            };
            if (k->run[pass] && k->prepare(&p) != KEEL_EUNSUP)
                fail_msg("%s takes float64", k->op->name);
        }
        b.wide.real = KEEL_FLOAT32;
        bench_close(&b);
    }
}

#ifndef KEEL_ON_GPU
int main(void)
{
    same_unbounded = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_equals_its_reference),
        cmocka_unit_test(other_ways_equal_the_reference),
        cmocka_unit_test(a_launch_that_fails_fails_the_step),
        cmocka_unit_test(no_kernel_takes_float64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
/* gpu_kernels [OP...]: a test for each case of these ops, or of all. --list: their names. What a
 * kernel breaks on a GPU stays broken until its process ends, so each op should have its own. */
typedef struct piece {
    char name[200];
    const keel_kernel *k;
    const keel_case *c;
} piece;

enum { PIECES = 8192 };
static piece pieces[PIECES];
static struct CMUnitTest tests[PIECES + 1];
static int n_pieces;

static int forget_the_last(void **state)
{
    (void)state;
    n_cuda_copies = 0;
    cuda_left_out = -1;
    cuda_shift = 0;
    emu_release_all();
    bench_choose(0);
    return 0;
}

static void kernel_equals_its_reference(void **state)
{
    const piece *p = *state;
    const int64_t live = keel_memory_live();
    if (compare_case(p->k, p->k->op, p->c) == 0) skip(); /* too large for the reference */
    assert_int_equal(keel_memory_live(), live);
}

static void add_piece(const keel_kernel *k, const keel_case *c)
{
    if (n_pieces == PIECES) return;
    piece *p = &pieces[n_pieces];
    snprintf(p->name, sizeof p->name, "%s in %s weights %s args %s", k->op->name, c->in,
             c->weights ? c->weights : "-", c->args ? c->args : "-");
    p->k = k;
    p->c = c;
    tests[n_pieces++] =
        (struct CMUnitTest){ p->name, kernel_equals_its_reference, forget_the_last, NULL, p };
}

int main(int argc, char **argv)
{
    const bool lists = argc == 2 && !strcmp(argv[1], "--list");
    same_unbounded = true;
    keel_cpu_single_thread();
    if (!lists) emu_device(); /* what it keeps is nobody's leak */
    for (int i = 0; keel_cuda_kernels[i]; i++) {
        const keel_kernel *k = keel_cuda_kernels[i];
        bool wanted = argc < 2 || lists;
        for (int a = 1; a < argc; a++) wanted |= !strcmp(argv[a], k->op->name);
        if (!k->op->cases || !wanted) continue; /* of losses and metrics: test_cuda_scores.c */
        if (lists) puts(k->op->name);
        for (const keel_case *c = k->op->cases; c && c->in; c++) add_piece(k, c);
        for (int e = 0; e < KERNEL_CASES; e++)
            if (strcmp(kernel_cases[e].op, k->op->name) == 0) add_piece(k, &kernel_cases[e].c);
        for (size_t e = 0; e < sizeof large_cases / sizeof *large_cases; e++)
            if (strcmp(large_cases[e].op, k->op->name) == 0) add_piece(k, &large_cases[e].c);
    }
    if (lists) return 0;
    if (n_pieces == 0 || n_pieces == PIECES) return 2;
    tests[n_pieces] = (struct CMUnitTest)cmocka_unit_test(no_kernel_takes_float64);
    return _cmocka_run_group_tests("kernels", tests, (size_t)n_pieces + (argc < 2), NULL, NULL);
}
#endif
