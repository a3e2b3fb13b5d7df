/* Shared by the files of field tables: field.c reads JSON, field_json.c writes it, field_set.c
 * reads the command line, object.c reads and writes objects inside them. */
#ifndef KEEL_BASE_FIELD_IMPL_H
#define KEEL_BASE_FIELD_IMPL_H
#include "base/field.h"

enum { KEEL_NESTING_MAX = 16 }; /* objects in objects: bounds the stack that a file can use */

/* As keel_fields_read and keel_object_read, at a nesting of `depth` objects. */
keel_status keel_fields_read_at(const keel_type *type, const json_t *config, void *args, int depth);
keel_status keel_object_read_at(keel_object *o, const json_t *json,
                                const keel_type *(*find)(const char *name), const char *what,
                                int depth);

/* Read `value` into the member of `args` that the field describes; on failure it is unchanged. */
keel_status keel_field_read_at(const keel_type *type, const keel_field *f, const json_t *value,
                               void *args, int depth);

/* The field of this name; NULL: none, with an error text that suggests the nearest name. */
const keel_field *keel_field_find(const keel_type *type, const char *key);

/* NULL: the type has no arguments, and its fields no values. */
static inline void *keel_field_place(const keel_field *f, void *args)
{
    return args ? (char *)args + f->offset : NULL;
}
static inline const void *keel_field_place_const(const keel_field *f, const void *args)
{
    return args ? (const char *)args + f->offset : NULL;
}

keel_status keel_texts_copy(keel_texts *out, const keel_texts *t);
keel_status keel_reals_copy(keel_reals *out, const keel_reals *r);

bool keel_field_null_allowed(const keel_field *f);

#endif
