/* Inside the datasets of stages. */
#ifndef KEEL_DATA_STAGE_IMPL_H
#define KEEL_DATA_STAGE_IMPL_H
#include "data/stage.h"

/* stage_rows.c: the parent's element that an element of a stage with `where` is; a place followed
 * through all such stages. */
const keel_dataset *keel_stage_down(const keel_applied *s, keel_position *at);
const keel_dataset *keel_dataset_resolve(const keel_dataset *d, keel_position *at);

/* stage_source.c: what a stage is as a source, for whoever asks for rows without a run; closing it.
 */
const keel_source *keel_stage_source(const keel_applied *s, const keel_data_spec *spec);
void keel_stage_close(void *applied);

#endif
