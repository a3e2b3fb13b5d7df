/* A command of `keel`: one const struct keel_command_STEM at the end of cli/STEM.c; the build lists
 * them. Its table of options is the only place an option is described: the parser, --help, the man
 * page and docs/commands.md all read it.
 *
 * The commands see only the public headers: what they do, a C program can do. */
#ifndef KEEL_CLI_COMMAND_H
#define KEEL_CLI_COMMAND_H
#include <keel/keel.h>
#include <stdio.h>

/* ---- options --------------------------------------------------------------------------------- */

typedef enum keel_option_kind {
    KEEL_OPTION_FLAG,     /* bool */
    KEEL_OPTION_COUNT,    /* int64_t, 0 or more */
    KEEL_OPTION_POSITIVE, /* int64_t, 1 or more; 0 where it is not given and has no default */
    KEEL_OPTION_REAL,     /* double; NAN where it is not given and has no default */
    KEEL_OPTION_TEXT,     /* const char *; NULL where it is not given and has no default */
    KEEL_OPTION_CHOICE    /* int: the index of the word in `value`, "keep|drop|carry" */
} keel_option_kind;

typedef struct keel_option {
    const char *name; /* "batch-size" is --batch-size; NULL ends a table */
    char letter;      /* 'o' for -o; 0: none */
    bool required;
    keel_option_kind kind;
    const char *value;    /* as help shows it: "N", "SRC"; the words of a choice */
    const char *fallback; /* the default, read like a given value; NULL: none */
    const char *help;     /* what it does, without a full stop */
    size_t offset;        /* in the struct of the command's options */
} keel_option;

/* ---- commands -------------------------------------------------------------------------------- */

typedef struct keel_command {
    const char *name;    /* "fit" */
    const char *args;    /* "MODEL.keras" in the usage line; "" */
    int least, most;     /* how many arguments besides options */
    const char *summary; /* one line */
    const char *help;    /* more, a paragraph or some */
    const char *example; /* lines to type, and what they do */
    const keel_option *options;
    size_t size; /* of the struct that `run` gets */
    int (*run)(const void *options, int n_arg, char **arg);
} keel_command;

extern const keel_command *const keel_commands[]; /* sorted by name; ends with NULL */

/* Exit codes; documented by EXIT_TEXT in help.c. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNSUPPORTED = 3, EXIT_STOPPED = 130 };

const keel_command *keel_command_find(const char *name); /* NULL: none */

/* Read argv (what follows the command's name) into `options` (c->size bytes, defaults included) and
 * the arguments into arg[c->most]. Answers -1 to go on, or the exit code: help was printed, or what
 * is wrong was. */
int keel_command_parse(const keel_command *c, int argc, char **argv, void *options, int *n_arg,
                       char **arg);

/* The name of `names` (sorted or not, ends with NULL) that `word` may have meant; NULL: none. */
const char *keel_nearest(const char *word, const char *const *names);

/* ---- help ------------------------------------------------------------------------------------ */

void keel_help_all(FILE *f);                           /* every command */
void keel_help_command(FILE *f, const keel_command *); /* one */

/* ---- errors ---------------------------------------------------------------------------------- */

/* "keel fit: what, where, what to do" on stderr, one line. Returns `code`. */
int keel_complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a failed call of the library, with its own text. Returns the exit code that fits. */
int keel_complain_status(keel_status status);
int keel_complain_within(keel_status status, const char *what); /* "what: text of the error" */

/* ---- numbers for people ---------------------------------------------------------------------- */

enum { KEEL_NUMBER_MAX = 40 };

/* Text of a number in a buffer of KEEL_NUMBER_MAX; they return the buffer. */
const char *keel_grouped(char *out, int64_t n);           /* 1,031 */
const char *keel_bytes_text(char *out, int64_t bytes);    /* 17.3 MiB */
const char *keel_seconds_text(char *out, double seconds); /* 1:05 min, 12.3 s, 450 ms */

/* "100,100,3" into a shape of `least` to `most` dims, each 1 or more.
 * Returns true where the text is that and nothing else. */
bool keel_shape_parse(keel_shape *out, const char *text, int least, int most);

#endif
