/* See lanes.h. hwloc gives the cores of the process's affinity mask, so a container's limit is
 * respected. Nothing is opened, started or allocated on a device. */
#include "device/lanes.h"
#include "device/discover.h"
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static keel_status bad(const char *text, const char *why)
{
    return keel_fail(KEEL_EARG,
                     "devices '%s': %s; write for example cpu:0-3 (four devices), cpu:0+1 (one "
                     "device of two cores) or cpu:0,cpu:1",
                     text, why);
}

enum { NUMBER_MAX = 99999999 };

/* Parse a number; NULL: there is none. A number above NUMBER_MAX becomes NUMBER_MAX + 1. */
static const char *read_number(const char *p, int *out)
{
    long v = 0;
    if (!isdigit((unsigned char)*p)) return NULL;
    for (; isdigit((unsigned char)*p); p++)
        if (v <= NUMBER_MAX) v = v * 10 + (*p - '0');
    *out = v <= NUMBER_MAX ? (int)v : NUMBER_MAX + 1;
    return p;
}

static keel_status add_lane(keel_lanes *l, const char *text, const int *id, int n)
{
    if (l->n_lane == KEEL_LANES_MAX) return bad(text, "more than 256 devices");
    if (l->n_part + n > KEEL_LANES_MAX) return bad(text, "more than 256 cores in all devices");
    keel_lane *lane = &l->lane[l->n_lane++];
    *lane = (keel_lane){ .n_core = n, .first_id = l->n_id, .first_part = l->n_part };
    memcpy(l->id + l->n_id, id, (size_t)n * sizeof *id);
    l->n_id += n;
    l->n_part += n;
    return KEEL_OK;
}

/* One item: 0, 0-3, 0+1 or 0+1+2. */
static keel_status read_item(keel_lanes *l, const char *text, const char **at)
{
    static const char too_large[] = "a number above 99999999";
    int id[KEEL_LANE_CORES_MAX], n = 0, last;
    const char *p = read_number(*at, &id[n++]);
    if (!p) return bad(text, "a device number is missing");
    if (id[0] > NUMBER_MAX) return bad(text, too_large);
    if (*p == '-') {
        p = read_number(p + 1, &last);
        if (!p) return bad(text, "a number is missing after '-'");
        if (last < id[0]) return bad(text, "a range must go up");
        for (int i = id[0]; i <= last; i++) KEEL_TRY(add_lane(l, text, &i, 1));
        *at = p;
        return KEEL_OK;
    }
    while (*p == '+') {
        if (n == KEEL_LANE_CORES_MAX) return bad(text, "more than 64 cores in one device");
        p = read_number(p + 1, &id[n]);
        if (!p) return bad(text, "a core is missing after '+'");
        if (id[n] > NUMBER_MAX) return bad(text, too_large);
        for (int i = 0; i < n; i++)
            if (id[i] == id[n]) return bad(text, "a core is named twice in one device");
        n++;
    }
    *at = p;
    return add_lane(l, text, id, n);
}

/* Each worker but the last ends within a lane at most. */
static keel_status too_many_parts(const keel_lanes *l, const char *text)
{
    return keel_fail(KEEL_EARG,
                     "devices '%s': this machine has %d cores for %d devices, whose rows they "
                     "would compute in more than %d parts: name %d devices at most, or as many as "
                     "a multiple of the cores",
                     text, l->n_worker, l->n_lane, KEEL_LANES_MAX,
                     KEEL_LANES_MAX - l->n_worker + 1);
}

/* More lanes than cores: a part is the overlap of a lane's rows with a worker's, as fractions of a
 * step. */
static keel_status overlap(keel_lanes *l, const char *text)
{
    const int64_t all = keel_lanes_units_before(l, l->n_lane);
    l->n_part = 0;
    for (int i = 0; i < l->n_lane; i++) {
        const int64_t begin = (int64_t)keel_lanes_units_before(l, i) * l->n_worker;
        const int64_t end = (int64_t)keel_lanes_units_before(l, i + 1) * l->n_worker;
        l->lane[i].first_part = l->n_part;
        for (int w = 0; w < l->n_worker; w++) {
            const int64_t w_begin = w * all, w_end = w_begin + all;
            if (begin >= w_end || w_begin >= end) continue;
            if (l->n_part == KEEL_LANES_MAX) return too_many_parts(l, text);
            l->part[l->n_part++] = (keel_lane_part){ .lane = i, .worker = w };
        }
    }
    return KEEL_OK;
}

