/* See page.h. Every text of the data passes through `text`, which escapes it; nothing else of the
 * data is written but numbers and PNG files that are made here. */
#include "page.h"
#include "command.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char STYLE[] =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;"
    "color:#222;background:#fff}h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}"
    "table{border-collapse:collapse}td,th{padding:.2em .9em .2em 0;text-align:left;"
    "vertical-align:top;border-bottom:1px solid #e4e4e4}"
    ".rows{display:flex;flex-wrap:wrap;gap:1em}figure{margin:0;padding:.6em;border:1px solid "
    "#ddd;border-radius:4px;max-width:100%;overflow-wrap:anywhere}"
    "figcaption{font-weight:600}.small{color:#666;font-size:.85em}"
    "img{image-rendering:pixelated;min-width:96px;max-width:100%;display:block;"
    "background:repeating-conic-gradient(#999 0 25%,#666 0 50%) 0 0/16px 16px}"
    ".bad{border-color:#c33;color:#a00}pre{white-space:pre-wrap;margin:0;max-width:40em}";

/* ---- texts -------------------------------------------------------------------------------------
 */

static void escaped(FILE *f, const char *s)
{
    for (; *s; s++) {
        if (*s == '&')
            fputs("&amp;", f);
        else if (*s == '<')
            fputs("&lt;", f);
        else if (*s == '>')
            fputs("&gt;", f);
        else if (*s == '"')
            fputs("&quot;", f);
        else if (*s == '\'')
            fputs("&#39;", f);
        else
            fputc(*s, f);
    }
}

/* The first `most` bytes of n, safe to print; what is no text becomes '?'. */
static bool text(FILE *f, const char *s, int64_t n, int64_t most)
{
    const size_t shown = (size_t)(n < most ? n : most);
    char *safe = malloc(shown + 1);
    if (!safe) return false;
    for (size_t i = 0; i < shown; i++) safe[i] = s[i] ? s[i] : '?';
    safe[shown] = 0;
    keel_printable(safe, shown + 1, safe);
    escaped(f, safe);
    free(safe);
    if (n > most) fprintf(f, " ... (%" PRId64 " bytes)", n);
    return true;
}

static bool name(FILE *f, const char *s)
{
    return text(f, s, (int64_t)strlen(s), 4096);
}

/* The end of a text, which of a path says most. */
static bool ending(FILE *f, const char *s, size_t most)
{
    const size_t n = strlen(s);
    if (n <= most) return name(f, s);
    s += n - most + 3;
    while (((unsigned char)*s & 0xC0) == 0x80) s++; /* not from inside a character */
    fputs("...", f);
    return name(f, s);
}

static void base64(FILE *f, const unsigned char *from, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const unsigned b = i + 1 < n ? from[i + 1] : 0, c = i + 2 < n ? from[i + 2] : 0;
        const unsigned v = (unsigned)from[i] << 16 | b << 8 | c;
        fputc(digit[v >> 18], f);
        fputc(digit[v >> 12 & 63], f);
        fputc(i + 1 < n ? digit[v >> 6 & 63] : '=', f);
        fputc(i + 2 < n ? digit[v & 63] : '=', f);
    }
}

/* ---- fields ------------------------------------------------------------------------------------
 */

const char *keel_role_name(keel_data_role role)
{
    return role == KEEL_ROLE_INPUT ? "input" : role == KEEL_ROLE_TARGET ? "target" : "weight";
}

const char *keel_dtype_name(keel_dtype t)
{
    static const char *const names[] = { "float32", "float64", "uint8", "int32",
                                         "int64",   "bool",    "text" };
    return (unsigned)t < sizeof names / sizeof *names ? names[t] : "?";
}

