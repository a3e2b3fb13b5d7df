/* See progress.h. The live line is drawn at most ten times a second and is never wider than the
 * terminal: its least important parts are left out first. The time left is estimated from the time
 * per row so far, including validation. */
#include "progress.h"
#include "processes.h"
#include "voice.h"
#include <langinfo.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double DRAW_EVERY = 0.1, PRINT_EVERY = 5;
enum { BAR = 20 };

double keel_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double began;

__attribute__((constructor)) static void begin(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    began = keel_now() - (double)t.tv_sec - 1e-9 * (double)t.tv_nsec;
}

double keel_since_start(void)
{
    return keel_now() - began;
}

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    static const char text[] =
        "\nkeel: stopping after this step; press Ctrl-C again to quit at once\n";
    (void)signal;
    interrupted = 1;
    if (keel_processes_first()) keel_voice_cry(text, sizeof text - 1);
}

void keel_interrupt_catch(void)
{
    struct sigaction a = { .sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART };
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
}

void keel_interrupt(void)
{
    interrupted = 1;
}

bool keel_interrupted(void)
{
    return interrupted;
}

/* ---- parts of a line ------------------------------------------------------------------------- */

typedef struct piece {
    char text[128];
    int width; /* columns */
    int keep;  /* priority: if the line is too wide, the lowest is dropped first; 0: not shown */
} piece;

typedef struct line {
    int n;
    piece piece[KEEL_LOGS_MAX + 8];
} line;

/* One line is made at a time. It is larger than some stacks. */
static line *empty_line(void)
{
    static line l;
    l.n = 0;
    return &l;
}

static piece *add(line *l, int keep)
{
    piece *p = &l->piece[l->n < KEEL_LOGS_MAX + 7 ? l->n++ : l->n];
    p->keep = keep;
    return p;
}

static void put(line *l, int keep, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put(line *l, int keep, const char *format, ...)
{
    va_list ap;
    piece *p = add(l, keep);
    va_start(ap, format);
    vsnprintf(p->text, sizeof p->text, format, ap);
    va_end(ap);
    keel_printable(p->text, sizeof p->text, p->text); /* a name may end inside a character */
    p->width = (int)strlen(p->text);
}

static void put_bar(line *l, double done)
{
    const bool fine = !strcmp(nl_langinfo(CODESET), "UTF-8");
    piece *p = add(l, 1);
    char *to = p->text;
    const int full = (int)(done * BAR + 0.5);
    for (int i = 0; i < BAR; i++) {
        const char *cell = fine ? i < full ? "\u2501" : "\u2504" : i < full ? "=" : ".";
        to += sprintf(to, "%s", cell);
    }
    p->width = BAR;
}

static void put_logs(line *l, const keel_logs *logs)
{
    for (int i = 0; i < logs->count; i++)
        put(l, i == 0 ? 8 : 5,
            fabs(logs->value[i]) < 1e-3 && logs->value[i] != 0 ? "%s %.2e" : "%s %.4f",
            logs->name[i], logs->value[i]);
}

static int width(const line *l)
{
    int sum = 0;
    for (int i = 0; i < l->n; i++)
        if (l->piece[i].keep) sum += l->piece[i].width + 2;
    return sum - 2;
}

static void print(FILE *f, const line *l)
{
    const char *between = "";
    for (int i = 0; i < l->n; i++) {
        if (!l->piece[i].keep) continue;
        fprintf(f, "%s%s", between, l->piece[i].text);
        between = "  ";
    }
}

static void fit_to(line *l, int columns)
{
    while (width(l) > columns) {
        int least = -1;
        for (int i = 0; i < l->n; i++) /* among equal priorities, the last */
            if (l->piece[i].keep && (least < 0 || l->piece[i].keep <= l->piece[least].keep))
                least = i;
        if (least < 0) return;
        l->piece[least].keep = 0;
    }
}

/* ---- current numbers ------------------------------------------------------------------------- */

/* What epochs before this one are of the whole run. */
static double fraction_before(const keel_moment *p)
{
    return p->epochs > 0 ? (double)p->epoch / (double)p->epochs : 0;
}

/* The finished fraction of the whole run, 0 to 1; below 0: not known. */
static double fraction(const keel_moment *p)
{
    const double part = p->all_rows > 0 ? (double)p->rows / (double)p->all_rows
                        : p->steps > 0  ? (double)p->step / (double)p->steps
                                        : -1;
    if (part < 0) return -1;
    const double epochs = p->epochs > 0 ? (double)p->epochs : 1;
    return fraction_before(p) + (part < 1 ? part : 1) / epochs;
}

static void put_epoch(line *l, const keel_moment *p)
{
    if (p->epochs > 0) put(l, 9, "epoch %lld/%lld", (long long)p->epoch + 1, (long long)p->epochs);
}

static void put_step(line *l, const keel_moment *p)
{
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX];
    if (p->steps > 0)
        put(l, 7, "step %s/%s", keel_grouped(a, p->step), keel_grouped(b, p->steps));
    else
        put(l, 7, "step %s", keel_grouped(a, p->step));
}

