/* See gpus_apart.h. */
#include "train/gpus_apart.h"
#include "base/hash.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

static bool see_the_same(const keel_gpus_of *a, const keel_gpus_of *b)
{
    return a->n == b->n && !memcmp(a->id, b->id, (size_t)a->n * sizeof *a->id);
}

/* A process that cannot name its GPUs has none that others could see. */
static bool knows(const keel_gpus_of *x)
{
    bool known = x->n > 0;
    for (int64_t i = 0; i < x->n; i++) known = known && x->id[i];
    return known;
}

static keel_gpus_of look(void)
{
    keel_gpu gpu[KEEL_GPUS_MAX];
    keel_gpus_of x = { .n = keel_gpus_find(gpu) };
    for (int64_t i = 0; i < x.n; i++) x.id[i] = gpu[i].id;
    return x;
}

uint64_t keel_gpus_seen(void)
{
    const keel_gpus_of x = look();
    return knows(&x) ? keel_fingerprint(x.id, (size_t)x.n * sizeof *x.id) : 0;
}

keel_status keel_gpus_choose(keel_gpus_of *of, int n)
{
    for (int q = 0; q < n; q++) {
        int64_t before = 0, all = 0;
        if (!of[q].all || !knows(&of[q])) continue;
        for (int p = 0; p < n; p++) {
            if (!of[p].all || !see_the_same(&of[p], &of[q])) continue;
            before += p < q;
            all++;
        }
        if (all > of[q].n)
            return keel_fail(KEEL_EARG,
                             "%lld processes see the same %lld %s: start no more than one for "
                             "each, or one that uses all of them",
                             (long long)all, (long long)of[q].n, of[q].n == 1 ? "GPU" : "GPUs");
        for (int64_t i = of[q].n * before / all; i < of[q].n * (before + 1) / all; i++)
            of[q].chosen |= UINT64_C(1) << i;
    }
    return KEEL_OK;
}

static bool uses(const keel_gpus_of *x, uint64_t id)
{
    bool any = false;
    for (int64_t i = 0; i < x->n; i++) any = any || (x->chosen >> i & 1 && x->id[i] == id);
    return any;
}

bool keel_gpus_shared(const keel_gpus_of *of, int n, int *first, int *second)
{
    for (*second = 1; *second < n; ++*second)
        for (*first = 0; *first < *second; ++*first)
            for (int64_t i = 0; i < of[*first].n; i++)
                if (of[*first].chosen >> i & 1 && of[*first].id[i] &&
                    uses(&of[*second], of[*first].id[i]))
                    return true;
    return false;
}

/* "cuda:2-3", with what is behind GPUs. */
static void write_text(char text[KEEL_GPUS_TEXT_MAX], const keel_gpus_of *x, const char *beside)
{
    const int first = __builtin_ctzll(x->chosen), last = 63 - __builtin_clzll(x->chosen);
    const int at = first == last ? snprintf(text, KEEL_GPUS_TEXT_MAX, "cuda:%d", first)
                                 : snprintf(text, KEEL_GPUS_TEXT_MAX, "cuda:%d-%d", first, last);
    if (beside) snprintf(text + at, KEEL_GPUS_TEXT_MAX - (size_t)at, ",%s", beside);
}

keel_status keel_gpus_apart(keel_comm *c, const char **devices, char text[KEEL_GPUS_TEXT_MAX],
                            char shared[KEEL_GPUS_TEXT_MAX])
{
    const int n = c->group.count, me = c->group.rank;
    keel_gpus_text said = { 0 };
    char a[KEEL_COMM_NAME_MAX], b[KEEL_COMM_NAME_MAX];
    keel_gpus_of *of = keel_calloc((size_t)n, sizeof *of);
    int first, second;
    *shared = 0;
    const int64_t named = keel_gpus_named(*devices);
    int64_t all[KEEL_PROCESSES_MAX];
    bool any = false;
    keel_status s = keel_comm_agree(c, of ? KEEL_OK : KEEL_ENOMEM, &named, 1, all);
    for (int q = 0; q < n && s >= 0; q++) any = any || all[q];
    if (s < 0 || !any) goto out;
    if (named) {
        of[me] = look();
        (void)keel_gpus_read(&said,
                             *devices); /* who opens the devices says what is wrong with it */
        of[me].chosen = said.numbers;
        of[me].all = said.all;
    }
    s = keel_comm_all_gather_equal(c, of, sizeof *of);
    for (int q = 0; q < n && s >= 0; q++)
        if (of[q].n < 0 || of[q].n > KEEL_GPUS_MAX)
            s = keel_fail(KEEL_EREMOTE, "process %d has %lld GPUs", q, (long long)of[q].n);
    if (s >= 0) s = keel_gpus_choose(of, n);
    if (s < 0) goto out;
    if (of[me].all && of[me].chosen) {
        write_text(text, &of[me], said.beside);
        *devices = text;
    }
    if (keel_gpus_shared(of, n, &first, &second))
        snprintf(shared, KEEL_GPUS_TEXT_MAX,
                 "%s and %s use the same GPU, which does their work in turns; give each its own "
                 "(CUDA_VISIBLE_DEVICES), or start one process a machine",
                 keel_comm_name(c, first, a), keel_comm_name(c, second, b));
out:
    keel_free(of);
    return s;
}
