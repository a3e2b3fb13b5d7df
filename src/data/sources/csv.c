/* CSV: columns become the fields of a row. Values may be quoted, lines may end in CR LF, empty
 * lines are skipped. Several files of one header, a folder or a pattern, are one table. A long file
 * is read by several threads from where its columns are known. */
#include "data/sources/csv.h"
#include "base/memory.h"
#include "base/plural.h"
#include "base/text.h"
#include "data/features.h"
#include "data/file_list.h"
#include "data/labels.h"
#include "data/pool.h"
#include "io/text_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- headers ----------------------------------------------------------------------------------
 */

/* Copy the names of the columns: the text that they are in is freed before the next file. */
static keel_status copy_names(keel_csv_reader *r)
{
    enum { DIGITS = 8 };
    const keel_csv *c = &r->cut;
    const bool numbered = r->o->no_header;
    size_t n = 0;
    for (int64_t i = 0; i < c->n_values; i++) n += numbered ? DIGITS : strlen(c->value[i]) + 1;
    r->name = keel_calloc((size_t)c->n_values, sizeof *r->name);
    r->names = keel_calloc(n, 1);
    if (!r->name || !r->names) return KEEL_ENOMEM;
    char *to = r->names;
    for (int64_t i = 0; i < c->n_values; i++) {
        r->name[i] = to;
        if (numbered)
            to += snprintf(to, DIGITS, "%d", (int)i) + 1;
        else
            to = stpcpy(to, c->value[i]) + 1;
    }
    r->n_columns = c->n_values;
    return KEEL_OK;
}

static bool all_numbers(const keel_csv_reader *r)
{
    double v;
    for (int64_t i = 0; i < r->n_columns; i++)
        if (!keel_read_number(r->name[i], &v)) return false;
    return true;
}

/* The header of a further file must be that of the first. */
static keel_status compare_names(const keel_csv_reader *r)
{
    const keel_csv *c = &r->cut;
    if (c->n_values != r->n_columns)
        return keel_fail(KEEL_EFORMAT, "%s: %lld column%s, but %s has %lld", c->path,
                         (long long)c->n_values, keel_s(c->n_values), r->first,
                         (long long)r->n_columns);
    for (int64_t i = 0; !r->o->no_header && i < r->n_columns; i++)
        if (strcmp(c->value[i], r->name[i]))
            return keel_fail(KEEL_EFORMAT,
                             "%s: its header differs from that of %s: column %lld is '%.40s', "
                             "there '%.40s'",
                             c->path, r->first, (long long)i, c->value[i], r->name[i]);
    return KEEL_OK;
}

/* Take the first record of a file. Without a header it is the first row, too. */
static keel_status take_header(keel_csv_reader *r, const char *label)
{
    keel_csv *c = &r->cut;
    if (r->name) return compare_names(r);
    r->first = c->path;
    KEEL_TRY(copy_names(r));
    c->n_columns = r->n_columns;
    if (!r->o->no_header && all_numbers(r))
        return keel_fail(KEEL_EARG,
                         "%s: its first line has only numbers, so it seems to have no "
                         "header; give --no-header and name columns by number, 0 to %lld, or "
                         "add a header",
                         c->path, (long long)r->n_columns - 1);
    return keel_csv_choose(r, label);
}

/* ---- files ------------------------------------------------------------------------------------
 */

static keel_status init(keel_csv_reader *r, const keel_dataset_options *o, const char *name)
{
    *r = (keel_csv_reader){ .o = o, .n_threads = 1, .part_bytes = KEEL_CSV_PART };
    KEEL_TRY(keel_table_init(&r->table, o, name, "column"));
    KEEL_TRY(keel_choices_read(&r->inputs, o->inputs, o->n_input, "inputs"));
    KEEL_TRY(keel_choices_read(&r->targets, o->targets, o->n_target, "label"));
    return keel_choices_weights(&r->weights, o);
}

static void reader_free(keel_csv_reader *r)
{
    keel_table_free(&r->table);
    keel_csv_free(&r->cut);
    keel_choices_free(r->inputs, r->o->n_input);
    keel_choices_free(r->targets, r->o->n_target);
    keel_choices_free(r->weights, r->o->n_sample_weight);
    keel_free(r->name);
    keel_free(r->names);
    keel_free(r->use);
}

typedef struct progress { /* in a file */
    bool begun, known;    /* its header was taken; the columns are known */
} progress;

/* Add the records that begin before c->until. Stops where the columns are known. */
static keel_status add_records(keel_csv_reader *r, const char *label, progress *p)
{
    keel_status s;
    while ((s = keel_csv_next(&r->cut)) == KEEL_OK) {
        if (!p->begun) KEEL_TRY(take_header(r, label));
        if (p->begun || r->o->no_header) KEEL_TRY(keel_csv_add_row(r));
        p->begun = true;
        if (!p->known && !r->undecided) break;
    }
    return s < 0 ? s : KEEL_OK;
}

/* Add the records that are at hand; `text` stands at `place` in the file. Parts end where they do
 * for several threads. *known: the columns are, since the record before. */
