/* Which passes have no kernel for CUDA and run on copies on the host. Of ops: none, in any type. Of
 * the networks of keel bench, whose kernels may refuse: exactly those that tests/cuda_staged.list
 * names, so that none is added unseen, and one that gets a kernel leaves the list. Programs are
 * compiled for it, with their kernels prepared, and not run.
 *
 *     test_cuda_staged --write FILE    writes the list */
#include "command.h"
#include "device/device.h"
#include "must.h"
#include "train/pairing.h"
#include "train/strategy.h"
#include "train/trainer.h"
#include "works.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

extern const keel_kernel *const keel_cuda_kernels[];

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

/* ---- a device that only has kernels ---------------------------------------------------------- */

static keel_status allocate(keel_device *d, int64_t bytes, const char *what, void **out)
{
    (void)d;
    (void)what;
    *out = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    return *out ? KEEL_OK : KEEL_ENOMEM;
}

static void release(keel_device *d, void *at)
{
    (void)d;
    free(at);
}

static keel_status finish(keel_device *d)
{
    (void)d;
    return KEEL_OK;
}

static const keel_device_type planned = { .name = "planned",
                                          .allocate = allocate,
                                          .release = release,
                                          .finish = finish,
                                          .kernels = keel_cuda_kernels };

static const char *const passes[] = { "forward", "backward", "weights", "partial",
                                      "partial backward" };

/* ---- ops ------------------------------------------------------------------------------------- */

static bool has_reference(const keel_op *op, keel_pass pass)
{
    const keel_run of[KEEL_PASS_COUNT] = { op->forward[0], op->backward[0], op->weights[0],
                                           op->partial[0], op->partial_backward[0] };
    return of[pass] != NULL;
}

static const keel_kernel *kernel_of(const keel_op *op)
{
    int i = 0;
    while (keel_cuda_kernels[i] && keel_cuda_kernels[i]->op != op) i++;
    return keel_cuda_kernels[i];
}

static void every_pass_of_an_op_has_kernels(void **state)
{
    (void)state;
    int missing = 0;
    for (int i = 0; keel_ops[i]; i++)
        for (int pass = 0; pass < KEEL_PASS_COUNT; pass++) {
            const keel_op *op = keel_ops[i];
            const keel_kernel *k = kernel_of(op);
            if (!has_reference(op, (keel_pass)pass)) continue;
            const bool narrow = op->casts || (k && k->narrow[pass] && k->half[pass]);
            if (k && k->run[pass] && narrow) continue;
            print_error("%s has no kernel for %s\n", op->name, passes[pass]);
            missing++;
        }
    if (missing) fail_msg("%d passes would run on copies on the host", missing);
}

/* ---- what is staged -------------------------------------------------------------------------- */

enum { LINES_MAX = 400, LINE_MAX_BYTES = 400 };
static char staged[LINES_MAX][LINE_MAX_BYTES]; /* "conv2d forward, float32: resnet18 resnet50" */
static int n_staged;

static void note(const char *what, const char *network)
{
    const size_t length = strlen(what);
    int i = 0;
    while (i < n_staged && strncmp(staged[i], what, length)) i++;
    assert_true(i < LINES_MAX);
    if (i == n_staged) snprintf(staged[n_staged++], LINE_MAX_BYTES, "%s", what);
    char *at = staged[i] + strlen(staged[i]);
    const size_t name = strlen(network);
    if (at - staged[i] > (ptrdiff_t)name && !strcmp(at - name, network) &&
        at[-(ptrdiff_t)name - 1] == ' ')
        return; /* noted last */
    snprintf(at, (size_t)(staged[i] + LINE_MAX_BYTES - at), " %s", network);
}

static void note_staged(const keel_program *p, const char *policy, const char *network)
{
    for (int i = 0; i < p->graph->n_node; i++)
        for (int pass = 0; pass < KEEL_PASS_COUNT; pass++) {
            const keel_node *n = &p->graph->node[i].node;
            char kernel[KEEL_KERNEL_NAME_MAX], what[120];
            keel_program_kernel(p, i, (keel_pass)pass, kernel);
            if (strncmp(kernel, "reference", strlen("reference"))) continue;
            snprintf(what, sizeof what, "%s %s, %s:", n->op->name, passes[pass], policy);
            note(what, network);
        }
}

static void plan(keel_model *m, const keel_work *w, const char *policy)
{
    enum { BATCH = 3 };
    keel_device device = { .type = &planned, .name = "cuda:0" };
    keel_strategy *s;
    keel_trainer *t = NULL;
    keel_pairing pairing;
    must(keel_strategy_create_devices(&s, (keel_device *[]){ &device }, 1));
    must(keel_pairing_guess(&pairing, m, NULL));
    const keel_trainer_work work = { &pairing, BATCH };
    must(keel_trainer_create(&t, m, s, &work, &work, &(keel_trainer_options){ .dry = true }));
    must(keel_program_measure(t->train.program, BATCH));
    must(keel_program_measure(t->test.program, BATCH));
    note_staged(t->train.program, policy, w->name);
    note_staged(t->test.program, policy, w->name);
    keel_trainer_destroy(t);
    keel_strategy_destroy(s);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void find_staged(void)
{
    static const char *const policies[] = { "float32", "mixed_bfloat16", "mixed_float16" };
    for (int i = 0; keel_work_at(i); i++) {
        const keel_work *w = keel_work_at(i);
        keel_model *m;
        must(keel_work_build(w, NULL, 1, &m));
        for (int k = 0; k < 3; k++) {
            must(keel_model_set_dtype_policy(m, policies[k]));
            plan(m, w, policies[k]);
        }
        keel_model_destroy(m);
    }
    qsort(staged, (size_t)n_staged, sizeof *staged, by_text);
}

static void the_list_names_what_is_staged(void **state)
{
    (void)state;
    char line[LINE_MAX_BYTES];
    int i = 0, wrong = 0;
    find_staged();
    FILE *f = fopen(KEEL_STAGED_LIST, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (*line == '#' || !*line) continue;
        while (i < n_staged && strcmp(staged[i], line) < 0) {
            print_error("staged, and not in the list: %s\n", staged[i++]);
            wrong++;
        }
        if (i < n_staged && !strcmp(staged[i], line)) {
            i++;
            continue;
        }
        print_error("in the list, and not staged: %s\n", line);
        wrong++;
    }
    for (; i < n_staged; i++, wrong++) print_error("staged, and not in the list: %s\n", staged[i]);
    fclose(f);
    if (wrong) fail_msg("%d lines differ: test_cuda_staged --write FILE", wrong);
}

static int write_list(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) return 1;
    find_staged();
    fprintf(f,
            "# Passes of the networks of keel bench that have no kernel for CUDA, and run on the "
            "host on copies.\n# Made by test_cuda_staged --write FILE; lines only leave it.\n");
    for (int i = 0; i < n_staged; i++) fprintf(f, "%s\n", staged[i]);
    return fclose(f) ? 1 : 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_of_an_op_has_kernels),
        cmocka_unit_test(the_list_names_what_is_staged),
    };
    if (argc == 3 && !strcmp(argv[1], "--write")) return write_list(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
