/* See curve.h. All axes of machines are logarithmic, and so are rows a second: equal efficiency is
 * a parallel to the dashed line. Steps are stacked bars. */
#include "curve.h"
#include <math.h>

enum { WIDE = 900, HIGH = 420, TOP = 76, BOTTOM = 354, PANEL = 330, LEFT = 86, SECOND = 526 };

static void escaped(FILE *f, const char *text)
{
    char safe[512];
    for (const char *c = keel_printable(safe, sizeof safe, text); *c; c++)
        if (*c == '<' || *c == '>' || *c == '&')
            fputs(*c == '<' ? "&lt;" : *c == '>' ? "&gt;" : "&amp;", f);
        else
            fputc(*c, f);
}

static void label(FILE *f, double x, double y, const char *kind, const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, kind);
    escaped(f, text);
    fputs("</text>\n", f);
}

static const char *short_number(char out[32], double n)
{
    const char *unit = n >= 1e9 ? " G" : n >= 1e6 ? " M" : n >= 1e3 ? " k" : "";
    const double by = n >= 1e9 ? 1e9 : n >= 1e6 ? 1e6 : n >= 1e3 ? 1e3 : 1;
    snprintf(out, 32, "%.3g%s", n / by, unit);
    return out;
}

/* ---- scales ---------------------------------------------------------------------------------- */

typedef struct scale {
    double least, most; /* values at the two ends */
    double from, to;    /* their places */
    bool log;
} scale;

static double place(const scale *s, double v)
{
    const double a = s->log ? log(s->least) : s->least, b = s->log ? log(s->most) : s->most;
    const double x = s->log ? log(v) : v;
    return s->from + (b > a ? (x - a) / (b - a) : 0.5) * (s->to - s->from);
}

/* Points from the first machine on: the one that all are compared with is shown, too. */
static int count(const keel_simulation *s)
{
    return s->count + (s->point[0].machines > 1);
}

static const keel_simulated *at(const keel_simulation *s, int i)
{
    const int first = s->point[0].machines > 1;
    return i < first ? &s->one : &s->point[i - first];
}

static scale machines_of(const keel_simulation *s, double from)
{
    scale x = { 1, 1, from, from + PANEL, true };
    for (int i = 0; i < count(s); i++)
        if (at(s, i)->machines > x.most) x.most = at(s, i)->machines;
    return x;
}

/* ---- panels ---------------------------------------------------------------------------------- */

static void machines_axis(FILE *f, const keel_simulation *s, const scale *x)
{
    char text[32];
    double last = -100;
    fprintf(f, "<path d=\"M%g %d H%g\" class=\"axis\"/>\n", x->from, BOTTOM, x->to);
    for (int i = 0; i < count(s); i++) {
        const double px = place(x, at(s, i)->machines);
        if (fabs(px - last) < 24) continue;
        last = px;
        snprintf(text, sizeof text, "%d", at(s, i)->machines);
        label(f, px, BOTTOM + 18, "mid", text);
    }
    label(f, (x->from + x->to) / 2, BOTTOM + 38, "mid", "machines");
}

static void grid_line(FILE *f, const scale *x, double y, const char *text)
{
    fprintf(f, "<path d=\"M%g %.1f H%g\" class=\"grid\"/>\n", x->from, y, x->to);
    label(f, x->from - 6, y + 4, "end", text);
}

static void rates(FILE *f, const keel_simulation *s)
{
    const scale x = machines_of(s, LEFT);
    scale y = { INFINITY, 0, BOTTOM, TOP + 10, true };
    char text[32];
    for (int i = 0; i < count(s); i++) {
        const double ideal = s->one.rows_per_second * at(s, i)->machines;
        y.most = fmax(y.most, fmax(ideal, at(s, i)->rows_per_second));
        y.least = fmin(y.least, at(s, i)->rows_per_second);
    }
    y.least = pow(10, floor(log10(y.least)));
    y.most = fmax(y.most, 10 * y.least);
    for (double v = y.least; v <= y.most * 1.001; v *= 10)
        grid_line(f, &x, place(&y, v), short_number(text, v));
    machines_axis(f, s, &x);
    label(f, LEFT, TOP - 6, "name", "rows a second; dashed: machines times that of one");
    fputs("<path class=\"ideal\" d=\"", f);
    for (int i = 0; i < count(s); i++)
        fprintf(f, "%s%.1f %.1f", i ? " L" : "M", place(&x, at(s, i)->machines),
                place(&y, s->one.rows_per_second * at(s, i)->machines));
    fputs("\"/>\n<path class=\"line\" d=\"", f);
    for (int i = 0; i < count(s); i++)
        fprintf(f, "%s%.1f %.1f", i ? " L" : "M", place(&x, at(s, i)->machines),
                place(&y, at(s, i)->rows_per_second));
    fputs("\"/>\n", f);
    for (int i = 0; i < count(s); i++)
        fprintf(f, "<circle class=\"dot\" r=\"3\" cx=\"%.1f\" cy=\"%.1f\"/>\n",
                place(&x, at(s, i)->machines), place(&y, at(s, i)->rows_per_second));
}

