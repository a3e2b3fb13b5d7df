/* keel: finds the command, parses its options, runs it. */
#include "command.h"
#include "processes.h"
#include "voice.h"
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGS = 16 };

/* Flush standard output: a full disk or a closed pipe is only noticed here. */
static int end(int code)
{
    if (code == EXIT_OK && (fflush(stdout) || ferror(stdout)))
        code = keel_complain(EXIT_FAILED, "standard output cannot be written");
    keel_processes_leave();
    return code;
}

static int run(const keel_command *c, int argc, char **argv)
{
    char *arg[MOST_ARGS] = { NULL };
    int n_arg = 0;
    void *options = calloc(1, c->size ? c->size : 1);
    if (!options) return keel_complain(EXIT_FAILED, "out of memory");
    int code = keel_processes_look(c);
    if (code < 0) code = keel_command_parse(c, argc, argv, options, &n_arg, arg);
    if (code < 0) code = c->run(options, n_arg, arg);
    free(options);
    return end(code);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    keel_voice_begin();
    signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit is an error of its write */
    if (argc < 2) {
        keel_help_all(stderr);
        return EXIT_USAGE;
    }
    const char *const most = getenv("KEEL_CPU");
    if (most && *most && keel_instructions_limit(most) < 0)
        return keel_complain(EXIT_USAGE, "KEEL_CPU: %s", keel_error());
    const char *word = argv[1];
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) word = "help";
    if (!strcmp(word, "--version")) {
        printf("keel " KEEL_VERSION " (%s)\n", keel_computes_with());
        return end(EXIT_OK);
    }
    const keel_command *c = keel_command_find(word);
    if (c) return run(c, argc - 2, argv + 2);

    const char *names[64] = { NULL };
    for (int i = 0; keel_commands[i] && i < 63; i++) names[i] = keel_commands[i]->name;
    const char *near = keel_nearest(word, names);
    if (near)
        return keel_complain(EXIT_USAGE, "there is no command '%s'; did you mean keel %s?", word,
                             near);
    return keel_complain(EXIT_USAGE, "there is no command '%s'; keel help lists them", word);
}
