/* keel inspect M.keras: prints the layers, parameters, optimizer and its state; with --kernels, the
 * kernel of each pass of each layer on this machine. */
#include "setup.h"
#include "shapes.h"
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *weights, *plugin;
    int64_t batch_size;
    const char *shape;
    int dtype;
    bool kernels;
} options;

/* Compile with any loss and optimizer: a plan needs them, but the kernels of layers do not depend
 * on them. */
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
    if ((code = keel_shapes_read(&shapes, o->shape, NULL, m)) >= 0) return code;
    const keel_status s = keel_plan_make(&p, m, NULL, rows, rows, KEEL_KEEP, shapes);
    free(shapes);
    if (s < 0) return keel_complain_status(s);
    printf("kernels of a training step of %lld row%s:\n", (long long)rows, rows == 1 ? "" : "s");
    for (int i = 0; i < p.n_kernel; i++) {
        const keel_kernel_row *r = &p.kernel[i];
        const char *const what[] = { "forward", "backward", "weights" };
        const char *const name[] = { r->forward, r->backward, r->weights };
        int printed = 0;
        for (int k = 0; k < 3; k++) {
            if (!*name[k]) continue;
            if (!printed) printf("%s (%s):", keel_printable(line, sizeof line, r->layer), r->op);
            printf("%s %s %s", printed++ ? "," : "", what[k], name[k]);
        }
        if (printed) putchar('\n');
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
        return keel_complain(EXIT_USAGE, "--batch-size needs --kernels");
    if (o->shape && !o->kernels) return keel_complain(EXIT_USAGE, "--shape needs --kernels");
    int code = keel_setup_plugin(o->plugin);
    if (code < 0) code = keel_setup_model(&m, arg[0], o->weights, o->dtype, false);
    if (code >= 0) return code;
    code = o->kernels ? print_kernels(m, o) : print_summary(m);
    keel_model_destroy(m);
    return code;
}

static const keel_option table[] = {
    KEEL_OPTION_ROW(options, kernels, "kernels", 0, false, KEEL_OPTION_FLAG, NULL, NULL,
                    "show the kernel of each pass of each layer on this machine"),
    KEEL_OPTION_ROW(options, batch_size, "batch-size", 0, false, KEEL_OPTION_POSITIVE, "N", NULL,
                    "with --kernels: rows per step (default: 32)"),
    KEEL_OPTION_ROW(
        options, shape, "shape", 0, false, KEEL_OPTION_TEXT, "DIMS", NULL,
        "with --kernels: shape of a row, if the model has open dimensions; see keel plan"),
    KEEL_PLUGIN_ROW(options, plugin),
    KEEL_WEIGHTS_ROW(options, weights),
    KEEL_DTYPE_ROW(options, dtype),
    { 0 },
};

const keel_command keel_command_inspect = {
    .name = "inspect",
    .args = "MODEL.keras",
    .least = 1,
    .most = 1,
    .summary = "Show a model: its layers, parameters and optimizer",
    .help = "The kernel named reference is plain C: that pass has no faster kernel. The report of "
            "keel fit names layers that are slow for this reason.",
    .example = "keel inspect m.keras --kernels --batch-size 64",
    .options = table,
    .size = sizeof(options),
    .run = run,
};
