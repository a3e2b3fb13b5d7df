/* See discover.h. */
#include "device/discover.h"
#include "device/cpu/cpu.h"
#include <hwloc.h>
#include <stdio.h>
#include <string.h>

static keel_status open_topology(hwloc_topology_t *t)
{
    if (hwloc_topology_init(t) < 0) return keel_fail(KEEL_EDEVICE, "hwloc cannot be initialized");
    hwloc_topology_set_io_types_filter(*t, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(*t) < 0) {
        hwloc_topology_destroy(*t);
        return keel_fail(KEEL_EDEVICE, "hwloc cannot read this machine's topology");
    }
    return KEEL_OK;
}

keel_status keel_cores_find(keel_cores *out)
{
    hwloc_topology_t t;
    KEEL_TRY(open_topology(&t));
    hwloc_bitmap_t may = hwloc_bitmap_alloc();
    out->n = 0;
    if (may && hwloc_get_cpubind(t, may, HWLOC_CPUBIND_PROCESS) < 0)
        hwloc_bitmap_copy(may, hwloc_topology_get_allowed_cpuset(t));
    const int n = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
    for (int i = 0; i < n && may && out->n < KEEL_CORES_MAX; i++) {
        const hwloc_obj_t core = hwloc_get_obj_by_type(t, HWLOC_OBJ_CORE, (unsigned)i);
        for (int p = hwloc_bitmap_first(core->cpuset); p >= 0;
             p = hwloc_bitmap_next(core->cpuset, p))
            if (hwloc_bitmap_isset(may, (unsigned)p)) { /* one hardware thread per core */
                out->os[out->n++] = p;
                break;
            }
    }
    if (out->n == 0 && may) /* the topology lists no cores: use processors */
        for (int p = hwloc_bitmap_first(may); p >= 0 && out->n < KEEL_CORES_MAX;
             p = hwloc_bitmap_next(may, p))
            out->os[out->n++] = p;
    hwloc_bitmap_free(may);
    hwloc_topology_destroy(t);
    return out->n > 0 ? KEEL_OK
                      : keel_fail(KEEL_EDEVICE, "this process is not allowed to use any core");
}

static int64_t cache_size(hwloc_topology_t t, hwloc_obj_type_t type)
{
    const hwloc_obj_t o = hwloc_get_obj_by_type(t, type, 0);
    return o && o->attr ? (int64_t)o->attr->cache.size : 0;
}

keel_status keel_machine_find(keel_machine *out)
{
    hwloc_topology_t t;
    keel_cores cores;
    KEEL_TRY(keel_cores_find(&cores));
    KEEL_TRY(open_topology(&t));
    *out = (keel_machine){ .n_core = cores.n,
                           .n_node = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE),
                           .memory = (int64_t)hwloc_get_root_obj(t)->total_memory,
                           .l2 = cache_size(t, HWLOC_OBJ_L2CACHE),
                           .l3 = cache_size(t, HWLOC_OBJ_L3CACHE) };
    const hwloc_obj_t package = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    snprintf(out->model, sizeof out->model, "%s", model ? model : "processor");
    __builtin_cpu_init();
    snprintf(out->instructions, sizeof out->instructions, "%s",
             keel_cpu_level() >= KEEL_CPU_AMX    ? "AVX-512 and AMX"
             : __builtin_cpu_supports("avx512f") ? "AVX-512"
             : __builtin_cpu_supports("avx2")    ? "AVX2"
                                                 : "SSE2");
    hwloc_topology_destroy(t);
    return KEEL_OK;
}
