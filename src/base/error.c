/* Error text: one fixed buffer per thread, written without allocation, so that reporting an error
 * cannot fail. Texts may quote bytes of files, so they are made printable here, in one place. */
#include "base/error.h"
#include "base/c_locale.h"
#include "base/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char error_text[KEEL_ERROR_MAX];
static _Thread_local unsigned error_count;

const char *keel_status_name(keel_status status)
{
    switch ((int)status) {
#define X(name, value, text)                                                                       \
    case value:                                                                                    \
        return "KEEL_" #name;
        KEEL_STATUS_MAP(X)
#undef X
    }
    return "KEEL_?";
}

const char *keel_error(void)
{
    return error_text;
}

unsigned keel_error_count(void)
{
    return error_count;
}

/* keel_vsnprintf into text[at...]. A truncated text ends in "..."; UTF-8 characters are not split.
 */
static size_t put(char *text, size_t at, const char *format, va_list list)
{
    const size_t room = KEEL_ERROR_MAX - at;
    const int n = keel_vsnprintf(text + at, room, format, list);
    if (n < 0) {
        text[at] = 0;
        return at;
    }
    if ((size_t)n < room) return at + (size_t)n;
    size_t end = KEEL_ERROR_MAX - 4;
    if (end < at) end = at; /* no room for "...": the text stays as it is */
    while (end > at && ((unsigned char)text[end] & 0xC0) == 0x80) end--;
    snprintf(text + end, KEEL_ERROR_MAX - end, "...");
    return strlen(text);
}

static void keep(const char *text)
{
    error_count++;
    keel_printable(error_text, sizeof error_text, text);
}

/* keel_fail and keel_fail_within write to a second buffer, since keel_error() may be an argument.
 */
keel_status keel_fail(keel_status s, const char *format, ...)
{
    char text[KEEL_ERROR_MAX];
    va_list list;
    va_start(list, format);
    put(text, 0, format, list);
    va_end(list);
    keep(text);
    return s;
}

keel_status keel_error_set(keel_status s, const char *text)
{
    return keel_fail(s, "%s", text ? text : "");
}

static size_t put_more(char *text, size_t at, const char *format, ...) KEEL_PRINTF(3, 4);
static size_t put_more(char *text, size_t at, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const size_t end = put(text, at, format, list);
    va_end(list);
    return end;
}

keel_status keel_fail_within(keel_status s, const char *format, ...)
{
    char text[KEEL_ERROR_MAX];
    va_list list;
    va_start(list, format);
    const size_t at = put(text, 0, format, list);
    va_end(list);
    put_more(text, at, error_text[0] ? ": %s" : "%s", error_text);
    keep(text);
    return s;
}

void keel_failure_take(keel_failure *f, keel_status s)
{
    f->status = s;
    memcpy(f->text, error_text, sizeof f->text);
}

keel_status keel_failure_raise(const keel_failure *f)
{
    if (f->status < 0) memcpy(error_text, f->text, sizeof error_text);
    return f->status;
}