const char *keel_shape_text(char *out, size_t size, const keel_shape *s)
{
    size_t at = (size_t)snprintf(out, size, "(");
    for (int d = 0; d < s->rank; d++) {
        const char *comma = d ? ", " : "";
        if (s->dim[d] == KEEL_DIM_OPEN)
            at += (size_t)snprintf(out + at, size - at, "%sNone", comma);
        else
            at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, comma, s->dim[d]);
    }
    snprintf(out + at, size - at, s->rank == 1 ? ",)" : ")");
    return out;
}

static bool fields(FILE *f, const keel_page *p)
{
    const keel_dataset *d = p->samples->data;
    bool ok = true;
    fputs("<h2>Fields of a row</h2><table><tr><th>role<th>name<th>type<th>shape</tr>\n", f);
    for (int i = 0; i < keel_dataset_field_count(d); i++) {
        keel_data_field field;
        char shape[160];
        if (keel_dataset_field(d, i, &field) < 0) continue;
        fprintf(f, "<tr><td>%s<td>", keel_role_name(field.role));
        ok = name(f, field.path) && ok;
        fprintf(f, "<td>%s<td>%s</tr>\n", keel_dtype_name(field.dtype),
                keel_shape_text(shape, sizeof shape, &field.shape));
    }
    fputs("</table>\n", f);
    const int64_t n = keel_dataset_class_count(d);
    if (n) fprintf(f, "<p>%" PRId64 " classes: ", n);
    for (int64_t i = 0; i < n && i < 1000; i++) {
        if (i) fputs(", ", f);
        ok = name(f, keel_dataset_class_name(d, i)) && ok;
    }
    if (n) fputs(n > 1000 ? ", ...</p>\n" : "</p>\n", f);
    return ok;
}

/* ---- stages ------------------------------------------------------------------------------------
 */

/* A box a stage, from top to bottom; a bar is as long as its speed over that of the fastest. */
static bool chain(FILE *f, const keel_page *p)
{
    enum { BOX = 200, HIGH = 30, STEP = 46, BAR = 260, WIDE = 700 };
    double most = 0;
    bool ok = true;
    for (int i = 0; i < p->n_stage; i++) most = fmax(most, p->stage[i].rate);
    fprintf(f,
            "<h2>Stages</h2><p class=\"small\">Rows a second, read alone, up to each stage.</p>"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"13\">\n",
            WIDE, p->n_stage * STEP);
    for (int i = 0; i < p->n_stage; i++) {
        const keel_page_stage *s = &p->stage[i];
        const int y = i * STEP;
        char rate[KEEL_NUMBER_MAX];
        if (i)
            fprintf(f, "<path d=\"M%d %dv%d\" stroke=\"#888\" stroke-width=\"2\"/>\n", BOX / 2,
                    y - (STEP - HIGH), STEP - HIGH);
        fprintf(f,
                "<rect x=\"1\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"#eef3fa\" "
                "stroke=\"#7a94b8\"/>\n<text x=\"10\" y=\"%d\">",
                y + 1, BOX - 2, HIGH - 2, y + 20);
        ok = ending(f, s->name, 26) && ok;
        if (s->others) fprintf(f, " (and %d more)", s->others);
        fputs("</text>\n", f);
        if (s->rate < 0) continue;
        const double bar = most > 0 ? BAR * s->rate / most : 0;
        fprintf(f,
                "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"14\" fill=\"#5b8cc9\"/>\n"
                "<text x=\"%.1f\" y=\"%d\">%s rows/s</text>\n",
                BOX + 10, y + 8, bar, BOX + 16 + bar, y + 20,
                s->rate > 0 ? keel_grouped(rate, (int64_t)s->rate) : "no");
    }
    fputs("</svg>\n", f);
    return ok;
}

/* ---- rows --------------------------------------------------------------------------------------
 */

