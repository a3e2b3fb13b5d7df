/* The wire format of tf.train.Example; see example.h. A message is a run of fields: a varint with
 * number << 3 | type, then the value. Each level is read by one cursor, which never leaves its
 * piece. */
#include "io/example.h"
#include <string.h>

enum { VARINT = 0, BYTES = 2, FIXED32 = 5, VARINT_MAX = 10 };

typedef struct cursor {
    const unsigned char *at, *end;
} cursor;

/* A varint of up to 10 bytes. */
static inline bool take_varint(cursor *c, uint64_t *out)
{
    uint64_t v = 0;
    for (int i = 0; i < VARINT_MAX && c->at < c->end; i++) {
        const unsigned char b = *c->at++;
        v |= (uint64_t)(b & 127) << 7 * i;
        if (b < 128) {
            *out = v;
            return i < VARINT_MAX - 1 || b < 2; /* no more than 64 bits */
        }
    }
    return false;
}

static bool take_piece(cursor *c, cursor *piece)
{
    uint64_t n;
    if (!take_varint(c, &n) || n > (uint64_t)(c->end - c->at)) return false;
    *piece = (cursor){ c->at, c->at + n };
    c->at += n;
    return true;
}

/* The head of the next field. */
static bool take_head(cursor *c, uint64_t *number, int *type)
{
    uint64_t head;
    if (!take_varint(c, &head) || head >> 3 == 0 || head > UINT32_MAX) return false;
    *number = head >> 3;
    *type = (int)(head & 7);
    return true;
}

static keel_status no_example(const char *what)
{
    return keel_fail(KEEL_EFORMAT, "is not a tf.train.Example: %s", what);
}

/* Each varint has one byte below 128, its last. */
static int64_t count_varints(const cursor *c)
{
    int64_t n = 0;
    for (const unsigned char *p = c->at; p < c->end; p++) n += *p < 128;
    return n;
}

static bool whole_varints(const cursor *c)
{
    return c->at == c->end || c->end[-1] < 128;
}

/* Count the values of a list and check its form, but for the varints' lengths. */
static keel_status read_list(keel_feature *f, cursor list)
{
    f->list = list.at;
    f->n_bytes = (size_t)(list.end - list.at);
    f->count = 0;
    while (list.at < list.end) {
        uint64_t number;
        int type;
        cursor piece;
        if (!take_head(&list, &number, &type) || number != 1)
            return no_example("a list of values has something else");
        if (f->kind == KEEL_FEATURE_FLOAT && type == FIXED32 && list.end - list.at >= 4) {
            list.at += 4;
            f->count++;
            continue;
        }
        if (f->kind == KEEL_FEATURE_INT64 && type == VARINT) {
            uint64_t value;
            if (!take_varint(&list, &value)) return no_example("an integer is cut short");
            f->count++;
            continue;
        }
        if (type != BYTES || !take_piece(&list, &piece))
            return no_example("a value is cut short or of another type");
        if (f->kind == KEEL_FEATURE_BYTES) {
            f->count++;
        } else if (f->kind == KEEL_FEATURE_FLOAT) {
            if ((piece.end - piece.at) % 4) return no_example("packed floats are cut short");
            f->count += (piece.end - piece.at) / 4;
        } else {
            if (!whole_varints(&piece)) return no_example("packed integers are cut short");
            f->count += count_varints(&piece);
        }
    }
    return KEEL_OK;
}

static keel_status read_feature(keel_feature *f, cursor c)
{
    uint64_t number;
    int type;
    cursor list;
    *f = (keel_feature){ KEEL_FEATURE_MISSING };
    if (c.at == c.end) return KEEL_OK;
    if (!take_head(&c, &number, &type) || number > 3 || type != BYTES || !take_piece(&c, &list))
        return no_example("a feature is neither bytes_list, float_list nor int64_list");
    if (c.at != c.end) return no_example("a feature has two lists");
    f->kind = (keel_feature_kind)number;
    return read_list(f, list);
}

/* One entry of the map: name = 1, feature = 2. */
static keel_status read_entry(cursor c, cursor *name, cursor *feature)
{
    *name = *feature = (cursor){ NULL, NULL };
    while (c.at < c.end) {
        uint64_t number;
        int type;
        cursor piece;
        if (!take_head(&c, &number, &type) || number > 2 || type != BYTES ||
            !take_piece(&c, &piece))
            return no_example("an entry is neither a name nor a feature");
        cursor *to = number == 1 ? name : feature;
        if (to->at) return no_example("an entry has two names or two features");
        *to = piece;
    }
    if (!name->at) return no_example("a feature without a name");
    return KEEL_OK;
}

