/* Growing text, and the formats of names and numbers in messages. */
#include "base/text.h"
#include "base/c_locale.h"
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
    const int n = keel_vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (n < 0 || !reserve(t, (size_t)n)) {
        t->failed = true;
        return;
    }
    va_start(list, format);
    keel_vsnprintf(t->data + t->length, t->capacity - t->length, format, list);
    va_end(list);
    t->length += (size_t)n;
}

void keel_text_free(keel_text *t)
{
    keel_free(t->data);
    *t = (keel_text){ 0 };
}

/* ---- names from files ------------------------------------------------------------------------ */

int keel_utf8_next(const char *text, size_t n, uint32_t *code)
{
    const unsigned char *b = (const unsigned char *)text;
    if (n == 0) return 0;
    const int length = b[0] < 0x80             ? 1
                       : (b[0] & 0xE0) == 0xC0 ? 2
                       : (b[0] & 0xF0) == 0xE0 ? 3
                       : (b[0] & 0xF8) == 0xF0 ? 4
                                               : 0;
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (length == 0 || (size_t)length > n) return 0;
    uint32_t c = length == 1 ? b[0] : b[0] & (0x7Fu >> length);
    for (int i = 1; i < length; i++) {
        if ((b[i] & 0xC0) != 0x80) return 0;
        c = c << 6 | (b[i] & 0x3F);
    }
    if (c < least[length] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 0;
    if (code) *code = c;
    return length;
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 ||
           (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

char *keel_printable(char *out, size_t size, const char *text)
{
    size_t left = strlen(text), n = 0;
    while (left > 0 && n + 1 < size) {
        uint32_t c = 0;
        const int length = keel_utf8_next(text, left, &c);
        const size_t taken = length > 0 ? (size_t)length : 1;
        if (length == 0 || is_control(c)) {
            out[n++] = *text == '\n' || *text == '\t' ? ' ' : '?';
        } else {
            if (n + taken >= size) break;
            memmove(out + n, text, taken);
            n += taken;
        }
        text += taken;
        left -= taken;
    }
    if (size > 0) out[n] = 0;
    return out;
}

size_t keel_name_width(const char *name)
{
    size_t left = strlen(name), width = 0;
    for (; left > 0; width++) {
        const int length = keel_utf8_next(name, left, NULL);
        name += length > 0 ? length : 1;
        left -= length > 0 ? (size_t)length : 1;
    }
    return width;
}

void keel_text_add_name(keel_text *t, size_t width, const char *name)
{
    const size_t begin = t->length, has = keel_name_width(name);
    keel_text_add(t, "%s", name);
    if (t->failed) return;
    keel_printable(t->data + begin, t->length - begin + 1, t->data + begin);
    t->length = begin + strlen(t->data + begin);
    if (has < width && width - has < 4096) keel_text_add(t, "%*s", (int)(width - has), "");
}

/* ASCII only: a name must not depend on the user's locale. */
static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}
static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* As Keras: drop characters that are not word characters, put '_' before a capital that follows or
 * precedes a small letter, and convert to lower case. */
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
    keel_snprintf(out, 32, "%s%.1f %s", n_bytes < 0 ? "-" : "", v, unit[u]);
    return out;
}
