/* Cuts a text of separated values (RFC 4180) into records and values, in place and piece by piece.
 */
#ifndef KEEL_IO_CSV_H
#define KEEL_IO_CSV_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEEL_CSV_COLUMNS_MAX = 1 << 20 };

typedef struct keel_csv {
    const char *path; /* borrowed, for messages */
    char separator;
    int64_t line;      /* where the current record begins, from 1 */
    int64_t n_columns; /* of the table; 0: not known yet. An empty line is a record only of a table
                          of one column. */
    char **value;      /* [n_values] of the current record; each ends with a zero byte */
    char **stop;       /* where each ended in the text */
    int64_t n_values, room;
    char *at, *end; /* the text that is still to be cut */
    char *until;    /* a record that begins here or behind it is left; at first the end */
    bool last;      /* no text follows */
    int64_t next_line;
    char *block;      /* 64 bytes of the text, and in them the separators, line ends and quotes */
    uint64_t special; /* that were not passed yet, a bit each */
} keel_csv;

/* Begin a file. The separator 0 stands for the comma or, if the first line has none, the most
 * frequent of semicolon, tab and `|`. Memory of an earlier file is kept. */
void keel_csv_begin(keel_csv *c, const char *path, char separator);

/* Give the next piece of text [n_bytes], which is overwritten. 64 zero bytes must follow it. It
 * begins with what was left of the one before; `last`: no text follows it. */
void keel_csv_give(keel_csv *c, char *text, size_t n_bytes, bool last);

/* Cut the next record. Lines may end in CR LF; empty lines are skipped. KEEL_END: none begins
 * before c->until, or only a part of it is there, which begins at c->at. KEEL_EFORMAT: a quote that
 * is never closed, text behind a closed one, a carriage return in a line, more than
 * KEEL_CSV_COLUMNS_MAX values. */
keel_status keel_csv_next(keel_csv *c);
void keel_csv_free(keel_csv *c);

#endif
