/* keel inspect M.keras: the layer table, parameters, optimizer and its state; with --kernels, what
 * would run each pass of each layer on this machine. */
#include "setup.h"
#include "shapes.h"
#include <stdlib.h>
#include <string.h>

typedef struct options {
    int64_t batch_size;
    const char *shape;
    int dtype;
    bool kernels;
} options;

/* What a model learns by is no matter to the kernels of its layers, but a plan wants to know. */
static int compile_any(keel_model *m)
{
    if (keel_model_is_compiled(m) && !keel_model_refused(m)) return -1;
    const keel_compile c = { KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } };
    const keel_status s = keel_model_compile(m, &c);
    return s < 0 ? keel_complain_status(s) : -1;
}

static int print_kernels(keel_model *m, const options *o)
{
    keel_plan p = { 0 };
    const int64_t rows = o->batch_size ? o->batch_size : 32;
    char line[256];
    int code = compile_any(m);
    keel_shape *shapes = NULL;
    if (code >= 0) return code;
    if ((code = keel_shapes_read(&shapes, o->shape, m)) >= 0) return code;
    const keel_status s = keel_plan_make(&p, m, NULL, rows, rows, KEEL_KEEP, shapes);
    free(shapes);
    if (s < 0) return keel_complain_status(s);
    printf("kernels of a training step of %lld rows:\n", (long long)rows);
    for (int i = 0; i < p.n_kernel; i++) {
        const keel_kernel_row *r = &p.kernel[i];
        const char *const what[] = { "forward", "backward", "weights" };
        const char *const name[] = { r->forward, r->backward, r->weights };
        int said = 0;
        for (int k = 0; k < 3; k++) {
            if (!*name[k]) continue;
            if (!said) printf("%s (%s):", keel_printable(line, sizeof line, r->layer), r->op);
            printf("%s %s %s", said++ ? "," : "", what[k], name[k]);
        }
        if (said) putchar('\n');
    }
    keel_plan_free(&p);
    return EXIT_OK;
}

static int print_summary(keel_model *m)
{
    char *text = NULL;
    const keel_status s = keel_model_summary(m, &text);
    if (s >= 0) fputs(text, stdout);
    if (s >= 0 && !strcmp(keel_model_dtype_policy(m), "float32"))
        printf("float32: %s\n", keel_float32_in_force(KEEL_FLOAT32_EXACT));
    keel_model_summary_free(text);
    return s < 0 ? keel_complain_status(s) : EXIT_OK;
}

static int run(const void *given, int n_arg, char **arg)
{
    const options *o = given;
    keel_model *m = NULL;
    (void)n_arg;
    if (o->batch_size && !o->kernels)
        return keel_complain(EXIT_USAGE, "--batch-size is of --kernels, which is not given");
    if (o->shape && !o->kernels)
        return keel_complain(EXIT_USAGE, "--shape is of --kernels, which is not given");
    int code = keel_setup_model(&m, arg[0], o->dtype);
    if (code >= 0) return code;
    code = o->kernels ? print_kernels(m, o) : print_summary(m);
    keel_model_destroy(m);
    return code;
}

static const keel_option table[] = {
    KEEL_OPTION_ROW(options, kernels, "kernels", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "show which kernel would run each pass of each layer on this machine"),
    KEEL_OPTION_ROW(options, batch_size, "batch-size", 0, false, KEEL_OPTION_POSITIVE, "N", NULL,
                    "with --kernels: rows of a step (default: 32)"),
    KEEL_OPTION_ROW(options, shape, "shape", 0, false, KEEL_OPTION_TEXT, "DIMS", NULL,
                    "with --kernels: of a row, where the model leaves it open; see keel plan"),
    KEEL_DTYPE_ROW(options, dtype),
    { 0 },
};

const keel_command keel_command_inspect = {
    .name = "inspect",
    .args = "MODEL.keras",
    .least = 1,
    .most = 1,
    .summary = "Show a model: its layers, parameters and optimizer",
    .help = "A kernel called reference is the plain one: no faster one takes that pass. keel fit "
            "says at its end where that costs.",
    .example = "keel inspect m.keras --kernels --batch-size 64",
    .options = table,
    .size = sizeof(options),
    .run = run,
};
