/* Parses the list of a scheme; see layout.h. */
#include "data/layout.h"
#include <string.h>

bool keel_layout_claims(const char *spec, const char *scheme)
{
    const size_t n = strlen(scheme);
    return !strncmp(spec, scheme, n) && (spec[n] == '(' || spec[n] == ':');
}

typedef struct reading {
    const char *spec, *at, *scheme;
} reading;

static keel_status refuse(const reading *r, const char *what)
{
    return keel_fail(KEEL_EARG, "%s: %s at '%.40s' of '%.200s'", r->scheme, what, r->at, r->spec);
}

/* Take a word up to one of the characters of `ends`. */
static keel_status word(reading *r, char out[KEEL_LAYOUT_TEXT], const char *ends)
{
    const size_t n = strcspn(r->at, ends);
    if (!n) return refuse(r, "a name or value is missing");
    if (n >= KEEL_LAYOUT_TEXT) return refuse(r, "a name of more than 63 characters");
    memcpy(out, r->at, n);
    out[n] = 0;
    r->at += n;
    return KEEL_OK;
}

static keel_status number(reading *r, int64_t *out)
{
    int64_t v = 0;
    const char *begin = r->at;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *r->at - '0', &v))
            return refuse(r, "a number that is too large");
    if (r->at == begin || v < 1) return refuse(r, "a whole number of at least 1 is expected");
    *out = v;
    return KEEL_OK;
}

static keel_status numbers(reading *r, keel_shape *out)
{
    out->rank = 0;
    r->at++; /* the parenthesis */
    while (*r->at != ')') {
        if (out->rank == KEEL_RANK_MAX) return refuse(r, "more than 6 numbers");
        KEEL_TRY(number(r, &out->dim[out->rank]));
        out->rank++;
        if (*r->at != ',' && *r->at != ')') return refuse(r, "a comma or ')' is expected");
        r->at += *r->at == ',';
    }
    r->at++;
    return KEEL_OK;
}

static keel_status item(reading *r, keel_layout_item *out)
{
    *out = (keel_layout_item){ .numbers = { .rank = -1 } };
    KEEL_TRY(word(r, out->name, "=,():"));
    if (*r->at == '=') {
        r->at++;
        KEEL_TRY(word(r, out->value, ",():="));
        if (*r->at == '(') KEEL_TRY(numbers(r, &out->numbers));
        if (*r->at == ':') {
            r->at++;
            KEEL_TRY(word(r, out->order, ",():="));
        }
    }
    if (*r->at != ',' && *r->at != ')') return refuse(r, "a comma or ')' is expected");
    return KEEL_OK;
}

keel_status keel_layout_read(keel_layout *out, const char *spec, const char *scheme)
{
    reading r = { spec, spec + strlen(scheme), scheme };
    out->n = 0;
    out->rest = NULL;
    if (*r.at == '(') {
        r.at++;
        while (*r.at != ')') {
            if (out->n == KEEL_FIELDS_MAX) return refuse(&r, "more than 64 items");
            KEEL_TRY(item(&r, &out->item[out->n]));
            for (int i = 0; i < out->n; i++)
                if (!strcmp(out->item[i].name, out->item[out->n].name) &&
                    strcmp(out->item[i].name, "_") != 0)
                    return refuse(&r, "a name a second time");
            out->n++;
            r.at += *r.at == ',';
        }
        r.at++;
        if (!out->n) return refuse(&r, "an empty list");
    }
    if (*r.at == ':')
        out->rest = r.at + 1;
    else if (*r.at)
        return refuse(&r, "a ':' is expected");
    return KEEL_OK;
}

keel_status keel_layout_number(int64_t *out, const keel_layout_item *i, int64_t least,
                               const char *scheme)
{
    int64_t v = 0;
    const char *p = i->value;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v)) break;
    if (!*i->value || *p || *i->order || i->numbers.rank >= 0 || v < least)
        return keel_fail(KEEL_EARG, "%s: %s=%s: a whole number of at least %lld is expected",
                         scheme, i->name, i->value, (long long)least);
    *out = v;
    return KEEL_OK;
}
