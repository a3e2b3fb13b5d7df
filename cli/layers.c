/* keel layers [NAME]: lists the layer classes, or the arguments of one. */
#include "command.h"
#include <string.h>
#include <strings.h>

static int run(const void *options, int n_arg, char **arg)
{
    const char *names[512] = { NULL }, *name = NULL;
    char *text = NULL;
    (void)options;
    for (int i = 0; i < 511 && (names[i] = keel_layer_class(i)); i++)
        if (n_arg && !strcasecmp(names[i], arg[0])) name = names[i];
    if (n_arg == 0) {
        for (int i = 0; names[i]; i++) puts(names[i]);
        return EXIT_OK;
    }
    if (!name) {
        const char *near = keel_nearest(arg[0], names);
        if (near)
            return keel_complain(EXIT_USAGE, "there is no layer '%s'; did you mean %s?", arg[0],
                                 near);
        return keel_complain(EXIT_USAGE, "there is no layer '%s'; keel layers lists them", arg[0]);
    }
    const keel_status s = keel_layer_help(name, &text);
    if (s < 0) return keel_complain_status(s);
    fputs(text, stdout);
    if (*text && text[strlen(text) - 1] != '\n') putchar('\n');
    keel_model_summary_free(text);
    return EXIT_OK;
}

const keel_command keel_command_layers = {
    .name = "layers",
    .args = "[NAME]",
    .most = 1,
    .summary = "List the layers of Keel, or the arguments of one",
    .help = "Names, arguments and defaults are those of keras.layers.",
    .example = "keel layers Conv2D",
    .run = run,
};