static void bar(FILE *f, const char *kind, double x, double wide, double bottom, double top)
{
    fprintf(f, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", kind,
            x - wide / 2, top, wide, bottom - top);
}

static void steps(FILE *f, const keel_simulation *s)
{
    const int n = count(s);
    scale y = { 0, 0, BOTTOM, TOP + 24, false };
    const scale x = { 0, n, SECOND, SECOND + PANEL, false };
    const double each = (double)PANEL / n;
    char text[32];
    for (int i = 0; i < n; i++) y.most = fmax(y.most, 1e3 * at(s, i)->step_seconds);
    const double tick = pow(10, floor(log10(y.most))), by = y.most / tick >= 5   ? 2 * tick
                                                            : y.most / tick >= 2 ? tick
                                                                                 : tick / 2;
    for (double v = 0; v <= y.most; v += by) {
        snprintf(text, sizeof text, "%g", v);
        grid_line(f, &x, place(&y, v), text);
    }
    label(f, SECOND, TOP - 6, "name", "ms a step: compute, exchanges; above: efficiency");
    fprintf(f, "<path d=\"M%g %d H%g\" class=\"axis\"/>\n", x.from, BOTTOM, x.to);
    for (int i = 0; i < n; i++) {
        const keel_simulated *p = at(s, i);
        const double px = place(&x, i + 0.5);
        const double compute = place(&y, 1e3 * p->compute_seconds);
        const double all = place(&y, 1e3 * p->step_seconds);
        bar(f, "compute", px, 0.7 * each, BOTTOM, compute);
        bar(f, "exchange", px, 0.7 * each, compute, all);
        if (each < 22 && i % 2 && i != n - 1) continue;
        snprintf(text, sizeof text, "%.0f%%", 100 * p->efficiency);
        label(f, px, all - 5, "mid", text);
        snprintf(text, sizeof text, "%d", p->machines);
        label(f, px, BOTTOM + 18, "mid", text);
    }
    label(f, SECOND + PANEL / 2, BOTTOM + 38, "mid", "machines");
}

static void draw(FILE *f, const keel_curve *c)
{
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n<style>text{font-family:sans-serif;font-size:12px;fill:#222}"
            ".title{font-size:15px;font-weight:bold}.name{font-weight:bold}.mid{text-anchor:middle}"
            ".end{text-anchor:end}.axis{stroke:#444}.grid{stroke:#ddd}.line{stroke:#1f5fa8;"
            "stroke-width:2;fill:none}.ideal{stroke:#888;stroke-dasharray:5 4;fill:none}"
            ".dot{fill:#1f5fa8}.compute{fill:#5b8fc7}.exchange{fill:#d98a3d}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDE, HIGH, WIDE, HIGH);
    label(f, 16, 24, "title", c->title);
    label(f, 16, 44, "sub", c->subtitle);
    rates(f, c->s);
    steps(f, c->s);
    fputs("</svg>\n", f);
}

bool keel_curve_svg(FILE *f, const void *curve)
{
    draw(f, curve);
    return !ferror(f);
}

bool keel_curve_html(FILE *f, const void *curve)
{
    const keel_curve *c = curve;
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX];
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'\">\n<title>",
          f);
    escaped(f, c->title);
    fputs(
        "</title>\n<style>body{font-family:sans-serif;max-width:960px;margin:24px auto}"
        "table{border-collapse:collapse}td,th{padding:3px 10px;text-align:right;border-bottom:1px "
        "solid #ddd}svg{max-width:100%;height:auto}</style></head><body>\n",
        f);
    draw(f, c);
    fputs("<table>\n<tr><th>machines</th><th>processes</th><th>rows a process</th><th>compute "
          "ms</th><th>exchanges</th><th>sent a process</th><th>exchanges ms</th><th>step "
          "ms</th><th>rows/s</th><th>efficiency</th><th>memory a process</th></tr>\n",
          f);
    for (int i = 0; i < count(c->s); i++) {
        const keel_simulated *p = at(c->s, i);
        fprintf(f,
                "<tr><td>%d</td><td>%d</td><td>%lld</td><td>%.3f</td><td>%d</td><td>%s</td>"
                "<td>%.3f</td><td>%.3f</td><td>%.0f</td><td>%.1f %%</td><td>%s</td></tr>\n",
                p->machines, p->processes, (long long)p->rows, 1e3 * p->compute_seconds,
                p->exchanges, keel_size_text(a, p->sent_bytes), 1e3 * p->exchange_seconds,
                1e3 * p->step_seconds, p->rows_per_second, 100 * p->efficiency,
                keel_size_text(b, p->memory_bytes));
    }
    fputs("</table>\n<p>", f);
    escaped(f,
            "A prediction: compute is measured on one machine, exchanges follow from the numbers "
            "of the network above.");
    fputs("</p></body></html>\n", f);
    return !ferror(f);
}
