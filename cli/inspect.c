/* keel inspect M.keras: the layer table, parameters, optimizer and its state. */
#include "setup.h"
#include <string.h>

static int run(const void *options, int n_arg, char **arg)
{
    keel_model *m = NULL;
    char *text = NULL;
    (void)options, (void)n_arg;
    int code = keel_setup_model(&m, arg[0], 0);
    if (code >= 0) return code;
    const keel_status s = keel_model_summary(m, &text);
    if (s >= 0) fputs(text, stdout);
    if (s >= 0 && !strcmp(keel_model_dtype_policy(m), "float32"))
        printf("float32: %s\n", keel_float32_in_force(KEEL_FLOAT32_EXACT));
    code = s < 0 ? keel_complain_status(s) : EXIT_OK;
    keel_model_summary_free(text);
    keel_model_destroy(m);
    return code;
}

const keel_command keel_command_inspect = {
    .name = "inspect",
    .args = "MODEL.keras",
    .least = 1,
    .most = 1,
    .summary = "Show a model: its layers, parameters and optimizer",
    .help = "",
    .example = "keel inspect m.keras",
    .run = run,
};
