/* See window.h. A window of m numbers is a function of m and t, from 0 to m - 1; most are of
 * x = 2 t / (m - 1) - 1, from -1 to 1. */
#include "initializers/window.h"
#include <math.h>
#include <string.h>

typedef double (*window_at)(int64_t m, int64_t t);

static double place(int64_t m, int64_t t)
{
    return m > 1 ? 2 * (double)t / (double)(m - 1) - 1 : 0;
}

static double barthann(int64_t m, int64_t t)
{
    const double from_middle = fabs((double)t / (double)(m - 1) - 0.5);
    return 0.62 - 0.48 * from_middle + 0.38 * cos(2 * M_PI * from_middle);
}

static double bartlett(int64_t m, int64_t t)
{
    return 1 - fabs(place(m, t));
}

static double bohman(int64_t m, int64_t t)
{
    const double x = fabs(place(m, t));
    if (t == 0 || t == m - 1) return 0;
    return (1 - x) * cos(M_PI * x) + sin(M_PI * x) / M_PI;
}

static double cosine(int64_t m, int64_t t)
{
    return sin(M_PI / (double)m * ((double)t + 0.5));
}

static double exponential(int64_t m, int64_t t)
{
    return exp(-fabs((double)t - (double)(m - 1) / 2));
}

static double lanczos(int64_t m, int64_t t)
{
    const double x = M_PI * place(m, t);
    return x == 0 ? 1 : sin(x) / x;
}

static double parzen(int64_t m, int64_t t)
{
    const double n = fabs((double)t - (double)(m - 1) / 2), part = n / ((double)m / 2);
    return n <= (double)(m - 1) / 4 ? 1 - 6 * pow(part, 2) + 6 * pow(part, 3)
                                    : 2 * pow(1 - part, 3);
}

/* Four terms, and side lobes 30 dB below the main one: what SciPy takes if the name stands alone.
 * The middle is 1. (Carrara, Goodman, Majewski 1995, appendix D.) */
static double taylor(int64_t m, int64_t t)
{
    enum { TERMS = 4 };
    const double a = acosh(pow(10, 30. / 20)) / M_PI;
    const double s2 = TERMS * TERMS / (a * a + (TERMS - 0.5) * (TERMS - 0.5));
    double w = 1, middle = 1;
    for (int i = 1; i < TERMS; i++) {
        double f = i % 2 ? 1 : -1;
        for (int k = 1; k < TERMS; k++) {
            f *= 1 - i * i / s2 / (a * a + (k - 0.5) * (k - 0.5));
            if (k != i) f /= 1 - (double)(i * i) / (k * k);
        }
        w += f * cos(2 * M_PI * i * ((double)t - (double)m / 2 + 0.5) / (double)m);
        middle += f;
    }
    return w / middle;
}

static double triangle(int64_t m, int64_t t)
{
    const int64_t side = t < m - 1 - t ? t : m - 1 - t;
    return m % 2 ? 2 * (double)(side + 1) / ((double)m + 1) : (2 * (double)side + 1) / (double)m;
}

static double tukey(int64_t m, int64_t t)
{
    const double alpha = 0.5, x = 2 * (double)t / alpha / (double)(m - 1);
    const int64_t width = (int64_t)floor(alpha * (double)(m - 1) / 2);
    if (t <= width) return 0.5 * (1 + cos(M_PI * (x - 1)));
    return t < m - width - 1 ? 1 : 0.5 * (1 + cos(M_PI * (x + 1 - 2 / alpha)));
}

static const struct window {
    const char *names; /* SciPy's, with a bar between them */
    window_at at;      /* NULL: a sum of cosines, or nothing */
    double a[5];       /* w = sum of a[k] cos(k pi x); all 0: the window has parameters */
} windows[] = {
    { "barthann|brthan|bth", barthann, { 0 } },
    { "bartlett|bart|brt", bartlett, { 0 } },
    { "blackman|black|blk", NULL, { 0.42, 0.5, 0.08 } },
    { "blackmanharris|blackharr|bkh", NULL, { 0.35875, 0.48829, 0.14128, 0.01168 } },
    { "bohman|bman|bmn", bohman, { 0 } },
    { "boxcar|box|ones|rect|rectangular", NULL, { 1 } },
    { "cosine|halfcosine", cosine, { 0 } },
    { "exponential|poisson", exponential, { 0 } },
    { "flattop|flat|flt", NULL, { 0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368 } },
    { "hamming|hamm|ham", NULL, { 0.54, 0.46 } },
    { "hann|han", NULL, { 0.5, 0.5 } },
    { "lanczos|sinc", lanczos, { 0 } },
    { "nuttall|nutl|nut", NULL, { 0.3635819, 0.4891775, 0.1365995, 0.0106411 } },
    { "parzen|parz|par", parzen, { 0 } },
    { "taylor|taylorwin", taylor, { 0 } },
    { "triangle|triang|tri", triangle, { 0 } },
    { "tukey|tuk", tukey, { 0 } },
    { "chebwin|cheb|dpss|gaussian|gauss|gss|general cosine|general_cosine|general gaussian|"
      "general_gaussian|general gauss|general_gauss|ggs|general hamming|general_hamming|kaiser|ksr|"
      "kaiser bessel derived|kaiser_bessel_derived|kbd",
      NULL,
      { 0 } },
};
enum { WINDOWS = sizeof windows / sizeof *windows };

static bool is_among(const char *names, const char *name, size_t n)
{
    for (const char *word = names; word; word = strchr(word, '|')) {
        word += *word == '|';
        if (strcspn(word, "|") == n && !memcmp(word, name, n)) return true;
    }
    return false;
}

/* The name without the ending; false: it does not have it. */
static bool ends_with(const char *name, const char *ending, size_t *n)
{
    const size_t length = strlen(ending);
    if (*n < length || memcmp(name + *n - length, ending, length) != 0) return false;
    *n -= length;
    return true;
}

keel_status keel_window_find(const char *name, keel_window_name *out)
{
    size_t n = strlen(name);
    keel_window_name found = { .symmetric = ends_with(name, "_symmetric", &n) };
    found.periodic = !found.symmetric && ends_with(name, "_periodic", &n);
    for (; found.window < WINDOWS; found.window++) {
        const struct window *w = &windows[found.window];
        if (!is_among(w->names, name, n)) continue;
        if (!w->at && w->a[0] == 0)
            return keel_fail(
                KEEL_EUNSUP,
                "the window '%.60s' has parameters, which a name cannot give: give the "
                "numbers of the window",
                name);
        *out = found;
        return KEEL_OK;
    }
    return keel_fail(KEEL_EUNSUP,
                     "the window '%.60s' is none of SciPy's: barthann, bartlett, blackman, "
                     "blackmanharris, bohman, boxcar, cosine, exponential, flattop, hamming, hann, "
                     "lanczos, nuttall, parzen, taylor, triangle, tukey; or give its numbers",
                     name);
}

double keel_window_by_name(keel_window_name name, bool periodic, int64_t n, int64_t t)
{
    const struct window *w = &windows[name.window];
    const bool one_more = name.periodic || (periodic && !name.symmetric);
    const int64_t m = one_more ? n + 1 : n;
    double sum = 0;
    if (n == 1) return 1;
    if (w->at) return w->at(m, t);
    for (int k = 0; k < 5; k++) sum += w->a[k] * cos(k * M_PI * place(m, t));
    return sum;
}
