/* narrow_cases.h for every op, and what else kernels do with bfloat16 values. */
#include "narrow_cases.h"

static void every_narrow_pass_equals_its_reference(void **state)
{
    (void)state;
    compare_ops(NULL);
}

static void bfloat16_is_rounded_as_by_the_plain_function(void **state)
{
    enum { N = 1 << 16 };
    static const keel_case two = { "65536|65536", NULL, NULL };
    (void)state;
    for (int i = 0; keel_kernels[i]; i++) {
        const keel_kernel *k = keel_kernels[i];
        bench b;
        results r;
        if (k->op != &keel_op_add || !k->narrow[KEEL_FORWARD]) continue;
        assert_int_equal(bench_open(&b, keel_op_find("add"), &two, true, 1, true), KEEL_OK);
        results_open(&r, &b, true);
        keel_bf16 *x = b.in16[0], *y = b.in16[1];
        const keel_bf16 *sum = r.out;
        for (int e = 0; e < N; e++) { /* any bits, and beside them some as large, or smaller */
            x[e] = (keel_bf16)e;
            y[e] = (keel_bf16)((e & 0x7f80) - (e % 11 << 7) + e * 77 % 128);
        }
        const bool ran = pass_run(&b, k, KEEL_FORWARD, false, 1, &r);
        for (int e = 0; ran && e < N; e++) {
            const keel_bf16 want = keel_bf16_round(keel_bf16_wide(x[e]) + keel_bf16_wide(y[e]));
            const bool number = !isnan(keel_bf16_wide(want));
            if (number ? sum[e] != want : !isnan(keel_bf16_wide(sum[e])))
                fail_msg("add_%s: %#x + %#x is %#x, not %#x", k->name, x[e], y[e], sum[e], want);
        }
        results_free(&r);
        bench_close(&b);
    }
}

/* Numbers of a type that a cast reads: any bits of the narrow ones but those of NaN, and whole
 * numbers that float32 rounds. */
static void fill_type(void *to, keel_dtype type, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t any = (int64_t)((double)draw() * 9007199254740993.0) + i;
        switch ((int)type) {
        case KEEL_FLOAT32:
            ((float *)to)[i] = draw() * (i % 5 ? 1.01f : i % 2 ? 1e-7f : 7e4f);
            break;
        case KEEL_BFLOAT16:
        case KEEL_FLOAT16: /* infinite and subnormal ones, too */
            ((uint16_t *)to)[i] = (uint16_t)(i % 7 ? any & 0xfbff : i % 2 ? 0x7c00 : 0x8003);
            if (type == KEEL_BFLOAT16) ((uint16_t *)to)[i] &= 0xff7f;
            break;
        case KEEL_INT32:
            ((int32_t *)to)[i] = (int32_t)any;
            break;
        case KEEL_INT64:
            ((int64_t *)to)[i] = any;
            break;
        default:
            ((uint8_t *)to)[i] = (uint8_t)(type == KEEL_BOOL ? any & 1 : any);
        }
    }
}

/* Casts say both types themselves, so their kernels' plain passes are tried on each pair. */
static void compare_cast(const keel_kernel *k, keel_dtype from_type, keel_dtype to_type, bool adds)
{
    enum { N = 1003 };
    static int64_t from[N], back[N], want[N], got[N];
    const keel_op *op = keel_op_find("cast");
    const void *in = from, *out_grad = back;
    void *want_grad = want, *got_grad = got, *out = want;
    keel_spec spec = { from_type, KEEL_SHAPE(N) };
    keel_node n = { .op = op, .real = KEEL_FLOAT32, .held = to_type, .n_in = 1, .in = &spec };
    keel_call c = { .node = &n,
                    .rows = 1,
                    .in = &in,
                    .out = &out,
                    .out_grad = &out_grad,
                    .in_grad = &want_grad,
                    .in_adds = &adds };
    keel_prepare p = { .node = &n, .rows = 1 };
    assert_int_equal(keel_node_infer(&n), KEEL_OK);
    if (keel_kernel_prepare(k, &p) >= 0) {
        fill_type(from, from_type, N);
        fill_type(back, to_type, N);
        memset(want, 0, sizeof want);
        memset(got, 0, sizeof got);
        op->forward[0](&c);
        out = got;
        k->run[KEEL_FORWARD](&c);
        if (memcmp(want, got, sizeof got))
            fail_msg("cast_%s from %s to %s", k->name, keel_dtype_name(from_type),
                     keel_dtype_name(to_type));
        if (keel_dtype_flows(from_type)) {
            fill_type(want, from_type, N);
            memcpy(got, want, sizeof got);
            op->backward[0](&c);
            c.in_grad = &got_grad;
            k->run[KEEL_BACKWARD](&c);
        }
        if (memcmp(want, got, sizeof got))
            fail_msg("cast_%s back from %s to %s, which %s", k->name, keel_dtype_name(to_type),
                     keel_dtype_name(from_type), adds ? "adds" : "overwrites");
    }
    keel_node_clear(&n);
}

static void casts_equal_their_reference(void **state)
{
    static const keel_dtype types[] = { KEEL_FLOAT32, KEEL_BFLOAT16, KEEL_FLOAT16, KEEL_INT32,
                                        KEEL_INT64,   KEEL_UINT8,    KEEL_BOOL };
    (void)state;
    for (int i = 0; keel_kernels[i]; i++)
        for (int from = 0; from < 7; from++)
            for (int to = 0; to < 3; to++)
                for (int adds = 0; adds < 2; adds++)
                    if (keel_kernels[i]->op == &keel_op_cast)
                        compare_cast(keel_kernels[i], types[from], types[to], adds);
}

/* Where rows met, batch_norm reads its weight gradients off the merged record, and what a worker
 * holds of inputs and gradients may be gone by then. */
static void a_weight_gradient_read_off_the_record_widens_no_values(void **state)
{
    (void)state;
    for (int frozen = 0; frozen < 2; frozen++) {
        const keel_case c = { "3,4,6", "6|6|6|6", frozen ? "frozen" : NULL };
        bench b;
        keel_widened *w;
        assert_int_equal(bench_open(&b, keel_op_find("batch_norm"), &c, true, 2, true), KEEL_OK);
        assert_int_equal(keel_widened_create(&w, &b.narrow, KEEL_WEIGHTS), KEEL_OK);
        assert_int_equal(keel_widened_bytes(w, 2) > 0, frozen);
        keel_widened_destroy(w);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_weight_gradient_read_off_the_record_widens_no_values),
        cmocka_unit_test(every_narrow_pass_equals_its_reference),
        cmocka_unit_test(bfloat16_is_rounded_as_by_the_plain_function),
        cmocka_unit_test(casts_equal_their_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
