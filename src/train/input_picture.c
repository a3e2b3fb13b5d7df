/* Draws an input as SVG: the stages from left to right as rows go through them, the steps at the
 * end. A box says what one thread could give alone, the share of the work, and the size of a row;
 * the stage that steps wait for most is red. */
#include "base/c_locale.h"
#include "base/text.h"
#include "io/file.h"
#include "train/input.h"
#include "train/input_advice.h"
#include <stdio.h>
#include <string.h>

enum {
    PER_LINE = 5,
    WIDE = 190,
    HIGH = 112,
    GAP = 26,
    EDGE = 16,
    TOP = 64,
    LENGTH_MAX = 256,
    TEXT_MAX = 5 * LENGTH_MAX + 8 /* "&amp;" */
};

/* Names come from files. */
static const char *safe(char out[TEXT_MAX], const char *text)
{
    char plain[LENGTH_MAX];
    size_t n = 0;
    for (const char *c = keel_printable(plain, sizeof plain, text); *c && n < TEXT_MAX - 8; c++) {
        const char *word = *c == '<' ? "&lt;" : *c == '>' ? "&gt;" : *c == '&' ? "&amp;" : NULL;
        if (word) {
            memcpy(out + n, word, strlen(word));
            n += strlen(word);
        } else {
            out[n++] = *c;
        }
    }
    out[n] = 0;
    return out;
}

static void add_line(keel_text *t, int x, int y, const char *kind, const char *text)
{
    char to[TEXT_MAX];
    keel_text_add(t, "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, kind,
                  safe(to, text));
}

/* 1234567 as 1.23 M. */
static void short_number(char out[32], double n)
{
    const char *unit = n >= 1e9 ? " G" : n >= 1e6 ? " M" : n >= 1e3 ? " k" : "";
    const double by = n >= 1e9 ? 1e9 : n >= 1e6 ? 1e6 : n >= 1e3 ? 1e3 : 1;
    keel_snprintf(out, 32, "%.3g%s", n / by, unit);
}

static void add_box(keel_text *t, int i, const char *kind, const char *name, char line[4][96])
{
    const int x = EDGE + i % PER_LINE * (WIDE + GAP), y = TOP + i / PER_LINE * (HIGH + GAP);
    char head[32];
    keel_snprintf(head, sizeof head, "%.30s", name);
    keel_text_add(t, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" class=\"%s\"/>\n",
                  x, y, WIDE, HIGH, kind);
    add_line(t, x + 10, y + 22, "name", head);
    for (int k = 0; k < 4; k++) add_line(t, x + 10, y + 42 + 18 * k, "is", line[k]);
    if (i % PER_LINE)
        keel_text_add(t, "<path d=\"M%d %d h%d m-7 -5 l7 5 l-7 5\" class=\"way\"/>\n", x - GAP + 3,
                      y + HIGH / 2, GAP - 6);
}

static void add_stage(keel_text *t, const keel_input_stats *in, const keel_input_stage *s, int i,
                      bool late)
{
    char line[4][96] = { "", "", "", "" }, rate[32], each[32];
    short_number(rate, s->seconds > 0 ? s->rows / s->seconds : 0);
    short_number(each, (double)s->row_bytes);
    if (s->rows > 0 && s->seconds > 0)
        keel_snprintf(line[0], sizeof line[0], "%s/s and thread, %.3g us", rate,
                      1e6 * s->seconds / s->rows);
    keel_snprintf(line[1], sizeof line[1], "%.1f %% of the work",
                  in->work > 0 ? 100 * s->seconds / in->work : 0);
    if (s->row_bytes)
        keel_snprintf(line[2], sizeof line[2], "%sB a row, %s", each,
                      s->parallel ? "any thread" : "one thread");
    if (s->waited > 0)
        keel_snprintf(line[3], sizeof line[3], "steps waited %.3g s for it", s->waited);
    add_box(t, i, late ? "late" : "stage", s->name, line);
}

