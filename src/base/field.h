/* Field tables: the only description of the arguments of a layer, loss, optimizer and so on.
 *
 * Keras JSON, C calls, the command line and the generated reference read the same table; a layer
 * never parses. The struct of everything a user can name begins with a keel_type. */
#ifndef KEEL_BASE_FIELD_H
#define KEEL_BASE_FIELD_H
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEEL_INTS_MAX = 8 };

typedef struct keel_ints { /* a short tuple (strides, target_shape); count -1: null */
    int count;
    int64_t at[KEEL_INTS_MAX];
} keel_ints;

typedef struct keel_texts { /* a list of texts, owned; null is an empty list */
    int count;
    char **at;
} keel_texts;

typedef struct keel_reals { /* a list of numbers, owned */
    int count;
    double *at;
} keel_reals;

#define KEEL_INT_NULL INT64_MIN /* null as the value of an INT */

/* null is accepted only if the default is null or the field is nullable. */
typedef enum keel_field_kind {
    KEEL_FIELD_INT,    /* int64_t; null becomes KEEL_INT_NULL; [n] is read as n, since Keras writes
                          axes so */
    KEEL_FIELD_FLOAT,  /* double; null becomes NAN */
    KEEL_FIELD_BOOL,   /* bool */
    KEEL_FIELD_CHOICE, /* int: index into `choices`, "valid|same"; null becomes -1 */
    KEEL_FIELD_STRING, /* char *, owned by the args; null becomes NULL */
    KEEL_FIELD_INTS,   /* keel_ints; a plain number n is n repeated `count` times; nested pairs
                          ((1,2),(3,4)) are flattened, and written nested if the default is; with a
                          count of 4, (a, b) is ((a,a),(b,b)) */
    KEEL_FIELD_TEXTS,  /* keel_texts */
    KEEL_FIELD_REALS,  /* keel_reals; null has count 0, an empty list is refused; with a `count` of
                          1 or -1, a plain number n is [n]; with -1, [n] is written as n */
    KEEL_FIELD_OBJECT, /* keel_object: another type (initializer, activation, ...) or null */
    KEEL_FIELD_LIST,   /* json_t *, owned by the args: a list of any length that the type itself
                          reads, such as a vocabulary; null becomes NULL. With a `count` of 1,
                          a number or a text may stand there as well */
    KEEL_FIELD_REFUSE, /* not stored: Keras has the key, Keel accepts only its default */
    KEEL_FIELD_IGNORE, /* not stored: Keras writes the key, but it does not affect Keel */
} keel_field_kind;

typedef struct keel_type keel_type;
typedef struct keel_object {
    const keel_type *type; /* NULL: none */
    void *args;            /* args_size bytes, owned */
} keel_object;

typedef struct keel_field {
    const char *key;
    keel_field_kind kind;
    size_t offset;
    const char *dflt; /* JSON text: "1", "[1, 1]", "\"valid\"", "null"; NULL: required */
    const char *help;
    double min, max;     /* for INT, FLOAT and each of INTS; both 0: any */
    int count;           /* INTS: length of the tuple; 0: any; -1: any, written as n if it is [n];
                            -2: any, written as pairs; -3: any, -1 is written as null */
    bool nullable;       /* null is accepted although it is not the default */
    bool newer;          /* Keras 3.5 refuses the key: it is not written if it has its default, so
                            that models which need no newer Keras are read by that one, too */
    const char *choices; /* CHOICE */
    const keel_type *(*find)(const char *name); /* OBJECT */
} keel_field;

/* First member of the const struct of everything a user can name. */
struct keel_type {
    const char *name;         /* Keras's class name: "Conv2D" */
    const char *alias;        /* Keras's other names: "mse|MSE"; NULL: only the snake case */
    const char *module;       /* "keras.layers" */
    const char *help;         /* one sentence */
    size_t args_size;         /* 0: no arguments */
    const keel_field *fields; /* ends with key NULL; NULL: none */
    /* Both may be NULL. `ready` is called after all fields were read: it checks what the table
     * cannot express, and makes what the args own beside their fields. `release` frees that, also
     * after a failure of `ready`. */
    keel_status (*ready)(void *args);
    void (*release)(void *args);
    /* Of a class that a program registered (base/registered.h); NULL: Keras's own. The args of such
     * a class begin with a pointer to this type, which reading sets. */
    const struct keel_registered *registered;
};

/* offsetof, of a member that is as large as `type`: no compiler lets another one pass. */
#define KEEL_OFFSET_OF(args, member, type)                                                         \
    (offsetof(args, member) +                                                                      \
     0 * sizeof(char[sizeof(((args *)0)->member) == sizeof(type) ? 1 : -1]))

#define KEEL_INT(args, member, dflt_, min_, max_, help_)                                           \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_INT, .offset = KEEL_OFFSET_OF(args, member, int64_t),   \
        .dflt = dflt_, .min = min_, .max = max_, .help = help_                                     \
    }
#define KEEL_FLOAT(args, member, dflt_, min_, max_, help_)                                         \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_FLOAT, .offset = KEEL_OFFSET_OF(args, member, double),  \
        .dflt = dflt_, .min = min_, .max = max_, .help = help_                                     \
    }
#define KEEL_BOOL(args, member, dflt_, help_)                                                      \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_BOOL, .offset = KEEL_OFFSET_OF(args, member, bool),     \
        .dflt = dflt_, .help = help_                                                               \
    }
