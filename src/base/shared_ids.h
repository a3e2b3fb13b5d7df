/* "shared_object_id" in a configuration of Keras: objects with one number are one object. The
 * numbers are addresses in the memory of the program that wrote them. */
#ifndef KEEL_BASE_SHARED_IDS_H
#define KEEL_BASE_SHARED_IDS_H
#include <jansson.h>
#include <stdbool.h>

/* Numbers such objects anew, in the order in which they come, so that configurations of the same
 * are the same; in place. Objects that occur once lose theirs. false: out of memory. */
bool keel_shared_ids_number(json_t *config);

#endif