static void add_steps(keel_text *t, const keel_input_stats *in, int i)
{
    char line[4][96];
    const double n = in->steps > 0 ? (double)in->steps : 1;
    keel_snprintf(line[0], sizeof line[0], "%.3g ms a step", 1e3 * in->seconds / n);
    keel_snprintf(line[1], sizeof line[1], "%.3g ms of it waiting: %.1f %%", 1e3 * in->waited / n,
                  in->seconds > 0 ? 100 * in->waited / in->seconds : 0);
    keel_snprintf(line[2], sizeof line[2], "%d worker%s of %d core%s", in->workers,
                  in->workers == 1 ? "" : "s", in->cores, in->cores == 1 ? "" : "s");
    keel_snprintf(line[3], sizeof line[3], "%d batch%s ahead", in->batches,
                  in->batches == 1 ? "" : "es");
    add_box(t, i, "steps", "steps", line);
}

static void add_head(keel_text *t, const keel_input_stats *in)
{
    char line[256], used[32], peak[32], limit[32];
    short_number(used, (double)in->memory);
    short_number(peak, (double)in->memory_peak);
    short_number(limit, (double)in->memory_limit);
    keel_snprintf(line, sizeof line, "input of %lld steps: %d thread%s, %.3g s of work",
                  (long long)in->steps, in->threads, in->threads == 1 ? "" : "s", in->work);
    add_line(t, EDGE, 26, "name", line);
    keel_snprintf(line, sizeof line, "memory %sB, at most %sB%s%s%s", used, peak,
                  in->memory_limit ? " of " : "", in->memory_limit ? limit : "",
                  in->memory_limit ? "B" : "");
    add_line(t, EDGE, 46, "is", line);
}

keel_status keel_input_draw(const keel_input_stats *in, const char *path)
{
    const keel_input_stage *late = keel_input_latest(in);
    const int n = in->n_stage + 1, lines = (n + PER_LINE - 1) / PER_LINE;
    const int wide = 2 * EDGE + (n < PER_LINE ? n : PER_LINE) * (WIDE + GAP);
    const int below = TOP + lines * (HIGH + GAP);
    const double waits = in->seconds > 0 ? in->waited / in->seconds : 0;
    char text[KEEL_INPUT_TEXT_MAX], what[256];
    keel_text t = { 0 };
    if (!path) return keel_fail(KEEL_EARG, "input picture: path must not be NULL");
    keel_text_add(&t,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">\n<style>"
                  "text{font-family:sans-serif;font-size:12px;fill:#222}.name{font-weight:bold}"
                  "rect{stroke:#555;fill:#eef3f8}.late{fill:#f6c8c2;stroke:#b3261e}"
                  ".steps{fill:#e3f1e3}.way{stroke:#555;fill:none}</style>\n"
                  "<rect width=\"100%%\" height=\"100%%\" style=\"fill:#fff;stroke:none\"/>\n",
                  wide < 560 ? 560 : wide, below + 24 * (in->n_remedy + 2));
    add_head(&t, in);
    for (int i = 0; i < in->n_stage; i++)
        add_stage(&t, in, &in->stage[i], i, &in->stage[i] == late && waits >= 0.01);
    add_steps(&t, in, in->n_stage);
    if (*keel_input_text(in, text)) {
        char *rest = strstr(text, ". Predicted");
        if (rest) *rest = 0;
        add_line(&t, EDGE, below + 12, "name", text);
        for (int i = 0; i < in->n_remedy; i++) {
            keel_snprintf(what, sizeof what, "%s: %.2f times as fast", in->remedy[i].what,
                          in->remedy[i].factor);
            add_line(&t, EDGE, below + 36 + 20 * i, "is", what);
        }
    } else {
        add_line(&t, EDGE, below + 12, "is", "steps do not wait for their rows");
    }
    keel_text_add(&t, "</svg>\n");
    const keel_status s = t.failed ? KEEL_ENOMEM : keel_file_write(path, t.data, t.length);
    keel_text_free(&t);
    return s;
}
