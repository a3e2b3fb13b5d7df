/* tf.data's interleave: cycle_length datasets are open; each gives block_length elements in its
 * turn, and the place of one that has ended goes to the next. The datasets are those given, or
 * those that a callback makes, or files, of which each element of one dataset is the name. flat_map
 * is an interleave with one place.
 *
 * The order is that of tf.data with num_parallel_calls=None: elements are taken by one thread, and
 * the rows of the open datasets are read ahead by all. */
#include "data/stages/_interleave.h"

#define T keel_interleave_args
static const keel_field fields[] = {
    KEEL_INT(T, block_length, "1", 1, 1e12, "elements of each dataset in turn"),
    KEEL_INT(T, cycle_length, "null", 1, KEEL_INTERLEAVE_MOST,
             "datasets that are open at once; null: all that are given, or 4 files"),
    { .key = NULL },
};

const keel_stage keel_stage_interleave = {
    .type = { .name = "interleave",
              .module = "keel.data",
              .help = "Elements of several datasets in turn: those given, or the files that the "
                      "rows of one name.",
              .args_size = sizeof(keel_interleave_args),
              .fields = fields,
              .release = keel_interleave_release_args },
    .n_parent = -2,
    KEEL_INTERLEAVE_STAGE,
};

keel_status keel_dataset_interleave(keel_dataset **out, keel_dataset *d, const keel_flat_map *map)
{
    return keel_interleave_apply(out, &keel_stage_interleave, d, map, true);
}