/* The features of a record; an empty record has none. */
static keel_status read_example(const void *data, size_t n_bytes, cursor *features)
{
    *features = (cursor){ NULL, NULL };
    if (!n_bytes) return KEEL_OK;
    cursor c = { data, (const unsigned char *)data + n_bytes };
    while (c.at < c.end) {
        uint64_t number;
        int type;
        cursor piece;
        if (!take_head(&c, &number, &type) || number > 2 || type != BYTES ||
            !take_piece(&c, &piece))
            return no_example("it is another kind of record");
        if (number == 2)
            return keel_fail(
                KEEL_EUNSUP,
                "is a tf.train.SequenceExample, which is not read; write each row as a "
                "tf.train.Example");
        if (features->at) return no_example("it has features twice");
        *features = piece;
    }
    return KEEL_OK;
}

/* The next entry of the features; KEEL_END: there are no more. */
static keel_status next_entry(cursor *features, cursor *name, cursor *feature)
{
    uint64_t number;
    int type;
    cursor entry;
    if (features->at == features->end) return KEEL_END;
    if (!take_head(features, &number, &type) || number != 1 || type != BYTES ||
        !take_piece(features, &entry))
        return no_example("it is another kind of record");
    return read_entry(entry, name, feature);
}

keel_status keel_example_find(keel_feature *out, const char *const *names, int n, const void *data,
                              size_t n_bytes)
{
    cursor features, name, feature;
    keel_status s;
    for (int i = 0; i < n; i++) out[i] = (keel_feature){ KEEL_FEATURE_MISSING };
    KEEL_TRY(read_example(data, n_bytes, &features));
    while ((s = next_entry(&features, &name, &feature)) == KEEL_OK) {
        const size_t length = (size_t)(name.end - name.at);
        for (int i = 0; i < n; i++) {
            if (strlen(names[i]) != length || memcmp(names[i], name.at, length)) continue;
            if (out[i].kind) return no_example("a feature is there twice");
            KEEL_TRY(read_feature(&out[i], feature));
        }
    }
    return s < 0 ? s : KEEL_OK;
}

keel_status keel_example_each(const void *data, size_t n_bytes, keel_feature_each each, void *arg)
{
    cursor features, name, feature;
    keel_status s;
    KEEL_TRY(read_example(data, n_bytes, &features));
    while ((s = next_entry(&features, &name, &feature)) == KEEL_OK) {
        keel_feature f;
        KEEL_TRY(read_feature(&f, feature));
        s = each(arg, (const char *)name.at, (size_t)(name.end - name.at), &f);
        if (s != KEEL_OK) break;
    }
    return s < 0 ? s : KEEL_OK;
}

keel_status keel_feature_int64(const keel_feature *f, int64_t *out)
{
    cursor c = { f->list, f->list + f->n_bytes };
    while (c.at < c.end) {
        uint64_t number, value;
        int type;
        cursor piece;
        take_head(&c, &number, &type);
        if (type == VARINT) {
            if (!take_varint(&c, &value)) return no_example("an integer is cut short");
            *out++ = (int64_t)value;
            continue;
        }
        if (!take_piece(&c, &piece)) return no_example("packed integers are cut short");
        while (piece.at < piece.end) {
            if (!take_varint(&piece, &value)) return no_example("an integer has more than 64 bits");
            *out++ = (int64_t)value;
        }
    }
    return KEEL_OK;
}

void keel_feature_float(const keel_feature *f, float *out)
{
    cursor c = { f->list, f->list + f->n_bytes };
    while (c.at < c.end) {
        uint64_t number;
        int type;
        cursor piece;
        take_head(&c, &number, &type);
        if (type == FIXED32) {
            piece = (cursor){ c.at, c.at + 4 };
            c.at += 4;
        } else if (!take_piece(&c, &piece)) {
            return; /* cannot be: the list was checked */
        }
        const size_t n = (size_t)(piece.end - piece.at);
        if (n) memcpy(out, piece.at, n);
        out += n / 4;
    }
}

bool keel_feature_bytes(const keel_feature *f, size_t *at, const unsigned char **data, size_t *n)
{
    cursor c = { f->list + *at, f->list + f->n_bytes }, piece;
    uint64_t number;
    int type;
    if (c.at == c.end || !take_head(&c, &number, &type) || !take_piece(&c, &piece)) return false;
    *at = (size_t)(c.at - f->list);
    *data = piece.at;
    *n = (size_t)(piece.end - piece.at);
    return true;
}

const char *keel_feature_kind_name(keel_feature_kind kind)
{
    static const char *const names[] = { "nothing", "bytes_list", "float_list", "int64_list" };
    return names[kind];
}