#define KEEL_CHOICE(args, member, dflt_, choices_, help_)                                          \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_CHOICE, .offset = offsetof(args, member),               \
        .dflt = dflt_, .choices = choices_, .help = help_                                          \
    }
#define KEEL_CHOICE_OR_NULL(args, member, dflt_, choices_, help_)                                  \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_CHOICE, .offset = offsetof(args, member),               \
        .dflt = dflt_, .nullable = true, .choices = choices_, .help = help_                        \
    }
#define KEEL_STRING(args, member, dflt_, help_)                                                    \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_STRING, .offset = offsetof(args, member),               \
        .dflt = dflt_, .help = help_                                                               \
    }
#define KEEL_INTS(args, member, count_, dflt_, min_, max_, help_)                                  \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_INTS, .offset = offsetof(args, member), .dflt = dflt_,  \
        .count = count_, .min = min_, .max = max_, .help = help_                                   \
    }
#define KEEL_TEXTS(args, member, dflt_, help_)                                                     \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_TEXTS, .offset = offsetof(args, member), .dflt = dflt_, \
        .help = help_                                                                              \
    }
#define KEEL_REALS(args, member, help_)                                                            \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_REALS, .offset = offsetof(args, member), .help = help_  \
    }
#define KEEL_OBJECT(args, member, dflt_, find_, help_)                                             \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_OBJECT, .offset = offsetof(args, member),               \
        .dflt = dflt_, .find = find_, .help = help_                                                \
    }
#define KEEL_LIST(args, member, dflt_, help_)                                                      \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_LIST, .offset = offsetof(args, member), .dflt = dflt_,  \
        .help = help_                                                                              \
    }
/* A number, a text or a list. */
#define KEEL_EITHER(args, member, dflt_, help_)                                                    \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_LIST, .offset = offsetof(args, member), .dflt = dflt_,  \
        .count = 1, .help = help_                                                                  \
    }
#define KEEL_EITHER_OR_NULL(args, member, dflt_, help_)                                            \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_LIST, .offset = offsetof(args, member), .dflt = dflt_,  \
        .count = 1, .nullable = true, .help = help_                                                \
    }
enum { KEEL_A_DICTIONARY = 2 }; /* keel_field.count of a KEEL_FIELD_LIST that is one instead */
#define KEEL_REFUSE(key_, dflt_, help_)                                                            \
    {                                                                                              \
        .key = key_, .kind = KEEL_FIELD_REFUSE, .dflt = dflt_, .help = help_                       \
    }
#define KEEL_IGNORE(key_, help_)                                                                   \
    {                                                                                              \
        .key = key_, .kind = KEEL_FIELD_IGNORE, .dflt = "null", .help = help_                      \
    }

/* Fill `args` (type->args_size zeroed bytes) from a JSON object; absent keys get their defaults.
 * KEEL_EARG: an unknown key, a wrong type or a value out of range; KEEL_EUNSUP: a KEEL_REFUSE field
 * that does not have its default. The text names type and key. `config` NULL: all defaults. */
keel_status keel_fields_read(const keel_type *type, const json_t *config, void *args);
void keel_fields_free(const keel_type *type, void *args); /* what the args own, not args itself */

/* The JSON object that Keras writes for `args`, with every stored key; NULL: out of memory. */
json_t *keel_fields_json(const keel_type *type, const void *args);

/* Parse the text that a command line has for `key`, such as "3", "0.1", "true", "null", "relu",
 * "3,3", "((1,2),(3,4))", by the kind of the field; check it, and add it to `config`. On failure
 * `config` is unchanged. */
keel_status keel_fields_set(const keel_type *type, json_t *config, const char *key,
                            const char *text);

/* Read an object: "name", {"class_name":..., "config":{...}} or null. Error texts begin with
 * `what`. */
keel_status keel_object_read(keel_object *o, const json_t *json,
                             const keel_type *(*find)(const char *name), const char *what);
json_t *
keel_object_json(const keel_object *o); /* {"module","class_name","config","registered_name"} */
keel_status keel_object_default(keel_object *o, const keel_type *type);
keel_status keel_object_copy(keel_object *out, const keel_object *o);
void keel_object_free(keel_object *o);

/* A kind of objects that can be written as a call in Python. */
typedef struct keel_call_kind {
    const char *what; /* "schedule" */
    const keel_type *(*find)(const char *name);
    const keel_type *(*at)(int i); /* the i-th; NULL behind the last */
} keel_call_kind;

/* Read "CosineDecay(0.1, 1000, alpha=0.01)", or a name without arguments. Arguments without a name
 * are those of the table in its order, which is Keras's. On failure *out is unchanged.
 *
 * KEEL_EARG: no such name or argument, or one that does not fit; the text says which. */
keel_status keel_object_parse(keel_object *out, const char *text, const keel_call_kind *kind);

/* True if `name` is the class name of this type, its snake case, or one of its other names. */
bool keel_type_is(const keel_type *type, const char *name);
/* True if `name` is in the list "a|b|c". NULL is an empty list. */
bool keel_name_listed(const char *list, const char *name);
/* True if `module`, the "module" of a Keras object, is Keras's own. NULL (absent): true. */
bool keel_module_is_keras(const json_t *module);
/* The name of a Keras object's class or function, if it is not one of Keras's: "my>Gain", or "Gain"
 * without a package. NULL: it is Keras's, or a text. Borrowed. */
const char *keel_custom_name(const json_t *object);

#endif
