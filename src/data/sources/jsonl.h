/* The reader of JSON lines: which key goes where, and the reader for a text in memory. */
#ifndef KEEL_DATA_SOURCES_JSONL_H
#define KEEL_DATA_SOURCES_JSONL_H
#include "data/choice.h"
#include "data/file_list.h"
#include "data/table.h"
#include "io/text_file.h"
#include <jansson.h>

typedef struct keel_jsonl_part { /* a key that is read */
    const char *key;             /* a path: "image.pixels" */
    int32_t field, at;
    int32_t words;    /* its vocabulary; -1: none */
    bool decided;     /* the cells and the shape of its field are known, from this line: */
    bool list, text;  /* it has a list, or texts */
    keel_shape shape; /* of a list */
    const char *path;
    int64_t line;
} keel_jsonl_part;

typedef struct keel_jsonl_reader {
    const keel_dataset_options *o;
    keel_table table;
    keel_choice *inputs, *targets, *weights;
    char *default_keys; /* storage of keys that were not named */
    int n_field;
    keel_table_field field[KEEL_FIELDS_MAX]; /* as they are added to the table */
    keel_jsonl_part *part;                   /* [n_part] */
    int64_t n_part, part_room;
    const char *path; /* of the line that is read */
    int64_t line;
    size_t n_bytes; /* of the line */
} keel_jsonl_reader;

/* The value at a path of keys; NULL: a key is not there, or the value is null. */
const json_t *keel_jsonl_find(const json_t *object, const char *key);

/* Choose the keys of each field by the options and the first object. */
keel_status keel_jsonl_choose(keel_jsonl_reader *r, const char *label, const json_t *first);

/* Note what an object shows of keys that are undecided yet; *all: every key is decided. */
keel_status keel_jsonl_decide(keel_jsonl_reader *r, const json_t *object, bool *all);

/* Add the fields to the table. A key without any value counts as one number. */
keel_status keel_jsonl_add_fields(keel_jsonl_reader *r);

keel_status keel_jsonl_decode(keel_dataset **out, const char *text, size_t n_bytes,
                              const char *label, const keel_dataset_options *o, const char *what);

#endif
