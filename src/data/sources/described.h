/* The source of keel_dataset_from_description. Its state is a text: what the stages of the stream
 * that was described say of themselves (keel_stage_describe). */
#ifndef KEEL_DATA_SOURCES_DESCRIBED_H
#define KEEL_DATA_SOURCES_DESCRIBED_H
#include "data/source.h"

extern const keel_source keel_source_described;

#endif
