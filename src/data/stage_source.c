/* A dataset that a stage makes is a source, for whoever asks for rows without a run: then they are
 * those of the first pass. */
#include "base/memory.h"
#include "data/flow.h"
#include "data/stage_impl.h"

/* The dataset to read an element from, of a batch its first row; NULL: the stage reads it. */
static const keel_dataset *first_row(const keel_applied *s, keel_position *at)
{
    const keel_dataset *d = s->stage->where ? keel_stage_down(s, at) : NULL;
    if (!s->spec->batched) return d;
    if (d) s = keel_stage_of_batch(d, at);
    *at = s->stage->batch_row(s, *at, 0);
    return s->parent[0];
}

static keel_status read_first_pass(const void *state, int64_t index, const keel_row *row,
                                   keel_scratch *scratch)
{
    const keel_applied *s = state;
    keel_position at = { .index = index };
    const keel_dataset *d = first_row(s, &at);
    return d ? keel_dataset_read(d, at, row, scratch) : s->stage->read(s, at, row, scratch);
}

static int64_t length_first_pass(const void *state, int i, int64_t index)
{
    const keel_applied *s = state;
    keel_position at = { .index = index };
    if (s->stage->length) return s->stage->length(s, i, at);
    const keel_dataset *d = first_row(s, &at);
    return keel_dataset_length(d ? d : s->parent[0], i, at);
}

static const char *row_name(const void *state, int64_t index)
{
    const keel_applied *s = state;
    keel_position at = { .index = index };
    const keel_dataset *d = first_row(s, &at);
    d = keel_dataset_resolve(d ? d : s->parent[0], &at);
    const keel_source *source = d->origin->source;
    return source->row_name ? source->row_name(d->origin->state, at.index) : NULL;
}

void keel_stage_close(void *state)
{
    keel_applied *s = state;
    if (s->made && s->stage->release) s->stage->release(s);
    if (s->args) keel_fields_free(&s->stage->type, s->args);
    keel_free(s->args);
    for (int i = 0; s->parent && i < s->n_parent; i++) keel_dataset_destroy(s->parent[i]);
    keel_free(s->parent);
    keel_free(s);
}

static const keel_source rows_source = {
    .name = "stage",
    .read = read_first_pass,
    .row_name = row_name,
    .close = keel_stage_close,
};

static const keel_source ragged_source = {
    .name = "stage",
    .read = read_first_pass,
    .length = length_first_pass,
    .row_name = row_name,
    .close = keel_stage_close,
};

/* Rows by index, of fixed shape, that are only copied. */
static const keel_source memory_source = {
    .name = "stage",
    .in_memory = true,
    .read = read_first_pass,
    .row_name = row_name,
    .close = keel_stage_close,
};

static const keel_source stream_source = {
    .name = "stage",
    .begin = keel_flow_begin,
    .next = keel_flow_next,
    .next_shaped = keel_flow_next_shaped,
    .close = keel_stage_close,
};

static bool only_copies(const keel_applied *s)
{
    bool all = s->stage->where != NULL;
    for (int i = 0; i < s->n_parent; i++) all &= s->parent[i]->origin->source->in_memory;
    return all;
}

/* Rows of a batched dataset are found through the stage that makes the batches, so the dataset
 * itself has no row to read. */
const keel_source *keel_stage_source(const keel_applied *s, const keel_data_spec *spec)
{
    if (!s->by_index) return &stream_source;
    if (keel_spec_is_open(spec)) return &ragged_source;
    return only_copies(s) ? &memory_source : &rows_source;
}