static bool image(FILE *f, const keel_tensor *t, const keel_range *r)
{
    enum { SIDE = 1024 };
    keel_picture p;
    size_t n = 0;
    if (!keel_picture_make(&p, t, r, SIDE, SIDE)) return false;
    unsigned char *png = keel_picture_png(&p, &n);
    if (png) {
        fprintf(f,
                "<img alt=\"\" width=\"%" PRId64 "\" height=\"%" PRId64
                "\" src=\"data:image/png;base64,",
                p.width, p.height);
        base64(f, png, n);
        fputs("\">\n", f);
        if (p.width < t->shape.dim[1] || p.height < t->shape.dim[0])
            fprintf(f,
                    "<div class=\"small\">made smaller: it has %" PRId64 " x %" PRId64
                    " pixels</div>\n",
                    t->shape.dim[1], t->shape.dim[0]);
    }
    free(p.pixel);
    free(png);
    return png != NULL;
}

/* A curve of the least and most of the frames of each column of pixels, for each channel. */
static void sound(FILE *f, const keel_tensor *t, const keel_range *r)
{
    enum { WIDE = 480, HIGH = 80 };
    const int64_t frames = t->shape.dim[0];
    const int channels = t->shape.rank == 2 ? (int)t->shape.dim[1] : 1;
    const int64_t columns = frames < WIDE ? frames : WIDE;
    const double span = r->white > r->black ? r->white - r->black : 1;
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">\n", WIDE,
            HIGH * channels);
    for (int c = 0; c < channels; c++) {
        fputs("<path fill=\"none\" stroke=\"#3a6ea5\" d=\"", f);
        for (int64_t x = 0; x < columns; x++) {
            double least = INFINITY, most = -INFINITY;
            for (int64_t i = x * frames / columns; i < (x + 1) * frames / columns; i++) {
                const double v = keel_value(t, i * channels + c);
                least = v < least ? v : least;
                most = v > most ? v : most;
            }
            if (!isfinite(least) || !isfinite(most)) continue;
            const double at = (double)x * WIDE / (double)columns;
            fprintf(f, "M%.1f %.1fV%.1f", at, (c + 1 - (most - r->black) / span) * HIGH - 0.5,
                    (c + 1 - (least - r->black) / span) * HIGH + 0.5);
        }
        fputs("\"/>\n", f);
    }
    fputs("</svg>\n", f);
}

static bool values(FILE *f, const keel_dataset *d, const keel_data_field *field,
                   const keel_tensor *t)
{
    enum { NUMBERS = 12, TEXTS = 8, BYTES = 2000 };
    const int64_t n = keel_value_count(t), most = t->dtype == KEEL_STRING ? TEXTS : NUMBERS;
    const char *class = field->role == KEEL_ROLE_TARGET ? keel_sample_class(d, t) : NULL;
    bool ok = true;
    for (int64_t i = 0; i < n && i < most; i++) {
        if (t->dtype == KEEL_STRING) {
            const keel_string *s = (const keel_string *)t->data + i;
            fputs("<pre>", f);
            ok = text(f, s->data, s->n_bytes, BYTES) && ok;
            fputs("</pre>", f);
        } else {
            fprintf(f, "%s%.7g", i ? " " : "", keel_value(t, i));
        }
    }
    if (n > most) fprintf(f, " ... (%" PRId64 ")", n);
    char number[32];
    snprintf(number, sizeof number, "%.7g", n == 1 && class ? keel_value(t, 0) : -1);
    if (!class || !strcmp(class, number)) return ok;
    fputs(" (", f);
    ok = name(f, class) && ok;
    fputs(")", f);
    return ok;
}

static bool failure(FILE *f, const keel_sample *one)
{
    fprintf(f, "<figure class=\"bad\"><figcaption>%" PRId64 ": failed</figcaption>", one->element);
    const bool ok = name(f, one->why);
    fputs("</figure>\n", f);
    return ok;
}

