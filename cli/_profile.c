/* See profile.h. Times are sums over all workers: the milliseconds of a layer are those of all
 * cores together. */
#include "profile.h"
#include <string.h>

enum { WIDEST = 48 }; /* characters of a name: fused layers have several names */

typedef struct layer {
    const char *name;
    double forward, backward, flops, bytes;
    double most_flops; /* operations at peak rate in the same time */
    const keel_profile_row *longest;
} layer;

/* Add up the rows of a layer, which are consecutive; returns the first row of the next layer. */
static int next_layer(const keel_profile *p, int i, layer *l)
{
    *l = (layer){ .name = p->row[i].layer };
    for (; i < p->count && !strcmp(p->row[i].layer, l->name); i++) {
        const keel_profile_row *r = &p->row[i], *most = l->longest;
        if (!most || r->forward_seconds + r->backward_seconds >
                         most->forward_seconds + most->backward_seconds)
            l->longest = r;
        l->forward += r->forward_seconds;
        l->backward += r->backward_seconds;
        if (r->forward_seconds > 0) l->bytes += r->forward_bytes;
        if (r->backward_seconds > 0) l->bytes += r->backward_bytes;
        l->flops += r->forward_flops + r->backward_flops;
        l->most_flops += (r->forward_seconds + r->backward_seconds) * r->peak_flops;
    }
    return i;
}

static void print_rate(FILE *f, double done, double seconds, double most)
{
    if (done > 0 && seconds > 0)
        fprintf(f, " %8.1f %3.0f %%", 1e-9 * done / seconds, most > 0 ? 100 * done / most : 0);
    else
        fprintf(f, " %8s %5s", "", "");
}

const char keel_profile_above[] =
    "More than 100 %: operations are counted as for a direct convolution by multiply-adds.\n"
    "Winograd convolutions need up to 4 times fewer products, and AMX multiplies float32\n"
    "in pieces.\n";

char *keel_profile_peaks(char out[KEEL_PEAKS_MAX], const keel_profile *p)
{
    char bf16[40] = "";
    if (p->peak_bf16_flops > 0)
        snprintf(bf16, sizeof bf16, " (bfloat16: %.0f)", 1e-9 * p->peak_bf16_flops);
    snprintf(out, KEEL_PEAKS_MAX, "%.0f GFLOP/s%s, %.0f GB/s", 1e-9 * p->peak_flops, bf16,
             1e-9 * p->peak_bytes);
    return out;
}

/* The kernels of the slowest op of a layer: "winograd4_avx512/dnnl/dnnl". */
static void print_kernels(FILE *f, const keel_profile_row *r)
{
    const char *const name[] = { r->forward_kernel, r->backward_kernel, r->weights_kernel };
    int n = 3;
    while (n > 0 && !*name[n - 1]) n--;
    for (int i = 0; i < n; i++) fprintf(f, "%s%s", i ? "/" : "  ", *name[i] ? name[i] : "-");
}

void keel_profile_print(FILE *f, const keel_profile *p)
{
    double all = 0, flops = 0, busy = 0;
    bool above = false, cached = false; /* a rate is above the peak of the core, of the memory */
    const double steps = p->steps > 0 ? (double)p->steps : 1, ms = 1e3 / steps;
    int width = 28;
    char peaks[KEEL_PEAKS_MAX];
    layer l;
    for (int i = 0; i < p->count; i = next_layer(p, i, &l))
        if ((int)strlen(p->row[i].layer) > width) width = (int)strlen(p->row[i].layer);
    if (width > WIDEST) width = WIDEST;
    for (int w = 0; w < p->workers; w++) {
        all += p->call_seconds[w] + p->merge_seconds[w] + p->reduce_seconds[w] +
               p->update_seconds[w] + p->read_seconds[w] + p->wait_seconds[w];
        busy += p->call_seconds[w];
    }
    fprintf(f, "\n%-*s %9s %9s %6s %14s %14s  %s\n", width, "layer, ms per step, all cores",
            "forward", "backward", "share", "GFLOP/s, peak", "GB/s, peak",
            "kernels forward/backward/weights");
    for (int i = 0; i < p->count;) {
        i = next_layer(p, i, &l);
        const double time = l.forward + l.backward;
        char name[WIDEST + 1];
        keel_printable(name, (size_t)width + 1, l.name);
        fprintf(f, "%-*s %9.3f %9.3f %4.1f %%", width, name, ms * l.forward, ms * l.backward,
                all > 0 ? 100 * time / all : 0);
        print_rate(f, l.flops, time, l.most_flops);
        print_rate(f, l.bytes, time, time * p->peak_bytes);
        print_kernels(f, l.longest);
        fputc('\n', f);
        flops += l.flops;
        above = above || l.flops > l.most_flops;
        cached = cached || l.bytes > time * p->peak_bytes;
    }
    for (int w = 0; w < p->workers; w++)
        fprintf(f,
                "worker %-3d %9.3f ms kernels, %.3f rows, %.3f merge, %.3f reduce, %.3f update, "
                "%.3f waiting (%.1f %%)\n",
                w, ms * p->call_seconds[w], ms * p->read_seconds[w], ms * p->merge_seconds[w],
                ms * p->reduce_seconds[w], ms * p->update_seconds[w], ms * p->wait_seconds[w],
                100 * p->wait_seconds[w] / p->step_seconds);
    fprintf(f, "step %.3f ms; kernels %.0f %% of it; %.1f GFLOP/s in total; peak of one core %s\n",
            ms * p->step_seconds, 100 * busy / (p->step_seconds * p->workers),
            1e-9 * flops / p->step_seconds, keel_profile_peaks(peaks, p));
    if (above) fputs(keel_profile_above, f);
    if (cached)
        fputs("GB/s above 100 %: the peak is that of main memory, but these values were in the "
              "cache.\n",
              f);
    if (p->lost_events)
        fprintf(f, "the trace is incomplete: %lld later events did not fit\n",
                (long long)p->lost_events);
}
