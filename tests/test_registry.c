/* The lists that the build makes from the folders: each holds what its folder holds, by name. */
#include "activations/activation.h"
#include "device/cpu/cpu.h"
#include "initializers/initializer.h"
#include "layers/layer.h"
#include "losses/loss.h"
#include "metrics/metric.h"
#include "ops/op.h"
#include "optimizers/optimizer.h"
#include "constraints/constraint.h"
#include "regularizers/regularizer.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* Every list of things with arguments, seen as a list of their heads. */
static const struct {
    const char *kind;
    const void *const *list;
} lists[] = {
    { "layer", (const void *const *)keel_layers },
    { "loss", (const void *const *)keel_losses },
    { "metric", (const void *const *)keel_metrics },
    { "optimizer", (const void *const *)keel_optimizers },
    { "initializer", (const void *const *)keel_initializers },
    { "regularizer", (const void *const *)keel_regularizers },
    { "constraint", (const void *const *)keel_constraints },
    { "activation", (const void *const *)keel_activations },
};

_Static_assert(offsetof(keel_layer, type) == 0 && offsetof(keel_loss, type) == 0 &&
                   offsetof(keel_metric, type) == 0 && offsetof(keel_optimizer, type) == 0 &&
                   offsetof(keel_initializer, type) == 0 && offsetof(keel_regularizer, type) == 0 &&
                   offsetof(keel_constraint, type) == 0 && offsetof(keel_activation, type) == 0,
               "a named thing begins with its type");

static void everything_has_one_name_of_its_own(void **state)
{
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        int n = 0;
        for (; lists[k].list[n]; n++) {
            const keel_type *a = lists[k].list[n];
            if (!a->name || !*a->name) fail_msg("%s %d of its list has no name", lists[k].kind, n);
            for (int i = 0; i < n; i++) {
                const keel_type *b = lists[k].list[i];
                /* an operation of keras.ops may be called like a layer: its module parts them */
                if (!strcmp(a->name, b->name) && !strcmp(a->module, b->module))
                    fail_msg("two %ss: %s", lists[k].kind, a->name);
            }
        }
        if (n == 0) fail_msg("no %s was found by the build", lists[k].kind);
    }
}

static void every_argument_has_a_key_and_help(void **state)
{
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (int n = 0; lists[k].list[n]; n++) {
            const keel_type *t = lists[k].list[n];
            for (const keel_field *f = t->fields; f && f->key; f++) {
                if (!f->help || !*f->help) fail_msg("%s: %s has no help", t->name, f->key);
                for (const keel_field *g = t->fields; g != f; g++)
                    if (!strcmp(f->key, g->key)) fail_msg("%s: two %s", t->name, f->key);
            }
        }
}

static void ops_are_found_and_have_a_reference_and_cases(void **state)
{
    for (int n = 0; keel_ops[n]; n++) {
        const keel_op *op = keel_ops[n];
        assert_non_null(op->name);
        if (keel_op_find(op->name) != op) fail_msg("%s is not found by its name", op->name);
        if (!op->infer || !op->forward[0] || !op->forward[1]) fail_msg("%s: no forward", op->name);
        if (!op->cases || !op->cases[0].in || !op->cases[1].in)
            fail_msg("%s: fewer than two cases", op->name);
    }
    assert_null(keel_op_find("no such op"));
}

static void every_kernel_serves_an_op(void **state)
{
    for (int n = 0; keel_kernels[n]; n++) {
        const keel_kernel *k = keel_kernels[n];
        if (!k->op) fail_msg("kernel %s serves no op", k->name);
        bool runs = false;
        for (int p = 0; p < KEEL_PASS_COUNT; p++) runs |= k->run[p] || k->narrow[p];
        runs |= k->weights_tile || k->narrow_tile;
        if (!runs || !k->prepare) fail_msg("kernel %s of %s runs nothing", k->name, k->op->name);
    }
}

/* What a kernel's file is compiled for is the end of its name. */
static void kernels_say_which_instructions_they_need(void **state)
{
    for (int n = 0; keel_kernels[n]; n++) {
        const keel_kernel *k = keel_kernels[n];
        keel_cpu_isa isa = KEEL_CPU_BASE;
        for (int i = KEEL_CPU_AVX2; i < KEEL_CPU_ISAS; i++) {
            const char *set = keel_cpu_isa_name((keel_cpu_isa)i);
            const size_t length = strlen(k->name), end = strlen(set);
            if (length >= end && !strcmp(k->name + length - end, set)) isa = (keel_cpu_isa)i;
        }
        if (k->vendor) isa = KEEL_CPU_BASE; /* a library that asks the processor itself */
        if (k->needs != (int)isa)
            fail_msg("kernel %s of %s needs %s", k->name, k->op->name, keel_cpu_isa_name(isa));
    }
}

/* Of two that stand at the same place only one would ever be asked. */
static void kernels_of_an_op_are_asked_in_one_order(void **state)
{
    for (int n = 0; keel_kernels[n]; n++)
        for (int i = 0; i < n; i++) {
            const keel_kernel *a = keel_kernels[i], *b = keel_kernels[n];
            if (a->op == b->op && a->priority == b->priority)
                fail_msg("kernels %s and %s of %s both have priority %d", a->name, b->name,
                         a->op->name, (int)a->priority);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_has_one_name_of_its_own),
        cmocka_unit_test(every_argument_has_a_key_and_help),
        cmocka_unit_test(ops_are_found_and_have_a_reference_and_cases),
        cmocka_unit_test(every_kernel_serves_an_op),
        cmocka_unit_test(kernels_say_which_instructions_they_need),
        cmocka_unit_test(kernels_of_an_op_are_asked_in_one_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
