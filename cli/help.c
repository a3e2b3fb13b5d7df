/* keel help [COMMAND]: describes all commands or one, as text, as man page (docs/keel.1) or as
 * Markdown (docs/commands.md), from the tables of the commands. */
#include "command.h"
#include <ctype.h>
#include <string.h>

static const char INTRO[] =
    "Keel trains a Keras model on all devices of a machine, exactly as one device would: the "
    "result is the same for any number of devices, of rows, and of rows in the last step.";

static const struct {
    int code;
    const char *text;
} EXIT_TEXT[] = {
    { EXIT_OK, "success" },
    { EXIT_FAILED, "a failure while running: a file, the data, memory, a device, or a value that "
                   "is not finite" },
    { EXIT_USAGE, "wrong usage: a command, an option or an argument" },
    { EXIT_UNSUPPORTED, "not supported: a layer or an option of a model that Keel does not have" },
    { EXIT_STOPPED, "stopped by Ctrl-C, after the current step; the model is saved" },
    { EXIT_TERMINATED,
      "stopped by SIGTERM: the model after the last finished step is saved; SIGHUP "
      "(129), a closed pipe (141) and a limit of processor time (152) do the same" },
};
enum { EXIT_COUNT = sizeof EXIT_TEXT / sizeof *EXIT_TEXT };

static const char KEEL_CPU_TEXT[] =
    "The environment variable KEEL_CPU=base, avx2, avx512, avx512_bf16 or amx limits Keel and "
    "oneDNN to these instructions, to reproduce the results of another machine. keel --version "
    "shows the instructions in use.";

/* ---- text ------------------------------------------------------------------------------------ */

/* Print words wrapped to 80 columns; the first line begins at `column`, others at `indent`. */
static void wrap(FILE *f, const char *text, int column, int indent)
{
    while (*text) {
        while (*text == ' ') text++;
        const int n = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + n > 79) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', f);
            column++;
        }
        fwrite(text, 1, (size_t)n, f);
        column += n;
        text += n;
        if (*text == '\n') {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
            text++;
        }
    }
    fputc('\n', f);
}

static int spell(char *out, size_t size, const keel_option *o)
{
    char letter[8] = "";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    return snprintf(out, size, "%s--%s%s%s", letter, o->name,
                    o->kind == KEEL_OPTION_FLAG ? "" : " ",
                    o->kind == KEEL_OPTION_FLAG ? "" : o->value);
}

static const char *meaning(char *out, size_t size, const keel_option *o)
{
    if (o->required)
        snprintf(out, size, "%s (required)", o->help);
    else if (o->fallback)
        snprintf(out, size, "%s (default %s)", o->help, o->fallback);
    else
        snprintf(out, size, "%s", o->help);
    return out;
}

void keel_help_command(FILE *f, const keel_command *c)
{
    enum { COLUMN = 26 };
    char left[160], right[640];
    fprintf(f, "usage: keel %s%s%s%s\n\n", c->name, *c->args ? " " : "", c->args,
            c->options && c->options->name ? " [options]" : "");
    wrap(f, c->summary, 0, 0);
    if (*c->help) {
        fputc('\n', f);
        wrap(f, c->help, 0, 0);
    }
    fputs("\noptions:\n", f);
    for (const keel_option *o = c->options; o && o->name; o++) {
        const int n = spell(left, sizeof left, o);
        fprintf(f, "  %s", left);
        if (n + 4 > COLUMN)
            fprintf(f, "\n%*s", COLUMN, "");
        else
            fprintf(f, "%*s", COLUMN - 2 - n, "");
        wrap(f, meaning(right, sizeof right, o), COLUMN, COLUMN);
    }
    fprintf(f, "  %-*s%s\n", COLUMN - 2, "-h, --help", "print this");
    fputs("\nexample:\n  ", f);
    for (const char *p = c->example; *p; p++) {
        fputc(*p, f);
        if (*p == '\n') fputs("  ", f);
    }
    fputs("\n\nexit codes: ", f);
    for (int i = 0; EXIT_TEXT[i].code != EXIT_TERMINATED; i++) /* one line */
        fprintf(f, "%s%d %.*s", i ? ", " : "", EXIT_TEXT[i].code,
                (int)strcspn(EXIT_TEXT[i].text, ":,"), EXIT_TEXT[i].text);
    fputs(" (see keel help)\n", f);
}

void keel_help_all(FILE *f)
{
    fputs("usage: keel COMMAND [arguments] [options]\n\n", f);
    wrap(f, INTRO, 0, 0);
    fputs("\ncommands:\n", f);
    for (int i = 0; keel_commands[i]; i++)
        fprintf(f, "  %-10s %s\n", keel_commands[i]->name, keel_commands[i]->summary);
    fputs("\nkeel COMMAND --help describes a command, with an example; keel --version shows the "
          "version.\n\n"
          "exit codes:\n",
          f);
    for (int i = 0; i < EXIT_COUNT; i++) {
        fprintf(f, "  %3d  ", EXIT_TEXT[i].code);
        wrap(f, EXIT_TEXT[i].text, 7, 7);
    }
    fputc('\n', f);
    wrap(f, KEEL_CPU_TEXT, 0, 0);
}