/* Every core gets a worker. */
static keel_status share_cores(keel_lanes *l, const char *text, const keel_cores *cores)
{
    l->shared = true;
    l->n_worker = cores->n < l->n_lane ? cores->n : l->n_lane;
    for (int w = 0; w < l->n_worker; w++) l->core[w] = cores->os[w];
    return overlap(l, text);
}

/* One worker per core in use. A lane of several cores that do not exist gets the first cores. */
static keel_status assign_workers(keel_lanes *l, const char *text, const keel_cores *cores)
{
    int largest = 0, widest = 1, part = 0, worker_of_core[KEEL_CORES_MAX];
    for (int i = 0; i < l->n_lane; i++)
        if (l->lane[i].n_core > widest) widest = l->lane[i].n_core;
    for (int i = 0; i < l->n_id; i++)
        if (l->id[i] > largest) largest = l->id[i];
    if (widest > cores->n) return bad(text, "a device has more cores than this machine");
    if (largest >= cores->n && widest == 1) return share_cores(l, text, cores);
    for (int i = 0; i < cores->n; i++) worker_of_core[i] = -1;
    for (int i = 0; i < l->n_lane; i++) {
        const keel_lane *lane = &l->lane[i];
        for (int c = 0; c < lane->n_core; c++, part++) {
            const int core = largest < cores->n ? l->id[lane->first_id + c] : c;
            if (worker_of_core[core] < 0) {
                worker_of_core[core] = l->n_worker;
                l->core[l->n_worker++] = cores->os[core];
            }
            l->part[part] = (keel_lane_part){ .lane = i, .worker = worker_of_core[core] };
        }
    }
    return KEEL_OK;
}

static void be_alone(keel_lanes *l)
{
    l->n_process = 1;
    l->all_lanes = l->all_units = l->n_lane;
    l->all_workers = l->n_worker;
}

keel_status keel_lanes_parse(keel_lanes *out, const char *text)
{
    keel_cores cores;
    KEEL_TRY(keel_cores_find(&cores));
    return keel_lanes_parse_on(out, text, &cores);
}

keel_status keel_lanes_parse_on(keel_lanes *out, const char *text, const keel_cores *cores)
{
    keel_lanes l = { 0 };
    if (!text || !strcmp(text, "cpu") || !*text) {
        for (int i = 0; i < cores->n; i++) KEEL_TRY(add_lane(&l, "cpu", &i, 1));
        KEEL_TRY(assign_workers(&l, "cpu", cores));
        be_alone(&l);
        *out = l;
        return KEEL_OK;
    }
    for (const char *p = text;; p++) {
        if (!strncmp(p, "cpu:", 4))
            p += 4;
        else if (!strncmp(p, "cuda", 4))
            return bad(text, "name GPUs before cores: cuda:0-1,cpu:0-1");
        else if (isalpha((unsigned char)*p)) {
            const int n = (int)strcspn(p, ":,");
            return keel_fail(KEEL_EDEVICE,
                             "devices '%s': this version of Keel has no devices of kind '%.*s'; "
                             "%s'keel devices' lists those it has",
                             text, n, p, strncmp(p, "gpu", 3) ? "" : "GPUs of NVIDIA are cuda:0; ");
        }
        KEEL_TRY(read_item(&l, text, &p));
        if (!*p) break;
        if (*p != ',') return bad(text, "devices are separated by commas");
    }
    KEEL_TRY(assign_workers(&l, text, cores));
    be_alone(&l);
    *out = l;
    return KEEL_OK;
}

keel_status keel_lanes_of_devices(keel_lanes *out, keel_device *const *device, int n,
                                  const keel_cores *cores)
{
    keel_lanes l = { .n_lane = n, .n_id = n, .n_part = n, .n_worker = n };
    if (n < 1 || n > KEEL_LANES_MAX)
        return keel_fail(KEEL_EARG, "%d devices; 1 to %d are possible", n, KEEL_LANES_MAX);
    for (int i = 0; i < n; i++) {
        l.lane[i] = (keel_lane){ .n_core = 1, .first_id = i, .first_part = i };
        l.id[i] = i;
        l.part[i] = (keel_lane_part){ .lane = i, .worker = i };
        l.core[i] = cores->os[i % cores->n];
        l.device[i] = device[i];
    }
    be_alone(&l);
    *out = l;
    return KEEL_OK;
}

/* The cores that no worker of these lanes has; all, if each has one. */
static keel_cores idle_cores(const keel_cores *cores, const keel_lanes *of_cores)
{
    keel_cores idle = { 0 };
    for (int i = 0; i < cores->n; i++) {
        bool used = false;
        for (int w = 0; w < of_cores->n_worker; w++) used |= of_cores->core[w] == cores->os[i];
        if (!used) idle.os[idle.n++] = cores->os[i];
    }
    return idle.n ? idle : *cores;
}

