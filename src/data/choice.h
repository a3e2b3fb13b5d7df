/* Which part of a file a field is: "name", "name=array" or "name=column,column", as in
 * keel_dataset_options.inputs and targets. */
#ifndef KEEL_DATA_CHOICE_H
#define KEEL_DATA_CHOICE_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct keel_choice {
    char *name;  /* of the field */
    char **part; /* [n_part] what it is made of; a name alone is its own part */
    int n_part;
    bool plain; /* a name alone */
} keel_choice;

/* All of a list; freed with keel_choices_free, also NULL. KEEL_EARG: an entry without a name or
 * with an empty part; `what` is the list's name. */
keel_status keel_choices_read(keel_choice **out, const char *const *list, int n, const char *what);
void keel_choices_free(keel_choice *c, int n);

#endif
