/* Which kernels the networks of keel bench train and infer with: with AVX2 or more, no pass of any
 * op is left to its plain reference, whatever the dtype policy. Programs are compiled for it, with
 * their kernels prepared, and not run. */
#include "command.h"
#include "device/cpu/cpu.h"
#include "must.h"
#include "train/pairing.h"
#include "train/trainer.h"
#include "works.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Of the command, for names that it does not know. */
int keel_complain(int code, const char *format, ...)
{
    (void)format;
    return code;
}

const char *keel_nearest(const char *word, const char *const *names)
{
    (void)word;
    (void)names;
    return NULL;
}

/* A text for each pass that the reference runs. */
static int name_references(const char *what, const keel_program *p)
{
    static const char *const passes[] = { "forward", "backward", "weights", "partial",
                                          "partial backward" };
    int found = 0;
    for (int i = 0; i < p->graph->n_node; i++)
        for (int pass = 0; pass < KEEL_PASS_COUNT; pass++) {
            const keel_node *n = &p->graph->node[i].node;
            char kernel[KEEL_KERNEL_NAME_MAX];
            keel_program_kernel(p, i, (keel_pass)pass, kernel);
            if (strncmp(kernel, "reference", strlen("reference"))) continue;
            if (found++ < 20)
                print_error("%s: %s of %s ('%s') by the %s\n", what, passes[pass], n->op->name,
                            n->layer, kernel);
        }
    return found;
}

/* The passes of training and of inference that have no other kernel. */
static int plan(keel_model *m, const keel_work *w, const char *policy)
{
    enum { BATCH = 3 };
    keel_strategy *s;
    keel_trainer *t = NULL;
    keel_pairing pairing;
    char what[100];
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_pairing_guess(&pairing, m, NULL));
    const keel_trainer_work work = { &pairing, BATCH };
    must(keel_trainer_create(&t, m, s, &work, &work, &(keel_trainer_options){ .dry = true }));
    must(keel_program_measure(t->train.program, BATCH));
    must(keel_program_measure(t->test.program, BATCH));
    snprintf(what, sizeof what, "%s in %s", w->name, policy);
    int found = name_references(what, t->train.program);
    snprintf(what, sizeof what, "inference of %s in %s", w->name, policy);
    found += name_references(what, t->test.program);
    keel_trainer_destroy(t);
    keel_strategy_destroy(s);
    return found;
}

static bool is_large(const keel_work *w)
{
    return w->input.dim[0] >= 224;
}

/* A large network takes a while. mixed_float16 has float32's kernels and more casts, which the
 * small ones have. */
static int plan_all(const keel_work *w)
{
    static const char *const policies[] = { "float32", "mixed_bfloat16", "mixed_float16" };
    const int n = is_large(w) ? 2 : 3;
    keel_model *m;
    int found = 0;
    must(keel_work_build(w, NULL, 1, &m));
    for (int k = 0; k < n; k++) {
        must(keel_model_set_dtype_policy(m, policies[k]));
        found += plan(m, w, policies[k]);
    }
    keel_model_destroy(m);
    return found;
}

/* Kernels for AVX2 are among those of the better sets, of which the processor's best is tried with
 * the small networks. */
static void no_op_of_the_networks_runs_by_its_reference(void **state)
{
    const keel_cpu_isa best = keel_cpu_level();
    int found = 0;
    (void)state;
#ifndef KEEL_HAVE_DNNL
    skip(); /* it has the only fast kernel of some convolutions */
#endif
    if (best < KEEL_CPU_AVX2) skip();
    for (int i = 0; keel_work_at(i); i++) {
        const keel_work *w = keel_work_at(i);
        keel_cpu_limit(KEEL_CPU_AVX2);
        found += plan_all(w);
        keel_cpu_limit(KEEL_CPU_AMX);
        if (best > KEEL_CPU_AVX2 && !is_large(w)) found += plan_all(w);
    }
    if (found) fail_msg("%d passes have no fast kernel", found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_op_of_the_networks_runs_by_its_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
