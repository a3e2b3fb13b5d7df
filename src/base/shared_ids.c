/* See shared_ids.h. */
#include "base/shared_ids.h"
#include <stdio.h>

static const char key[] = "shared_object_id";

/* Calls `visit` for each object that has such a number. */
static bool walk(json_t *v, bool (*visit)(json_t *object, json_t *seen, const char *id),
                 json_t *seen)
{
    const char *name;
    json_t *member;
    size_t i;
    bool good = true;
    const json_t *id = json_object_get(v, key); /* NULL if v is no object */
    if (json_is_integer(id)) {
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(id));
        good = visit(v, seen, text);
    }
    json_object_foreach(v, name, member) good = good && walk(member, visit, seen);
    json_array_foreach(v, i, member) good = good && walk(member, visit, seen);
    return good;
}

static bool count(json_t *object, json_t *seen, const char *id)
{
    const json_int_t n = json_integer_value(json_object_get(seen, id));
    (void)object;
    return json_object_set_new(seen, id, json_integer(n + 1)) == 0;
}

/* seen: how often a number occurs; once it has a new one, that, below 0. */
static bool renumber(json_t *object, json_t *seen, const char *id)
{
    const json_int_t n = json_integer_value(json_object_get(seen, id));
    if (n == 1) return json_object_del(object, key) == 0;
    json_int_t now = n;
    if (n > 0) {
        const json_int_t last = json_integer_value(json_object_get(seen, "last"));
        now = last - 1;
        if (json_object_set_new(seen, "last", json_integer(now)) != 0 ||
            json_object_set_new(seen, id, json_integer(now)) != 0)
            return false;
    }
    return json_object_set_new(object, key, json_integer(-now)) == 0;
}

bool keel_shared_ids_number(json_t *config)
{
    json_t *seen = json_object();
    const bool good = seen && walk(config, count, seen) && walk(config, renumber, seen);
    json_decref(seen);
    return good;
}
