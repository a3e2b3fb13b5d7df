/* The CSV reader on a text in memory. */
#ifndef KEEL_DATA_SOURCES_CSV_H
#define KEEL_DATA_SOURCES_CSV_H
#include "data/source.h"

/* Reads all of the text, which it overwrites; text[n_bytes] must be there and writable. */
keel_status keel_csv_decode(keel_dataset **out, char *text, size_t n_bytes, const char *label,
                            const keel_dataset_options *o, const char *path);

#endif
