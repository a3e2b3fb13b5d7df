/* See machines.h: devices of several processes as those of one. */
#include "base/memory.h"
#include "device/gpus.h"
#include "device/lanes.h"
#include "train/machines.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ITEM_MAX = 5 + KEEL_LANE_CORES_MAX * 5 }; /* ",cpu:1023+1022..." */

static int place_of(const keel_cores *all, int os)
{
    for (int i = 0; i < all->n; i++)
        if (all->os[i] == os) return i;
    return -1;
}

/* Appends the lanes of one process. `uses` counts how often a core is used. False: a lane has a
 * core that is none of `all`, or none at all. */
static bool append(char *text, size_t size, size_t *at, const keel_lanes *l,
                   const keel_cores *cores, const keel_cores *all, int *uses)
{
    for (int i = 0; i < l->n_lane; i++)
        for (int c = 0; c < l->lane[i].n_core; c++) {
            const int id = l->id[l->lane[i].first_id + c];
            const int place = id < cores->n ? place_of(all, cores->os[id]) : -1;
            if (place < 0) return false;
            uses[place]++;
            *at += (size_t)snprintf(text + *at, size - *at,
                                    c     ? "+%d"
                                    : *at ? ",cpu:%d"
                                          : "cpu:%d",
                                    place);
        }
    return true;
}

/* All cores of the process are used, by devices of one core or of a part of one. */
static bool uses_all(const keel_lanes *l, const keel_cores *cores)
{
    for (int i = 0; i < l->n_lane; i++)
        if (l->lane[i].n_core != 1) return false;
    return l->shared || l->n_worker == cores->n;
}

/* GPUs that all of them see: each is used once, beside the cores of all. */
static char *beside_gpus(const keel_neighbour *const *of, int n, const char *devices,
                         const char *beside, const keel_cores *all)
{
    char *cores = keel_neighbours_devices(of, n, beside, all), *text = NULL;
    const size_t gpus = (size_t)(beside - devices), size = gpus + (cores ? strlen(cores) : 0) + 1;
    if (cores && (text = keel_calloc(1, size)))
        snprintf(text, size, "%.*s%s", (int)gpus, devices, cores);
    keel_free(cores);
    return text;
}

char *keel_neighbours_devices(const keel_neighbour *const *of, int n, const char *devices,
                              const keel_cores *all)
{
    if (keel_gpus_named(devices)) {
        keel_gpus_text said;
        if (keel_gpus_read(&said, devices) < 0) return NULL;
        return said.beside ? beside_gpus(of, n, devices, said.beside, all) : keel_strdup(devices);
    }
    const size_t size = (size_t)KEEL_LANES_MAX * ITEM_MAX;
    int uses[KEEL_CORES_MAX] = { 0 }, lanes = 0;
    bool apart = true, everywhere = true; /* each core belongs to one process; all cores are used */
    keel_cores *cores = keel_calloc(1, sizeof *cores);
    keel_lanes *l = keel_calloc(1, sizeof *l);
    char *text = keel_calloc(1, size);
    size_t at = 0;
    bool good = cores && l && text;
    for (int q = 0; q < n && good; q++) {
        cores->n = of[q]->n_core;
        for (int i = 0; i < cores->n; i++) cores->os[i] = of[q]->core[i];
        good = cores->n > 0 && keel_lanes_parse_on(l, devices, cores) >= 0 &&
               (lanes += l->n_lane) <= KEEL_LANES_MAX;
        if (!good) break;
        everywhere = everywhere && uses_all(l, cores);
        apart = append(text, size, &at, l, cores, all, uses) && apart;
        for (int i = 0; i < cores->n; i++) good = good && place_of(all, cores->os[i]) >= 0;
    }
    for (int i = 0; i < all->n; i++) apart = apart && uses[i] <= 1;
    if (good && !strcmp(devices, "cpu"))
        snprintf(text, size, "cpu"); /* each core once, also if several processes may use it */
    else if (good && !apart && everywhere && lanes > all->n)
        snprintf(text, size, "cpu:0-%d", lanes - 1); /* more devices than cores: they share them */
    else
        good = good && apart;
    keel_free(cores);
    keel_free(l);
    if (good) return text;
    keel_free(text);
    return NULL;
}
