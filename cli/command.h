/* A command of `keel`: a const struct keel_command_STEM at the end of cli/STEM.c; the build
 * collects them. Its option table is the only description of its options: the parser, --help, the
 * man page and docs/commands.md read it.
 *
 * Commands include only the public headers, so a C program can do all that they do. */
#ifndef KEEL_CLI_COMMAND_H
#define KEEL_CLI_COMMAND_H
#include <keel/keel.h>
#include <stdio.h>

/* ---- options --------------------------------------------------------------------------------- */

typedef enum keel_option_kind {
    KEEL_OPTION_FLAG,     /* bool */
    KEEL_OPTION_COUNT,    /* int64_t, 0 or more */
    KEEL_OPTION_POSITIVE, /* int64_t, 1 or more; 0 if not given and without default */
    KEEL_OPTION_REAL,     /* double; NAN if not given and without default */
    KEEL_OPTION_TEXT,     /* const char *; NULL if not given and without default */
    KEEL_OPTION_ONCE,     /* as TEXT; another value is refused, since both may be meant */
    KEEL_OPTION_CHOICE    /* int: the index of the word in `value`, "keep|drop|carry" */
} keel_option_kind;

typedef struct keel_option {
    const char *name; /* "batch-size" is --batch-size; NULL ends a table */
    char letter;      /* 'o' for -o; 0: none */
    bool required;    /* of kind TEXT, ONCE or POSITIVE */
    keel_option_kind kind;
    const char *value;    /* as shown in help: "N", "SRC"; the words of a choice */
    const char *fallback; /* the default, parsed as a value; NULL: none */
    const char *help;     /* the effect, without a full stop */
    size_t offset;        /* of the member in the struct of the command's options */
} keel_option;

/* ---- commands -------------------------------------------------------------------------------- */

/* What a command is in several processes that a launcher started. */
typedef enum keel_command_processes {
    KEEL_EACH,     /* each does the same by itself */
    KEEL_TOGETHER, /* they share the work; see processes.h */
    KEEL_ALONE     /* refused */
} keel_command_processes;

typedef struct keel_command {
    const char *name;    /* "fit" */
    const char *args;    /* "MODEL.keras" in the usage line; "" */
    int least, most;     /* numbers of arguments besides options */
    const char *summary; /* one line */
    const char *help;    /* one or more paragraphs */
    const char *example; /* command lines */
    const keel_option *options;
    size_t size; /* of the options struct that `run` gets */
    keel_command_processes processes;
    int (*run)(const void *options, int n_arg, char **arg);
} keel_command;

extern const keel_command *const keel_commands[]; /* sorted by name; ends with NULL */

/* Exit codes; documented by EXIT_TEXT in help.c. */
enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_UNSUPPORTED = 3,
    EXIT_STOPPED = 130,
    EXIT_TERMINATED = 143
};

const keel_command *keel_command_find(const char *name); /* NULL: none */

/* Parse argv, which begins after the command's name, into `options` (c->size bytes, with defaults)
 * and arg[c->most]. Returns -1 to continue, or an exit code after help or an error was printed. */
int keel_command_parse(const keel_command *c, int argc, char **argv, void *options, int *n_arg,
                       char **arg);

/* The name most similar to `word` in `names` (in any order, ends with NULL); NULL: none. */
const char *keel_nearest(const char *word, const char *const *names);

/* ---- help ------------------------------------------------------------------------------------ */

void keel_help_all(FILE *f);                           /* every command */
void keel_help_command(FILE *f, const keel_command *); /* one */

/* ---- errors ---------------------------------------------------------------------------------- */

/* "keel fit: what, where, what to do" on stderr, one line. Returns `code`. */
int keel_complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a failed call of the library, with its error text. Returns the exit code for the
 * status. */
int keel_complain_status(keel_status status);
int keel_complain_within(keel_status status, const char *what); /* "what: text of the error" */
int keel_exit_code(keel_status status);

/* Of several processes: from now on lines on stderr begin with "who: ", and those of failures (code
 * not 0) are kept until keel_complaints_print. */
void keel_complain_as(const char *who);
bool keel_complaints_kept(void);
void keel_complaints_print(void);
void keel_complaints_drop(void);

/* A number for the text of the first failure, equal in processes with the same failure; 0: none.
 * keel_complain_about sets it by a text that is only a part of what is printed. */
uint64_t keel_complaints_kind(void);
void keel_complain_about(const char *text);

/* ---- numbers that users write ---------------------------------------------------------------- */

/* The decimal number that `text` begins with, and where it ends. *end is `text` where there is
 * none: also of inf, nan, 0x10 and behind a space. */
double keel_decimal(const char *text, const char **end);

/* ---- readable numbers ------------------------------------------------------------------------ */

enum { KEEL_NUMBER_MAX = 40 };

/* Each writes a number to a buffer of KEEL_NUMBER_MAX bytes and returns it. */
const char *keel_grouped(char *out, int64_t n);           /* 1,031 */
const char *keel_size_text(char *out, int64_t bytes);     /* 17.3 MiB */
const char *keel_seconds_text(char *out, double seconds); /* 1:05 min, 12.3 s, 450 ms */

/* Parse "512M", "2GiB" or "1000000" as bytes; K, M, G and T are powers of 1024. False: the text has
 * another form, or the number is below 1. */
bool keel_size_parse(int64_t *out, const char *text);

/* Parse "100,100,3" as a shape of `least` to `most` dims, each 1 or more. False: the text has
 * another form. */
bool keel_shape_parse(keel_shape *out, const char *text, int least, int most);

#endif
