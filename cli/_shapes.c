/* See shapes.h. */
#include "shapes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int keel_padding_read(keel_padding *out, const keel_pad_options *o)
{
    static const char bucket[] = "bucket:";
    *out = (keel_padding){ 0 };
    if (!strcmp(o->pad, "longest")) return -1;
    if (strncmp(o->pad, bucket, strlen(bucket))) goto bad;
    for (const char *p = o->pad + strlen(bucket);; p++) {
        char *end;
        errno = 0;
        const long long n = strtoll(p, &end, 10);
        if (end == p || errno || n < 1 || out->n == KEEL_BUCKETS_MAX ||
            (out->n && n <= out->bucket[out->n - 1]))
            goto bad;
        out->bucket[out->n++] = n;
        p = end;
        if (!*p) return -1;
        if (*p != ',') goto bad;
    }
bad:
    return keel_complain(
        EXIT_USAGE,
        "--pad '%s': use longest, or ascending lengths, as bucket:8,16,32 (at most "
        "%d)",
        o->pad, KEEL_BUCKETS_MAX);
}

void keel_programs_print(const keel_program_counts *c, const keel_pad_options *o)
{
    const int64_t made = c->training + c->inference;
    if (c->training < 2 && c->inference < 2) return;
    printf("programs %lld compiled for batches of different shapes, %lld kept\n", (long long)made,
           (long long)c->kept);
    if (c->dropped)
        printf("warning  %lld programs were dropped to make room, and shapes that return are "
               "compiled again: "
               "%s, or keep more of them (--programs %lld)\n",
               (long long)c->dropped,
               strcmp(o->pad, "longest") ? "choose fewer buckets"
                                         : "use few lengths (--pad bucket:N,N,...)",
               (long long)(2 * o->programs < 30 ? 2 * o->programs : 30));
}

static int find_input(const keel_model *m, const char *name, size_t length)
{
    for (int i = 0; i < keel_model_input_count(m); i++) {
        const char *input = keel_model_input_name(m, i);
        if (strlen(input) == length && !strncmp(input, name, length)) return i;
    }
    return -1;
}

/* One word of --shape: "80" or "tokens=80". */
static bool read_one(keel_shape *shapes, const keel_model *m, const char *word, size_t length)
{
    char text[128];
    const char *equals = memchr(word, '=', length);
    const int i = equals ? find_input(m, word, (size_t)(equals - word)) : 0;
    const char *dims = equals ? equals + 1 : word;
    const size_t n = length - (size_t)(dims - word);
    if (i < 0 || n >= sizeof text || (!equals && keel_model_input_count(m) != 1)) return false;
    memcpy(text, dims, n);
    text[n] = 0;
    return keel_shape_parse(&shapes[i], text, 1, KEEL_RANK_MAX);
}

int keel_shapes_read(keel_shape **out, const char *text, const keel_model *m)
{
    const int n = keel_model_input_count(m);
    keel_shape *shapes = calloc((size_t)n + 1, sizeof *shapes);
    if (!shapes) return keel_complain(EXIT_FAILED, "out of memory");
    for (int i = 0; i < n; i++) shapes[i].rank = -1;
    for (const char *p = text ? text : ""; *(p += strspn(p, " "));) {
        const size_t length = strcspn(p, " ");
        if (!read_one(shapes, m, p, length)) {
            free(shapes);
            return keel_complain(
                EXIT_USAGE,
                "--shape '%s': give the shape of a row, as 80, or of each input by its "
                "name, as '%s=80 other=40,48,3'",
                text, n ? keel_model_input_name(m, 0) : "input");
        }
        p += length;
    }
    for (int i = 0; i < n; i++) {
        keel_shape own;
        bool open = false;
        if (shapes[i].rank >= 0 || keel_model_input_shape(m, i, &own) < 0) continue;
        for (int d = 0; d < own.rank; d++) open = open || own.dim[d] == KEEL_DIM_OPEN;
        if (!open) continue;
        free(shapes);
        return keel_complain(EXIT_USAGE,
                             "the model takes rows of any size as '%s': give a size, as "
                             "--shape %s=...",
                             keel_model_input_name(m, i), keel_model_input_name(m, i));
    }
    *out = shapes;
    return -1;
}