keel_status keel_lanes_beside(keel_lanes *out, keel_device *const *device, int n,
                              const keel_lanes *of_cores, const keel_cores *cores)
{
    const keel_cores idle = idle_cores(cores, of_cores);
    keel_lanes l;
    KEEL_TRY(keel_lanes_of_devices(&l, device, n, &idle));
    if (of_cores->shared)
        return keel_fail(KEEL_EUNSUP,
                         "%d devices of cores beside GPUs, but this machine has %d %s; name one "
                         "device a core at most",
                         of_cores->n_lane, cores->n, cores->n == 1 ? "core" : "cores");
    if (n + of_cores->n_lane > KEEL_LANES_MAX)
        return keel_fail(KEEL_EARG, "more than %d devices", KEEL_LANES_MAX);
    if (n + of_cores->n_part > KEEL_LANES_MAX)
        return keel_fail(KEEL_EARG, "%d GPUs and %d cores: %d are possible together", n,
                         of_cores->n_part, KEEL_LANES_MAX);
    for (int i = 0; i < of_cores->n_lane; i++) {
        l.lane[n + i] = of_cores->lane[i];
        l.lane[n + i].first_id += n;
        l.lane[n + i].first_part += n;
    }
    memcpy(l.id + n, of_cores->id, (size_t)of_cores->n_id * sizeof *l.id);
    l.n_id += of_cores->n_id;
    for (int i = 0; i < of_cores->n_part; i++) {
        const keel_lane_part *p = &of_cores->part[i];
        l.part[n + i] = (keel_lane_part){ .lane = n + p->lane, .worker = n + p->worker };
    }
    for (int w = 0; w < of_cores->n_worker; w++) l.core[n + w] = of_cores->core[w];
    l.n_lane += of_cores->n_lane;
    l.n_part += of_cores->n_part;
    l.n_worker += of_cores->n_worker;
    be_alone(&l);
    *out = l;
    return KEEL_OK;
}

keel_status keel_lanes_share(keel_lanes *l, const int *share, int n, const int *units_before)
{
    keel_lanes changed = *l;
    memset(changed.shares_before, 0, sizeof changed.shares_before);
    if (share && n != l->n_lane)
        return keel_fail(KEEL_EARG, "%d %s for %d %s: each device has one", n,
                         n == 1 ? "share" : "shares", l->n_lane,
                         l->n_lane == 1 ? "device" : "devices");
    for (int i = 0; share && i < n; i++) {
        if (share[i] < 1 || share[i] > KEEL_SHARE_MAX)
            return keel_fail(KEEL_EARG, "a share of %d for device %d of %d: 1 to %d are possible",
                             share[i], i + 1, n, KEEL_SHARE_MAX);
        changed.shares_before[i + 1] = changed.shares_before[i] + share[i];
    }
    changed.units_before = units_before;
    changed.first_unit = units_before ? units_before[l->process] : 0;
    changed.all_units =
        units_before ? units_before[l->n_process] : keel_lanes_units_before(&changed, l->n_lane);
    if (l->shared) KEEL_TRY(overlap(&changed, "with shares"));
    *l = changed;
    return KEEL_OK;
}

keel_device *keel_lanes_device(const keel_lanes *l)
{
    for (int w = 0; w < l->n_worker; w++)
        if (l->device[w]) return l->device[w];
    return NULL;
}

void keel_lanes_join(keel_lanes *l, int process, int n_process, const int *lanes_before,
                     int all_workers)
{
    l->process = process;
    l->n_process = n_process;
    l->units_before = lanes_before;
    l->first_lane = l->first_unit = lanes_before[process];
    l->all_lanes = l->all_units = lanes_before[n_process];
    l->all_workers = all_workers;
}

void keel_lanes_range(const keel_lanes *l, int64_t n, int process, int64_t *first, int64_t *end)
{
    const bool alone = l->n_process == 1;
    *first = alone ? 0 : keel_cut_first(n, l->all_units, l->units_before[process]);
    *end = alone ? n : keel_cut_first(n, l->all_units, l->units_before[process + 1]);
}

void keel_lanes_rows(const keel_lanes *l, int64_t n, int process, int64_t *first, int64_t *end)
{
    const int64_t shards = keel_lanes_shards(l, n);
    keel_lanes_range(l, shards ? shards : n, process, first, end);
    if (shards) *first = keel_cut_first(n, shards, *first), *end = keel_cut_first(n, shards, *end);
}

