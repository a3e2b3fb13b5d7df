/* The CSV reader for a text in memory. */
#ifndef KEEL_DATA_SOURCES_CSV_H
#define KEEL_DATA_SOURCES_CSV_H
#include "data/source.h"

/* Read the whole text, which is overwritten; text[n_bytes] must exist and be writable. */
keel_status keel_csv_decode(keel_dataset **out, char *text, size_t n_bytes, const char *label,
                            const keel_dataset_options *o, const char *path);

#endif