static keel_status add_piece(keel_csv_reader *r, const char *label, char *text, uint64_t place,
                             progress *p, bool *known)
{
    keel_csv *c = &r->cut;
    for (;;) {
        const uint64_t at = place + (uint64_t)(c->at - text), part = at / r->part_bytes;
        const uint64_t left = r->part_bytes - at % r->part_bytes;
        const bool knew = p->known;
        if (part != r->part) keel_table_end_part(&r->table);
        r->part = part;
        c->until = left < (uint64_t)(c->end - c->at) ? c->at + left : c->end;
        KEEL_TRY(add_records(r, label, p));
        p->known = p->begun && !r->undecided;
        *known = p->known && !knew;
        if (*known) keel_table_end_part(&r->table);
        if (*known || c->at < c->until || c->at == c->end) return KEEL_OK;
    }
}

/* Several threads read the rest of a long file. *place: where the next record begins. */
static keel_status read_parts(keel_csv_reader *r, keel_lines *lines, uint64_t place, bool *done)
{
    const keel_file *file = keel_lines_file(lines);
    *done = file && r->n_threads > 1 && file->n_bytes > place &&
            (file->n_bytes - place) / 2 >= r->part_bytes;
    if (!*done) return KEEL_OK;
    KEEL_TRY(keel_csv_read_parts(r, file, &place, &r->cut.next_line));
    keel_lines_seek(lines, place);
    r->part = place / r->part_bytes;
    return KEEL_OK;
}

static keel_status add_file(keel_csv_reader *r, const char *path, keel_lines *lines,
                            const char *label)
{
    bool last = false;
    progress p = { 0 };
    keel_csv *c = &r->cut;
    keel_csv_begin(c, path, r->o->separator);
    keel_table_end_part(&r->table);
    r->part = 0;
    while (!last) {
        char *text;
        size_t n;
        bool known, done = false;
        KEEL_TRY(keel_lines_more(lines, &text, &n, &last));
        const uint64_t place = keel_lines_place(lines);
        keel_csv_give(c, text, n, last);
        r->end = text + n + KEEL_TEXT_PAD;
        KEEL_TRY(add_piece(r, label, text, place, &p, &known));
        if (known) KEEL_TRY(read_parts(r, lines, place + (uint64_t)(c->at - text), &done));
        if (done) {
            last = false;
            continue;
        }
        if (known) KEEL_TRY(add_piece(r, label, text, place, &p, &known));
        keel_lines_pass(lines, (size_t)(c->at - text));
    }
    if (p.begun) return KEEL_OK;
    return keel_fail(KEEL_EFORMAT, "%s: the file is empty%s", path,
                     r->o->no_header ? "" : "; it needs a header line");
}

keel_status keel_csv_decode(keel_dataset **out, const char *text, size_t n_bytes, const char *label,
                            const keel_dataset_options *o, const char *path)
{
    keel_csv_reader r;
    keel_lines *lines = NULL;
    KEEL_TRY(keel_lines_open_memory(&lines, text, n_bytes, path));
    keel_status s = init(&r, o, path);
    if (s >= 0) s = add_file(&r, path, lines, label);
    if (s >= 0) s = keel_table_dataset(out, &r.table);
    reader_free(&r);
    keel_lines_close(lines);
    return s;
}

static bool claims(const char *spec)
{
    return keel_file_list_claims(spec, keel_csv_endings);
}

/* Rows of tables that nobody reads would be missed by nobody. */
static keel_status refuse_other_tables(const char *spec)
{
    if (!keel_file_list_claims(spec, keel_jsonl_endings)) return KEEL_OK;
    return keel_fail(
        KEEL_EARG,
        "%s: has tables in CSV and in JSON lines, and one dataset is of one kind: name "
        "its files by a pattern, as 'folder/*.csv' or 'folder/*.jsonl'",
        spec);
}

static keel_status read_files(keel_csv_reader *r, const keel_file_list *files, const char *label)
{
    for (int64_t i = 0; i < files->n; i++) {
        keel_lines *lines = NULL;
        KEEL_TRY(keel_lines_open(&lines, files->path[i]));
        const keel_status s = add_file(r, files->path[i], lines, label);
        keel_lines_close(lines);
        if (s < 0) return s;
    }
    return KEEL_OK;
}

keel_status keel_csv_open(keel_dataset **out, const char *path, const char *label,
                          const keel_dataset_options *options, int n_threads, uint64_t part_bytes)
{
    keel_dataset_options o;
    keel_csv_reader r;
    keel_file_list files = { 0 };
    keel_dataset *d = NULL;
    if (!out || !path) return keel_fail(KEEL_EARG, "csv: out and path must not be NULL");
    KEEL_TRY(keel_dataset_options_read(&o, options));
    KEEL_TRY(keel_file_list_find(&files, path, keel_csv_endings));
    keel_status s = init(&r, &o, path);
    r.n_threads = n_threads;
    r.part_bytes = part_bytes;
    if (s >= 0) s = read_files(&r, &files, label);
    if (s >= 0) s = keel_table_dataset(&d, &r.table);
    reader_free(&r);
    keel_file_list_free(&files);
    if (s >= 0) s = keel_dataset_take_subset(&d, &o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

keel_status keel_dataset_from_csv(keel_dataset **out, const char *path, const char *label,
                                  const keel_dataset_options *options)
{
    return keel_csv_open(out, path, label, options, keel_reading_threads(), KEEL_CSV_PART);
}

static keel_status open_csv(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    KEEL_TRY(keel_feature_types_refuse(o, spec));
    KEEL_TRY(refuse_other_tables(spec));
    return keel_dataset_from_csv(out, spec, o->label, o);
}

const keel_source keel_source_csv = {
    .name = "csv",
    .help = "a .csv file with a header line (name the label column; .gz too), or a folder or "
            "pattern of them",
    .claims = claims,
    .open = open_csv,
};
