/* tf.data's flat_map: all elements of the dataset of each element, one behind the other, as an
 * interleave with one place gives them. */
#include "data/stages/_interleave.h"

static keel_status one_place(void *args)
{
    keel_interleave_args *a = args;
    a->cycle_length = a->block_length = 1;
    return KEEL_OK;
}

static const keel_field no_fields[] = { { .key = NULL } };

const keel_stage keel_stage_flat_map = {
    .type = { .name = "flat_map",
              .module = "keel.data",
              .help = "The elements of one file after another, which the rows name; in C, of the "
                      "datasets that a function makes.",
              .args_size = sizeof(keel_interleave_args),
              .fields = no_fields,
              .ready = one_place,
              .release = keel_interleave_release_args },
    .n_parent = 1,
    KEEL_INTERLEAVE_STAGE,
};

keel_status keel_dataset_flat_map(keel_dataset **out, keel_dataset *d, const keel_flat_map *map)
{
    return keel_interleave_apply(out, &keel_stage_flat_map, d, map, false);
}
