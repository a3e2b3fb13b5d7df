/* GPUs that add up gradients by NCCL (device/cuda/sums.cu), on doubles of CUDA's runtime and of
 * NCCL: the sums; what cannot be joined is refused by its reason; any call that fails, a link that
 * is lost and a GPU that never comes end the wait of the others. The double itself finds every
 * wrong call of a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "misuses_said.h"
#include "device/cuda_plugin.h"
#include "emulator.h"
#include "must.h"

extern const keel_cuda_plugin keel_cuda;

enum { GPUS = 3, COUNT = 5, MORE = 9 };

static void wrong_calls_are_found_and_no_others(void **unused)
{
    (void)unused;
    check_misuses(nccl_misuses);
    assert_int_equal(cuda_double_live(), 0);
    assert_int_equal(cuda_runtime_live(), 0);
}

/* GPUs with two ranges of numbers each. */
typedef struct gpus {
    int n;
    keel_device *at[GPUS];
    keel_device_group *group;
    void *range[GPUS][2];
    void *others; /* on the first, which has less memory than the rest */
    int64_t before;
} gpus;

static gpus open_gpus(int n)
{
    gpus g = { .n = n, .before = cuda_double_taken() };
    for (int r = 0; r < n; r++) must(keel_cuda.open(&g.at[r], r));
    must(g.at[0]->type->allocate(g.at[0], 1 << 20, "others", &g.others));
    return g;
}

static void close_gpus(gpus *g)
{
    const char *fault = emu_report();
    if (fault) fail_msg("%s", fault);
    if (g->group) g->group->type->leave(g->group);
    g->at[0]->type->release(g->at[0], g->others);
    for (int r = 0; r < g->n; r++) {
        const keel_device_type *t = g->at[r]->type;
        for (int k = 0; k < 2; k++)
            if (g->range[r][k]) t->release(g->at[r], g->range[r][k]);
        t->close(g->at[r]);
    }
    fault = emu_report();
    if (fault) fail_msg("at the end: %s", fault);
    emu_release_all();
    assert_int_equal(cuda_double_live(), 0);
    assert_int_equal(cuda_runtime_live(), 0);
    assert_int_equal(cuda_double_taken(), g->before);
}

static keel_status join(gpus *g)
{
    return g->at[0]->type->join(g->at, g->n, &g->group);
}

/* Number i of range k of a rank. */
static float number(int rank, int k, int i)
{
    return (float)(1 + rank) * (float)(10 * k + i);
}

static void fill(gpus *g)
{
    for (int r = 0; r < g->n; r++)
        for (int k = 0; k < 2; k++) {
            float x[MORE];
            const int n = k ? MORE : COUNT;
            for (int i = 0; i < n; i++) x[i] = number(r, k, i);
            must(g->at[r]->type->allocate(g->at[r], n * 4, "numbers", &g->range[r][k]));
            g->at[r]->type->copy_in(g->at[r], KEEL_COPY_OUT_STREAM, g->range[r][k], x, n * 4);
        }
}

static void sum(gpus *g, int r)
{
    const keel_device_range range[] = { { g->range[r][0], COUNT }, { g->range[r][1], MORE } };
    g->at[r]->type->sum(g->at[r], g->group, r, KEEL_FLOAT32, range, 2);
}

static void gpus_have_the_sum_of_all(void **unused)
{
    (void)unused;
    for (int n = 2; n <= GPUS; n++) {
        gpus g = open_gpus(n);
        must(join(&g));
        fill(&g);
        const int64_t sums = cuda_double_sums();
        for (int r = 0; r < n; r++) sum(&g, r);
        assert_int_equal(cuda_double_sums(), sums + 2);
        for (int r = 0; r < n; r++) {
            keel_device *d = g.at[r];
            for (int k = 0; k < 2; k++) {
                float x[MORE];
                const int count = k ? MORE : COUNT;
                d->type->copy_out(d, KEEL_COPY_OUT_STREAM, x, g.range[r][k], count * 4);
                must(keel_device_reach(d, KEEL_COPY_OUT_STREAM));
                for (int i = 0; i < count; i++) {
                    float want = 0;
                    for (int q = 0; q < n; q++) want += number(q, k, i);
                    assert_true(x[i] == want);
                }
            }
            must(keel_device_finish(d));
            d->type->look(d);
            assert_int_equal(d->own[KEEL_OWN_SUMS], CUDA_DOUBLE_NCCL);
        }
        close_gpus(&g);
    }
}

static void what_cannot_be_joined_is_refused_by_its_reason(void **unused)
{
    gpus g = open_gpus(2);
    keel_device *part, *two[2];
    (void)unused;
    must(keel_cuda.open(&part, 0));
    two[0] = g.at[0];
    two[1] = part;
    assert_int_equal(part->type->join(two, 2, &g.group), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "NCCL does not add up among parts of one GPU"));
    part->type->close(part);
    cuda_double_without(CUDA_DOUBLE_NO_NCCL);
    assert_int_equal(join(&g), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "libnccl.so.2 is not there; install NCCL 2.14"));
    cuda_double_without(0);
    cuda_double_breaks_links(true);
    assert_int_equal(join(&g), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "NCCL cannot begin: remote process exited"));
    cuda_double_breaks_links(false);
    assert_null(g.group);
    close_gpus(&g);
}

