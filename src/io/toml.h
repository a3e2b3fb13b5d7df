/* Reads TOML (toml.io, 1.0) into JSON: tables, arrays of tables, dotted keys, inline tables,
 * arrays, basic and literal strings, integers, floats, booleans. Dates and strings of several lines
 * are refused by name, as no file of Keel has them. */
#ifndef KEEL_IO_TOML_H
#define KEEL_IO_TOML_H
#include "base/error.h"
#include <jansson.h>
#include <stddef.h>

/* `name` is the file in messages. KEEL_EFORMAT with the line; KEEL_EUNSUP: a date, a text of
 * several lines. The caller gives *out to json_decref. */
keel_status keel_toml_parse(json_t **out, const char *text, size_t n_bytes, const char *name);

#endif
