/* Names of files as rows, files:PATTERN, for flat_map and interleave: tf.data's list_files, sorted
 * by bytes. A shuffle of them is a stage of its own. */
#include "base/memory.h"
#include "data/file_list.h"
#include "data/source.h"
#include <string.h>

typedef struct names {
    keel_data_field field; /* its strings are the dataset's */
    keel_file_list files;
} names;

static const char prefix[] = "files:";

static bool claims(const char *spec)
{
    return !strncmp(spec, prefix, sizeof prefix - 1);
}

static keel_status read(const void *state, int64_t i, const keel_row *row, keel_scratch *s)
{
    const names *n = state;
    (void)s;
    if (!row->at[0]) return KEEL_OK;
    const keel_string text = { n->files.path[i], (int64_t)strlen(n->files.path[i]) };
    return keel_field_write(row->at[0], row->want[0], &text, &n->field, 1);
}

static void close(void *state)
{
    names *n = state;
    keel_file_list_free(&n->files);
    keel_free(n);
}

extern const keel_source keel_source_list_files;

/* The options are those of the files, and none is about their names. */
static keel_status open_spec(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    static const char *const any[] = { "", NULL };
    keel_data_spec fields = {
        .n_field = 1,
        .field = { { .path = "x", .dtype = KEEL_STRING, .role = KEEL_ROLE_INPUT } },
        .yields = -1,
    };
    (void)o;
    names *n = keel_calloc(1, sizeof *n);
    if (!n) return KEEL_ENOMEM;
    const keel_status s = keel_file_list_find(&n->files, spec + sizeof prefix - 1, any);
    if (s < 0) {
        keel_free(n);
        return s;
    }
    fields.rows = n->files.n;
    KEEL_TRY(keel_dataset_create(out, &keel_source_list_files, n, &fields, spec));
    n->field = (*out)->origin->spec.field[0];
    return KEEL_OK;
}

const keel_source keel_source_list_files = {
    .name = "list_files",
    .help = "files:PATTERN, the names of files, for the stages interleave and flat_map",
    .in_memory = true,
    .claims = claims,
    .open = open_spec,
    .read = read,
    .close = close,
};