static void fail_at(bool nccl, int64_t call)
{
    if (nccl)
        cuda_double_fail_at(call);
    else
        cuda_runtime_fail_at(call, false);
}

static int64_t calls_of(bool nccl)
{
    return nccl ? cuda_double_calls() : cuda_runtime_calls();
}

/* Each call of NCCL, or of CUDA, fails once: it is said, and nothing stays. */
static void fail_each(bool nccl, int *refused, int *failed)
{
    for (int64_t k = 1;; k++) {
        gpus g = open_gpus(2);
        fill(&g);
        const int64_t before = calls_of(nccl);
        fail_at(nccl, k);
        const keel_status s = join(&g);
        if (s < 0) {
            ++*refused;
            assert_int_equal(s, KEEL_EUNSUP);
            assert_non_null(strstr(keel_error(), "NCCL cannot begin"));
        } else {
            for (int r = 0; r < 2; r++) sum(&g, r);
            const keel_status a = keel_device_finish(g.at[0]), b = keel_device_finish(g.at[1]);
            if (a < 0 || b < 0) {
                ++*failed;
                assert_true(a == KEEL_EDEVICE || b == KEEL_EDEVICE);
                if (nccl) assert_false(keel_device_group_works(g.group));
            }
        }
        const bool reached = calls_of(nccl) - before >= k;
        fail_at(nccl, 0);
        close_gpus(&g);
        if (!reached) break;
        assert_true(k < 100);
    }
}

static void a_call_that_fails_ends_the_group(void **unused)
{
    int refused = 0, failed = 0;
    (void)unused;
    fail_each(true, &refused, &failed);
    assert_true(refused >= 8 && failed >= 6);
}

static void a_call_of_cuda_that_fails_is_told(void **unused)
{
    int refused = 0, failed = 0;
    (void)unused;
    fail_each(false, &refused, &failed);
    assert_true(refused >= 2 && failed >= 4);
}

static void a_gpu_that_never_comes_is_not_waited_for(void **unused)
{
    gpus g = open_gpus(2);
    (void)unused;
    must(join(&g));
    fill(&g);
    for (int r = 0; r < 2; r++) g.at[r]->patience = 0.05;
    sum(&g, 0); /* the other does not */
    assert_int_equal(keel_device_reach(g.at[0], KEEL_COPY_OUT_STREAM), KEEL_EREMOTE);
    assert_non_null(strstr(keel_error(), "cuda:0 has waited for the gradients of other GPUs"));
    assert_false(keel_device_group_works(g.group));
    must(keel_device_finish(g.at[0])); /* it works, and may be asked for its weights */
    sum(&g, 1);                        /* too late, and it is told */
    assert_true(keel_device_finish(g.at[1]) < 0);
    close_gpus(&g);
}

static void sums_that_are_made_do_not_fail_when_their_group_ends(void **unused)
{
    gpus g = open_gpus(2);
    (void)unused;
    must(join(&g));
    fill(&g);
    for (int r = 0; r < 2; r++) sum(&g, r);
    for (int r = 0; r < 2; r++) must(keel_device_finish(g.at[r]));
    g.group->type->give_up(g.group);
    for (int r = 0; r < 2; r++) {
        float x;
        g.at[r]->type->copy_out(g.at[r], KEEL_COPY_OUT_STREAM, &x, g.range[r][1], sizeof x);
        must(keel_device_reach(g.at[r], KEEL_COPY_OUT_STREAM));
        assert_true(x == number(0, 1, 0) + number(1, 1, 0));
    }
    close_gpus(&g);
}

static void a_lost_link_ends_the_wait_at_once(void **unused)
{
    gpus g = open_gpus(2);
    (void)unused;
    must(join(&g));
    fill(&g);
    for (int r = 0; r < 2; r++) g.at[r]->patience = 1000; /* which nobody waits for */
    cuda_double_breaks_links(true);
    for (int r = 0; r < 2; r++) sum(&g, r);
    assert_int_equal(keel_device_reach(g.at[0], KEEL_COPY_OUT_STREAM), KEEL_EREMOTE);
    assert_non_null(strstr(keel_error(), "other GPUs: NCCL: remote process exited"));
    assert_false(keel_device_group_works(g.group));
    assert_true(keel_device_reach(g.at[1], KEEL_COPY_OUT_STREAM) < 0);
    cuda_double_breaks_links(false);
    close_gpus(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_calls_are_found_and_no_others),
        cmocka_unit_test(gpus_have_the_sum_of_all),
        cmocka_unit_test(what_cannot_be_joined_is_refused_by_its_reason),
        cmocka_unit_test(a_call_that_fails_ends_the_group),
        cmocka_unit_test(a_call_of_cuda_that_fails_is_told),
        cmocka_unit_test(a_gpu_that_never_comes_is_not_waited_for),
        cmocka_unit_test(sums_that_are_made_do_not_fail_when_their_group_ends),
        cmocka_unit_test(a_lost_link_ends_the_wait_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
