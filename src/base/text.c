/* Growing text, and the few spellings of names and numbers that messages share. */
#include "base/text.h"
#include "base/memory.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool reserve(keel_text *t, size_t more)
{
    if (more > PTRDIFF_MAX / 2 - t->length) return false;
    const size_t need = t->length + more + 1;
    if (need <= t->capacity) return true;
    const size_t capacity = need < 128 ? 256 : need * 2;
    char *data = keel_grow(t->data, capacity, 1);
    if (!data) return false;
    t->data = data;
    t->capacity = capacity;
    return true;
}

void keel_text_add(keel_text *t, const char *format, ...)
{
    if (t->failed) return;
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (n < 0 || !reserve(t, (size_t)n)) {
        t->failed = true;
        return;
    }
    va_start(list, format);
    vsnprintf(t->data + t->length, t->capacity - t->length, format, list);
    va_end(list);
    t->length += (size_t)n;
}

void keel_text_free(keel_text *t)
{
    keel_free(t->data);
    *t = (keel_text){ 0 };
}

/* ASCII on purpose: a name must not change with the user's locale. */
static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}
static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Keras: drop what is no word character, put '_' before a capital that follows a small letter or is
 * followed by one, and write all small. */
void keel_snake_case(char *out, size_t size, const char *name)
{
    size_t n = 0;
    if (size == 0) return;
    for (size_t i = 0; name[i]; i++) {
        const char c = name[i], next = name[i + 1], before = i ? name[i - 1] : 0;
        const bool digit = c >= '0' && c <= '9';
        const bool word = is_upper(c) || is_lower(c) || digit || c == '_' || (c & 0x80);
        if (!word) continue;
        if (is_upper(c) && n && (is_lower(next) || is_lower(before)) && n + 1 < size)
            out[n++] = '_';
        if (n + 1 < size) out[n++] = (char)(is_upper(c) ? c - 'A' + 'a' : c);
    }
    out[n] = 0;
}

char *keel_group_digits(char *out, int64_t number)
{
    char plain[24];
    const int n = snprintf(plain, sizeof plain, "%" PRId64, number);
    const int first = plain[0] == '-';
    char *to = out;
    for (int i = 0; i < n; i++) {
        if (i > first && (n - i) % 3 == 0) *to++ = ',';
        *to++ = plain[i];
    }
    *to = 0;
    return out;
}

char *keel_bytes_text(char out[32], int64_t n_bytes)
{
    static const char *const unit[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    const double magnitude = n_bytes < 0 ? -(double)n_bytes : (double)n_bytes;
    if (magnitude < 1024) {
        snprintf(out, 32, "%" PRId64 " B", n_bytes);
        return out;
    }
    double v = magnitude / 1024;
    size_t u = 0;
    while (v >= 1023.95 && u + 1 < sizeof unit / sizeof *unit) { /* 1023.95 would print as 1024.0 */
        v /= 1024;
        u++;
    }
    snprintf(out, 32, "%s%.1f %s", n_bytes < 0 ? "-" : "", v, unit[u]);
    return out;
}
