/* keel callbacks [NAME]: lists the callbacks, or the arguments of one. */
#include "command.h"
#include <string.h>
#include <strings.h>

static int run(const void *options, int n_arg, char **arg)
{
    const char *names[128] = { NULL }, *name = NULL;
    char *text = NULL;
    (void)options;
    for (int i = 0; i < 127 && (names[i] = keel_callback_class(i)); i++)
        if (n_arg && !strcasecmp(names[i], arg[0])) name = names[i];
    if (n_arg == 0) {
        for (int i = 0; names[i]; i++) puts(names[i]);
        return EXIT_OK;
    }
    const keel_status s = keel_callback_help(name ? name : arg[0], &text);
    const char *near = name ? NULL : keel_nearest(arg[0], names);
    if (s == KEEL_EARG && near)
        return keel_complain(EXIT_USAGE, "there is no callback '%s'; did you mean %s?", arg[0],
                             near);
    if (s < 0) return keel_complain_status(s);
    fputs(text, stdout);
    keel_model_summary_free(text);
    return EXIT_OK;
}

const keel_command keel_command_callbacks = {
    .name = "callbacks",
    .args = "[NAME]",
    .most = 1,
    .summary = "List the callbacks of Keel, or the arguments of one",
    .help =
        "Names, arguments and defaults are those of keras.callbacks. keel fit --callbacks takes "
        "them as they are written in Python.",
    .example = "keel callbacks EarlyStopping",
    .run = run,
};
