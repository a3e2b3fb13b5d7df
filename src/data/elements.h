/* Elements that are held in memory, as a dataset whose rows are read by number. */
#ifndef KEEL_DATA_ELEMENTS_H
#define KEEL_DATA_ELEMENTS_H
#include "data/collect.h"

/* A dataset of the rows in c, which it takes over: c is empty then, on failure too. The rows'
 * account outlives it. spec: their fields; name: for messages. */
keel_status keel_elements_dataset(keel_dataset **out, keel_collect *c, const keel_data_spec *spec,
                                  const char *name);

/* Copy a row where it is asked for, in the types that are wanted, padded with 0. */
keel_status keel_elements_write(const keel_element *e, const keel_data_spec *spec,
                                const keel_row *row);

#endif
