/* See _texts.h. */
#include "train/callbacks/_texts.h"
#include "base/c_locale.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *keel_python_number(char out[40], double x)
{
    char digits[40];
    if (!isfinite(x)) return strcpy(out, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    int precision = 0;
    do keel_snprintf(digits, sizeof digits, "%.*e", precision, x);
    while (keel_strtod(digits, NULL) != x && ++precision < 17);
    const int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        const int n = (int)(strchr(digits, 'e') - digits);
        snprintf(out, 40, "%.*se%c%02d", n, digits, exponent < 0 ? '-' : '+', abs(exponent));
        return out;
    }
    const int decimals = precision - exponent;
    keel_snprintf(out, 40, "%.*f", decimals > 1 ? decimals : 1, x);
    return out;
}

enum { FIELD_MAX = 200 };

/* Whether it is [0][width][.precision] and at most one of "defgEG"; the letter, or 0. */
static bool is_format(const char *spec, char *letter)
{
    const char *p = spec;
    if (*p == '0') p++;
    size_t n = strspn(p, "0123456789");
    if (n > 3) return false;
    p += n;
    if (*p == '.') {
        n = strspn(++p, "0123456789");
        if (n < 1 || n > 2) return false;
        p += n;
    }
    *letter = *p;
    return !*p || (strchr("defgEG", *p) && !p[1]);
}

static keel_status add_number(keel_text *out, const char *spec, const char *field, double value,
                              bool whole)
{
    char letter = 0, format[32], number[512];
    const bool known = is_format(spec, &letter) && strlen(spec) <= 16;
    const int n = (int)strlen(spec) - (letter != 0);
    if (!*spec && !whole) {
        keel_text_add(out, "%s", keel_python_number(number, value));
        return KEEL_OK;
    }
    if (whole && !letter) letter = 'd';
    if (!known || !letter || (letter == 'd' && (!whole || strchr(spec, '.'))))
        return keel_fail(KEEL_EARG, "{%s:%s}: not a format for %s; as {epoch:02d}, {loss:.4f}",
                         field, spec, whole ? "a whole number" : "a number");
    if (letter == 'd') {
        snprintf(format, sizeof format, "%%%.*slld", n, spec);
        snprintf(number, sizeof number, format, (long long)value);
    } else {
        if (isnan(value)) value = fabs(value); /* Python shows no sign of it */
        snprintf(format, sizeof format, "%%%.*s%c", n, spec, letter);
        keel_snprintf(number, sizeof number, format, value);
    }
    keel_text_add(out, "%s", number);
    return KEEL_OK;
}

/* One field, "val_loss:.2f". */
static keel_status add_field(keel_text *out, char *field, int64_t epoch, int64_t batch,
                             const keel_logs *logs)
{
    char *spec = strchr(field, ':');
    if (spec)
        *spec++ = 0;
    else
        spec = field + strlen(field);
    if (!strcmp(field, "epoch")) return add_number(out, spec, field, (double)epoch, true);
    if (!strcmp(field, "batch") && batch > 0)
        return add_number(out, spec, field, (double)batch, true);
    for (int i = 0; i < logs->count; i++)
        if (!strcmp(logs->name[i], field))
            return add_number(out, spec, field, logs->value[i], false);
    return keel_fail(KEEL_EARG, "{%s}: there is no such value where the file is saved", field);
}

keel_status keel_python_format(keel_text *out, const char *pattern, int64_t epoch, int64_t batch,
                               const keel_logs *logs)
{
    for (const char *p = pattern; *p;) {
        char field[FIELD_MAX];
        if ((*p == '{' || *p == '}') && p[1] == *p) {
            keel_text_add(out, "%c", *p);
            p += 2;
            continue;
        }
        if (*p == '}') return keel_fail(KEEL_EARG, "'%.100s': a } without its {", pattern);
        if (*p != '{') {
            keel_text_add(out, "%c", *p++);
            continue;
        }
        const size_t n = strcspn(p + 1, "}");
        if (!p[1 + n] || n >= sizeof field)
            return keel_fail(KEEL_EARG, "'%.100s': a { without its }", pattern);
        memcpy(field, p + 1, n);
        field[n] = 0;
        KEEL_TRY(add_field(out, field, epoch, batch, logs));
        p += n + 2;
    }
    return out->failed ? keel_fail(KEEL_ENOMEM, "out of memory making a file name") : KEEL_OK;
}
