/* See shown.h. */
#include "shown.h"
#include <inttypes.h>
#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- one value ------------------------------------------------------------------------------- */

static void print_text(const keel_string *s)
{
    char raw[64], safe[64];
    const int n = s->n_bytes < 40 ? (int)s->n_bytes : 40;
    snprintf(raw, sizeof raw, "%.*s%s", n, s->data, s->n_bytes > n ? "..." : "");
    printf("\"%s\"", keel_printable(safe, sizeof safe, raw));
}

void keel_shown_value(const keel_tensor *t)
{
    enum { SHOWN = 6 };
    const int64_t n = keel_value_count(t);
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        if (i) printf(" ");
        if (t->dtype == KEEL_STRING)
            print_text(&((const keel_string *)t->data)[i]);
        else
            printf("%.7g", keel_value(t, i));
    }
    if (n <= SHOWN || t->dtype == KEEL_STRING) return;
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double v = keel_value(t, i);
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    printf(" ... (%" PRId64 " numbers, %.7g to %.7g)", n, least, most);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* True if standard output is a terminal that shows 24-bit colours and the character that pictures
 * are made of. */
static bool shows_pictures(void)
{
    const char *colours = getenv("COLORTERM"), *none = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && colours &&
           (!strcmp(colours, "truecolor") || !strcmp(colours, "24bit")) && !(none && *none) &&
           !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static int terminal_columns(void)
{
    struct winsize w;
    return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : 80;
}

/* Field i of all rows, which is an image. */
static keel_status print_pictures(const keel_samples *s, int i, const keel_range *range)
{
    enum { LABEL = 64 };
    keel_picture *p = calloc((size_t)s->n, sizeof *p);
    char(*text)[LABEL] = calloc((size_t)s->n, sizeof *text);
    const char **label = calloc((size_t)s->n, sizeof *label);
    keel_data_field f;
    char name[128], what[256];
    bool made = p && text && label;
    int n = 0;
    for (int64_t k = 0; made && k < s->n; k++) {
        if (!s->sample[k].field) continue;
        made = keel_picture_make(&p[n], &s->sample[k].field[i], range, KEEL_CELLS_HEIGHT,
                                 KEEL_CELLS_WIDTH);
        label[n] = keel_sample_label(text[n], sizeof text[n], s, &s->sample[k]);
        n += made;
    }
    if (made && keel_dataset_field(s->data, i, &f) >= 0) {
        printf("%s: %s\n", keel_printable(name, sizeof name, f.path),
               keel_range_text(what, sizeof what, range));
        keel_picture_print(stdout, p, label, n, terminal_columns());
    }
    for (int k = 0; k < n; k++) free(p[k].pixel);
    free(p);
    free(text);
    free(label);
    return made ? KEEL_OK : keel_error_set(KEEL_ENOMEM, "out of memory for pictures");
}

/* The fields that are no images, and not said by the labels of those. */
static void print_others(const keel_samples *s, const bool *drawn)
{
    for (int64_t k = 0; k < s->n; k++) {
        const keel_sample *one = &s->sample[k];
        bool head = false, labelled = false;
        for (int i = 0; one->field && i < s->n_field; i++) {
            keel_data_field f;
            char name[256];
            if (drawn[i] || keel_dataset_field(s->data, i, &f) < 0) continue;
            const bool target = f.role == KEEL_ROLE_TARGET && !labelled;
            labelled |= f.role == KEEL_ROLE_TARGET;
            if (target && f.dtype != KEEL_STRING && keel_value_count(&one->field[i]) == 1) continue;
            if (!head)
                printf(one->rows ? "%" PRId64 " [%" PRId64 "]:\n" : "%" PRId64 ":\n", one->element,
                       one->row);
            head = true;
            printf("  %-16s ", keel_printable(name, sizeof name, f.path));
            keel_shown_value(&one->field[i]);
            printf("\n");
        }
    }
}

keel_status keel_shown_images(const keel_dataset *d, int64_t rows, const keel_reader_options *r,
                              bool *shown)
{
    enum { PER_BATCH = 6 };
    keel_samples samples;
    bool drawn[KEEL_FIELDS_MAX] = { false };
    *shown = false;
    if (!shows_pictures()) return KEEL_OK;
    const keel_status read = keel_samples_read(&samples, d, rows, PER_BATCH, false, r);
    keel_status s = KEEL_OK;
    for (int i = 0; i < samples.n_field && s >= 0; i++) {
        keel_range range;
        if (keel_samples_look(&samples, i, &range) != KEEL_LOOK_IMAGE) continue;
        *shown = drawn[i] = true;
        s = print_pictures(&samples, i, &range);
    }
    if (*shown && s >= 0) print_others(&samples, drawn);
    keel_samples_free(&samples);
    return read < 0 ? read : s;
}
