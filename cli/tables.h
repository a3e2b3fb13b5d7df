/* Options of data that is a table: missing values and vocabularies. */
#ifndef KEEL_CLI_TABLES_H
#define KEEL_CLI_TABLES_H
#include "setup.h"

typedef struct keel_table_options {
    keel_vocabulary *vocabulary;
    int n;
    char **text; /* [n]: memory of each one's column and words */
} keel_table_options;

/* Parse --missing and --vocabulary into d; the lists live until keel_tables_free. Returns -1, or an
 * exit code after an error was printed. */
int keel_tables_read(keel_table_options *out, keel_dataset_options *d, const keel_data_options *o,
                     keel_setup_use use);
void keel_tables_free(keel_table_options *t);

/* The length of `text` up to `mark`, which in a name in quotes is a letter: "home town"=A,B */
size_t keel_tables_until(const char *text, char mark);

/* True if SRC names a file, or a pattern of files, that is a table of named columns or keys. */
bool keel_tables_is(const char *spec);

#endif