static bool row(FILE *f, const keel_samples *s, const keel_sample *one, const keel_look *look,
                const keel_range *range)
{
    char label[300];
    bool ok = true, table = false;
    if (!one->field) return failure(f, one);
    fputs("<figure><figcaption>", f);
    escaped(f, keel_sample_label(label, sizeof label, s, one));
    fputs("</figcaption>\n", f);
    for (int i = 0; i < s->n_field; i++) {
        if (look[i] == KEEL_LOOK_IMAGE) ok = image(f, &one->field[i], &range[i]) && ok;
        if (look[i] == KEEL_LOOK_SOUND) sound(f, &one->field[i], &range[i]);
    }
    for (int i = 0; i < s->n_field; i++) {
        keel_data_field field;
        if (look[i] != KEEL_LOOK_VALUES || keel_dataset_field(s->data, i, &field) < 0) continue;
        fputs(table ? "<tr><td>" : "<table><tr><td>", f);
        table = true;
        ok = name(f, field.path) && ok;
        fputs("<td>", f);
        ok = values(f, s->data, &field, &one->field[i]) && ok;
        fputs("</tr>\n", f);
    }
    fputs(table ? "</table></figure>\n" : "</figure>\n", f);
    return ok;
}

static bool rows(FILE *f, const keel_samples *s)
{
    keel_look look[KEEL_FIELDS_MAX];
    keel_range range[KEEL_FIELDS_MAX];
    char what[256];
    bool ok = true;
    fputs("<h2>The first rows</h2>\n", f);
    for (int i = 0; i < s->n_field; i++) {
        keel_data_field field;
        look[i] = keel_samples_look(s, i, &range[i]);
        if (look[i] == KEEL_LOOK_VALUES || keel_dataset_field(s->data, i, &field) < 0) continue;
        fputs("<p class=\"small\">", f);
        ok = name(f, field.path) && ok;
        if (look[i] == KEEL_LOOK_SOUND)
            fprintf(f, ": %.6g to %.6g from bottom to top; values are %.6g to %.6g</p>\n",
                    range[i].black, range[i].white, range[i].least, range[i].most);
        else
            fprintf(f, ": %s</p>\n", keel_range_text(what, sizeof what, &range[i]));
    }
    fputs("<div class=\"rows\">\n", f);
    for (int64_t k = 0; k < s->n; k++) ok = row(f, s, &s->sample[k], look, range) && ok;
    fputs("</div>\n", f);
    return ok;
}

static bool left_out(FILE *f, const keel_page *p)
{
    bool ok = true, any = false;
    for (int64_t k = 0; p->failures && k < p->failures->n; k++) {
        if (p->failures->sample[k].field) continue;
        if (!any) {
            fputs("<h2>Left out by ", f);
            ok = name(f, p->left_out_by) && ok;
            fputs("</h2><p class=\"small\">Among the elements that the first rows come from.</p>"
                  "<div class=\"rows\">\n",
                  f);
        }
        any = true;
        ok = failure(f, &p->failures->sample[k]) && ok;
    }
    if (any) fputs("</div>\n", f);
    return ok;
}

bool keel_page_write(FILE *f, const void *page)
{
    const keel_page *p = page;
    bool ok = true;
    fputs(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
        "style-src 'unsafe-inline'\">\n<title>",
        f);
    ok = name(f, p->name) && ok;
    fprintf(f, "</title><style>%s</style></head><body>\n<h1>", STYLE);
    ok = name(f, p->name) && ok;
    fprintf(f, "</h1><p>%s</p>\n", p->cardinality);
    const char *const notes[] = { p->note, p->report };
    for (int i = 0; i < 2; i++) {
        if (!notes[i] || !*notes[i]) continue;
        fputs("<p>", f);
        ok = name(f, notes[i]) && ok;
        fputs("</p>\n", f);
    }
    ok = fields(f, p) && ok;
    ok = chain(f, p) && ok;
    if (p->samples->n) ok = rows(f, p->samples) && ok;
    ok = left_out(f, p) && ok;
    fputs("</body></html>\n", f);
    return ok && !ferror(f);
}
