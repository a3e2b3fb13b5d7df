/* tf.data's snapshot: the elements of the first pass are kept in a file, and all later passes and
 * runs give those. It may stand behind stages that draw random numbers, which are then drawn once:
 * that is what it is for. */
#include "data/stages/_kept.h"

typedef struct snapshot_args {
    char *path;
    int compression;
} snapshot_args;

enum { NONE, GZIP };

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const snapshot_args *a = s->args;
    return keel_kept_infer(s, spec, a->path, a->compression == GZIP);
}

#define T snapshot_args
static const keel_field fields[] = {
    KEEL_STRING(T, path, NULL, "the file; one that is there is read, if this pipeline made it"),
    KEEL_CHOICE(T, compression, "\"NONE\"", "NONE|GZIP", "GZIP: each element is deflated"),
    { .key = NULL },
};

const keel_stage keel_stage_snapshot = {
    .type = { .name = "snapshot",
              .module = "keel.data",
              .help = "Keeps the elements of the first pass in a file, for all later runs.",
              .args_size = sizeof(snapshot_args),
              .fields = fields },
    .n_parent = 1,
    .one_pass = true,
    .infer = infer,
    .read = keel_kept_read,
    .length = keel_kept_length,
    .length_from = keel_kept_length_from,
    .iter_size = sizeof(keel_kept_iter),
    .begin = keel_kept_begin,
    .next = keel_kept_next,
    .end = keel_kept_end,
    .pass = keel_kept_pass,
    .note = keel_kept_note,
    .release = keel_kept_release,
};