/* ---- man page -------------------------------------------------------------------------------- */

/* Text of a man page: '-' and '\' escaped, no line begins with '.' or '\''. */
static void man_text(const char *text)
{
    bool begins = true;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

static void man_command(const keel_command *c)
{
    char left[160], right[640];
    printf(".SS \"keel %s %s\"\n", c->name, c->args);
    man_text(c->summary);
    fputs(".\n", stdout);
    if (*c->help) {
        fputs(".PP\n", stdout);
        man_text(c->help);
        putchar('\n');
    }
    for (const keel_option *o = c->options; o && o->name; o++) {
        spell(left, sizeof left, o);
        fputs(".TP\n.B ", stdout);
        man_text(left);
        putchar('\n');
        man_text(meaning(right, sizeof right, o));
        putchar('\n');
    }
    fputs(".PP\n.nf\n", stdout);
    man_text(c->example);
    fputs("\n.fi\n", stdout);
}

static void man_page(void)
{
    fputs(".\\\" Made by: keel help --format man\n.TH KEEL 1 \"\" \"Keel " KEEL_VERSION
          "\" \"User Commands\"\n"
          ".SH NAME\nkeel \\- train a Keras model on all devices of a machine\n"
          ".SH SYNOPSIS\n.B keel\n.I COMMAND\n[arguments] [options]\n.SH DESCRIPTION\n",
          stdout);
    man_text(INTRO);
    fputs("\n.SH COMMANDS\n", stdout);
    for (int i = 0; keel_commands[i]; i++) man_command(keel_commands[i]);
    fputs(".SH \"EXIT STATUS\"\n", stdout);
    for (int i = 0; i < EXIT_COUNT; i++) {
        printf(".TP\n.B %d\n", EXIT_TEXT[i].code);
        man_text(EXIT_TEXT[i].text);
        putchar('\n');
    }
    fputs(".SH ENVIRONMENT\n", stdout);
    man_text(KEEL_CPU_TEXT);
    fputs("\n.SH ERRORS\nAn error is one line on standard error: what, where, what to do.\n",
          stdout);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void markdown_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|') putchar('\\');
        putchar(*text);
    }
}

static void markdown(void)
{
    char left[160], right[640];
    puts("<!-- Made by: keel help --format markdown -->\n# The commands of keel\n");
    puts(INTRO);
    for (int i = 0; keel_commands[i]; i++) {
        const keel_command *c = keel_commands[i];
        printf("\n## keel %s%s%s\n\n%s.\n", c->name, *c->args ? " " : "", c->args, c->summary);
        if (*c->help) printf("\n%s\n", c->help);
        if (c->options && c->options->name) puts("\n| option | |\n|---|---|");
        for (const keel_option *o = c->options; o && o->name; o++) {
            spell(left, sizeof left, o);
            fputs("| `", stdout);
            markdown_cell(left);
            fputs("` | ", stdout);
            markdown_cell(meaning(right, sizeof right, o));
            puts(" |");
        }
        printf("\n```\n%s\n```\n", c->example);
    }
    puts("\n## Exit codes\n");
    for (int i = 0; i < EXIT_COUNT; i++) printf("- %d: %s\n", EXIT_TEXT[i].code, EXIT_TEXT[i].text);
    printf("\n## Environment\n\n%s\n", KEEL_CPU_TEXT);
}

/* ---- the command ----------------------------------------------------------------------------- */

typedef struct options {
    int format;
} options;

enum { TEXT, MAN, MARKDOWN };

static int run(const void *given, int n_arg, char **arg)
{
    const options *o = given;
    if (o->format == MAN) {
        man_page();
    } else if (o->format == MARKDOWN) {
        markdown();
    } else if (n_arg == 0) {
        keel_help_all(stdout);
    } else {
        const keel_command *c = keel_command_find(arg[0]);
        if (!c)
            return keel_complain(EXIT_USAGE, "there is no command '%s'; keel help lists them",
                                 arg[0]);
        keel_help_command(stdout, c);
    }
    return EXIT_OK;
}

static const keel_option table[] = {
    { .name = "format",
      .kind = KEEL_OPTION_CHOICE,
      .value = "text|man|markdown",
      .fallback = "text",
      .help = "text has one command or the list; man and markdown have all commands",
      .offset = offsetof(options, format) },
    { 0 },
};

const keel_command keel_command_help = {
    .name = "help",
    .args = "[COMMAND]",
    .most = 1,
    .summary = "Describe all commands, or one",
    .help = "",
    .example = "keel help fit\nkeel help --format man | man -l -",
    .options = table,
    .size = sizeof(options),
    .run = run,
};
