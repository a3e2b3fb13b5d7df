/* "scheme(x=uint8(3,32,32):chw,y=int64,rows=100):REST", as SRC of the command line: a list of items
 * in parentheses, and what follows. The list may be left out: "scheme:REST". */
#ifndef KEEL_DATA_LAYOUT_H
#define KEEL_DATA_LAYOUT_H
#include "base/error.h"
#include "keel/data_field.h"
#include <stdbool.h>

enum { KEEL_LAYOUT_TEXT = 64 };

typedef struct keel_layout_item {
    char name[KEEL_LAYOUT_TEXT];  /* before the '=' */
    char value[KEEL_LAYOUT_TEXT]; /* behind it, without what follows; "": a name alone */
    char order[KEEL_LAYOUT_TEXT]; /* behind a ':'; "": none */
    keel_shape numbers;           /* in parentheses behind the value; rank -1: none; each >= 1 */
} keel_layout_item;

typedef struct keel_layout {
    keel_layout_item item[KEEL_FIELDS_MAX];
    int n;
    const char *rest; /* in the spec, behind the colon; NULL: there is no colon */
} keel_layout;

/* True if `spec` begins with the scheme and "(" or ":". */
bool keel_layout_claims(const char *spec, const char *scheme);

/* KEEL_EARG: the list is not one; the text shows the place. */
keel_status keel_layout_read(keel_layout *out, const char *spec, const char *scheme);

/* The value of an item as a number. KEEL_EARG: it is none, or below `least`. */
keel_status keel_layout_number(int64_t *out, const keel_layout_item *item, int64_t least,
                               const char *scheme);

#endif