static void put_speed(line *l, const keel_moment *p)
{
    char a[KEEL_NUMBER_MAX];
    if (p->seconds > 0)
        put(l, 6, "%s rows/s", keel_grouped(a, (int64_t)((double)p->rows / p->seconds + 0.5)));
}

static void put_left(line *l, const keel_meter *m, const keel_moment *p, double now)
{
    char a[KEEL_NUMBER_MAX];
    const double f = fraction(p), done = f - m->from;
    if (m->validates && p->training && p->step == p->steps)
        put(l, 4, "validating");
    else if (done > 0)
        put(l, 7, "%s left", keel_seconds_text(a, (now - m->start) * (1 - f) / done));
}

/* Of the last steps, with the stage that they waited for, if that is much. */
static void put_waiting(line *l, const keel_moment *p)
{
    if (p->wait_share > 0.05 && p->late && *p->late)
        put(l, 3, "waits for input %.0f%%: %s", 100 * p->wait_share, p->late);
}

static void put_waited(line *l, const keel_moment *p)
{
    const double part = p->seconds > 0 ? p->waited / p->seconds : 0;
    if (part >= 0.02) put(l, 3, "%.0f%% waiting for input", 100 * part);
}

static void make_running(line *l, const keel_meter *m, const keel_moment *p, double now)
{
    put_epoch(l, p);
    if (m->live && p->all_rows > 0) put_bar(l, (double)p->rows / (double)p->all_rows);
    put_step(l, p);
    put_speed(l, p);
    put_logs(l, p->logs);
    put_left(l, m, p, now);
    put_waiting(l, p);
}

static void make_epoch(line *l, const keel_moment *p)
{
    char a[KEEL_NUMBER_MAX], b[KEEL_NUMBER_MAX];
    put_epoch(l, p);
    put(l, 7, "%s %s, %s %s", keel_grouped(a, p->step), p->step == 1 ? "step" : "steps",
        keel_grouped(b, p->rows), p->rows == 1 ? "row" : "rows");
    put(l, 7, "%s", keel_seconds_text(a, p->seconds));
    put_speed(l, p);
    put_logs(l, p->logs);
    put_waited(l, p);
}

/* ---- the callback ---------------------------------------------------------------------------- */

void keel_meter_clear(keel_meter *m)
{
    if (m->drawn) fputs("\r\033[K", stderr);
    m->drawn = false;
}

void keel_meter_devices(void *meter, const char *note)
{
    keel_meter_clear(meter);
    printf("devices  %s\n", note);
    fflush(stdout);
}

static int columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 10 ? w.ws_col - 1 : 79;
}

static keel_status go_on(void)
{
    return interrupted ? KEEL_END : KEEL_OK;
}

static keel_status on_epoch_end(void *context, const keel_moment *p)
{
    keel_meter *m = context;
    line *l = empty_line();
    keel_meter_clear(m);
    make_epoch(l, p);
    print(stdout, l);
    putchar('\n');
    fflush(stdout);
    m->last = keel_now();
    return go_on();
}

/* Epochs and steps of earlier runs took no time of this one. */
static void begin_run(keel_meter *m, const keel_moment *p, double now)
{
    const bool whole = p->step == 1; /* else it goes on within an epoch */
    m->start = whole ? now - p->seconds : now;
    m->from = whole ? fraction_before(p) : fraction(p);
}

static keel_status on_step(void *context, const keel_moment *p)
{
    keel_meter *m = context;
    const double now = keel_now();
    const bool last = p->steps > 0 && p->step == p->steps;
    line *l = empty_line();
    if (m->start == 0) begin_run(m, p, now);
    m->step = p->step;
    m->rows = p->rows;
    if (m->live && (now - m->last >= DRAW_EVERY || last)) {
        make_running(l, m, p, now);
        fit_to(l, columns());
        keel_meter_clear(m);
        print(stderr, l);
        m->drawn = true;
        m->last = now;
    } else if (!m->live && m->last == 0) {
        m->last = now; /* seconds count from the first step */
    } else if (!m->live && now - m->last >= PRINT_EVERY) {
        make_running(l, m, p, now);
        print(stdout, l);
        putchar('\n');
        fflush(stdout);
        m->last = now;
    }
    return go_on();
}

/* During fit the line shows already that this is validation. */
static keel_status on_test_step(void *context, const keel_moment *p)
{
    return p->fits ? go_on() : on_step(context, p);
}

static keel_status on_test_begin(void *context, const keel_moment *p)
{
    (void)context;
    (void)p;
    return go_on();
}

void keel_meter_begin(keel_meter *m, bool validates)
{
    *m = (keel_meter){ .live = keel_processes_first() && isatty(STDERR_FILENO),
                       .validates = validates };
    m->callback = (keel_callback){ KEEL_CALLBACK,
                                   .name = "display",
                                   .context = m,
                                   .on_epoch_end = on_epoch_end,
                                   .on_train_batch_end = on_step,
                                   .on_test_begin = on_test_begin,
                                   .on_test_batch_end = on_test_step,
                                   .on_predict_batch_end = on_step };
}
