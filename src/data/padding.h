/* The value that fields are padded with, as an argument of a stage has it. */
#ifndef KEEL_DATA_PADDING_H
#define KEEL_DATA_PADDING_H
#include "data/source.h"
#include <jansson.h>

typedef union keel_padding { /* an element of the type of a field */
    char number[16];
    keel_string text;
} keel_padding;

/* Read a number or a text; NULL or null: 0 or the empty text. A text points into `value`.
 * KEEL_EARG: it is not a value of the field's type. */
keel_status keel_padding_read(keel_padding *out, const json_t *value, const keel_data_field *field);

#endif