void keel_lane_name(char out[64], const keel_lanes *l, int i)
{
    const keel_lane *lane = &l->lane[i];
    const keel_device *d = l->device[l->part[lane->first_part].worker];
    if (d) {
        snprintf(out, 64, "%s", d->name);
        return;
    }
    const int *id = l->id + lane->first_id;
    int at = snprintf(out, 64, "cpu:%d", id[0]);
    for (int c = 1; c < lane->n_core && at < 56; c++)
        at += snprintf(out + at, (size_t)(64 - at), "+%d", id[c]);
}

/* Where lane i begins, in n rows or shards. */
static int64_t lane_first(const keel_lanes *l, int64_t n, int i)
{
    return keel_cut_first(n, l->all_units, l->first_unit + keel_lanes_units_before(l, i));
}

/* The range of part p, the c-th of its lane, in n rows or shards. */
static void cut_part(const keel_lanes *l, int64_t n, int p, int64_t *first, int64_t *end)
{
    const int lane = l->part[p].lane, w = l->part[p].worker;
    const int64_t begin = lane_first(l, n, lane), next = lane_first(l, n, lane + 1);
    if (l->shared) { /* borders as fractions of a lane, so that equal fractions are equal rows */
        const int64_t own = keel_lanes_units_before(l, l->n_lane);
        const int64_t parts = (int64_t)l->all_units * l->n_worker;
        const int64_t before = (int64_t)l->first_unit * l->n_worker;
        const int64_t w_begin = keel_cut_first(n, parts, before + w * own);
        const int64_t w_end = keel_cut_first(n, parts, before + (w + 1) * own);
        *first = begin > w_begin ? begin : w_begin;
        *end = next < w_end ? next : w_end;
    } else {
        const int cores = l->lane[lane].n_core, c = p - l->lane[lane].first_part;
        *first = begin + keel_cut_first(next - begin, cores, c);
        *end = begin + keel_cut_first(next - begin, cores, c + 1);
    }
}

static void part_rows(const keel_lanes *l, int64_t n, int p, int64_t *first, int64_t *end)
{
    const int64_t shards = keel_lanes_shards(l, n);
    cut_part(l, shards ? shards : n, p, first, end);
    if (shards) *first = keel_cut_first(n, shards, *first), *end = keel_cut_first(n, shards, *end);
}

int keel_cut(const keel_lanes *lanes, int64_t n, keel_piece *piece)
{
    int64_t local[KEEL_LANES_MAX] = { 0 };
    int busy = 0;
    for (int p = 0; p < lanes->n_part; p++) {
        const int w = lanes->part[p].worker;
        int64_t first, end;
        part_rows(lanes, n, p, &first, &end);
        piece[p] = (keel_piece){ .lane = lanes->part[p].lane,
                                 .worker = w,
                                 .part = p,
                                 .row = first,
                                 .rows = end > first ? end - first : 0,
                                 .local_row = local[w] };
        local[w] += piece[p].rows;
        busy += piece[p].rows > 0;
    }
    return busy;
}

static int64_t most_of(const keel_lanes *lanes, int64_t n)
{
    const int64_t all = lanes->all_units;
    int64_t sum[KEEL_LANES_MAX] = { 0 }, most = 0;
    if (lanes->shared)
        return keel_div_up(n * keel_lanes_units_before(lanes, lanes->n_lane),
                           all * lanes->n_worker);
    for (int p = 0; p < lanes->n_part; p++) {
        const int lane = lanes->part[p].lane;
        const int64_t of_lane = keel_div_up(n * keel_lanes_share_of(lanes, lane), all);
        int64_t *s = &sum[lanes->part[p].worker];
        *s += keel_div_up(of_lane, lanes->lane[lane].n_core);
        if (*s > most) most = *s;
    }
    return most;
}

int64_t keel_cut_most(const keel_lanes *lanes, int64_t n)
{
    const int64_t shards = keel_lanes_shards(lanes, n);
    return shards ? most_of(lanes, shards) * keel_div_up(n, shards) : most_of(lanes, n);
}

int keel_pieces_join(const keel_piece *piece, int n, keel_piece *run)
{
    int n_run = 0;
    for (int i = 0; i < n; i++)
        if (n_run > 0 && run[n_run - 1].worker == piece[i].worker)
            run[n_run - 1].rows += piece[i].rows;
        else if (piece[i].rows > 0)
            run[n_run++] = piece[i];
    return n_run;
}
