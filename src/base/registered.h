/* Classes that a program registers (keel/custom.h), as types with a field table like Keel's own. A
 * list of them only grows: models and their args point to its types. */
#ifndef KEEL_BASE_REGISTERED_H
#define KEEL_BASE_REGISTERED_H
#include "base/field.h"
#include "keel/custom.h"

typedef struct keel_registered {
    const char *name;      /* "my>Gain"; type.name is "Gain" */
    keel_custom_type type; /* as the program gave it */
    const void *of;        /* keel_custom_layer, _loss or _metric */
} keel_registered;

/* What the args of a registered class begin with. The struct of the program lies behind it, at
 * KEEL_REGISTERED_CONFIG. */
typedef struct keel_registered_args {
    const keel_type *type;
    int reduction; /* of a loss */
} keel_registered_args;

enum { KEEL_REGISTERED_CONFIG = 32 };
_Static_assert(sizeof(keel_registered_args) <= KEEL_REGISTERED_CONFIG, "the config lies behind");

static inline const keel_registered *keel_registered_of(const void *args)
{
    return ((const keel_registered_args *)args)->type->registered;
}

static inline const void *keel_registered_config(const void *args)
{
    return (const char *)args + KEEL_REGISTERED_CONFIG;
}

typedef struct keel_registry {
    const char *what; /* "layer" */
    struct keel_registry_entry *first;
} keel_registry;

/* What a program registers, as its struct begins. */
typedef struct keel_registration {
    size_t size, wanted;
    const void *of; /* `wanted` bytes, copied */
    const keel_custom_type *type;
    const keel_field *more; /* what Keras's classes of the kind have beside `keys`; NULL: nothing */
    bool ours;              /* Keras has this name itself */
} keel_registration;

/* Makes *out of what a program gives, whose size, name and keys it checks. What *out points to
 * lives as long as the process if it is added to a registry; else keel_registered_free. KEEL_EARG
 * names what is wrong. */
keel_status keel_registered_make(const keel_registry *r, const keel_registration *from,
                                 keel_type *out);
void keel_registered_free(keel_type *type);

/* Adds a type to the list. KEEL_EARG: its name is there already. */
keel_status keel_registry_add(keel_registry *r, const keel_type *type);
const keel_type *keel_registry_find(const keel_registry *r, const char *name); /* NULL: none */

#endif
