/* See memory_limit.h. A process knows its group from /proc/self/cgroup, and where groups are
 * mounted from /proc/self/mountinfo. In a container the mount may show a part of the tree only: its
 * root is then taken off the path of the group. Parents limit, too, up to the mount. */
#include "device/memory_limit.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096, LINE = 8192 };

typedef struct hierarchy {
    const char *limit, *usage, *inactive, *active; /* files, and words of memory.stat */
} hierarchy;

static const hierarchy version_1 = { "memory.limit_in_bytes", "memory.usage_in_bytes",
                                     "total_inactive_file", "total_active_file" };
static const hierarchy version_2 = { "memory.max", "memory.current", "inactive_file",
                                     "active_file" };

/* No version has a group with more; version 1 writes a number near 2^63 where there is no limit. */
static const int64_t NO_LIMIT = INT64_C(1) << 60;

static FILE *open_in(const char *folder, const char *name)
{
    char path[PATH + 64];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && n < (int)sizeof path ? fopen(path, "r") : NULL;
}

/* -1: not there, not a number ("max"), or no limit. */
static int64_t number_in(const char *folder, const char *name)
{
    char text[64] = "";
    FILE *f = open_in(folder, name);
    if (!f) return -1;
    if (!fgets(text, sizeof text, f)) text[0] = 0;
    fclose(f);
    char *end;
    const long long n = strtoll(text, &end, 10);
    return end == text || n < 0 || n >= NO_LIMIT ? -1 : n;
}

/* The bytes of files in memory, which the system drops when it needs room. */
static int64_t file_bytes(const char *folder, const hierarchy *h)
{
    char line[256], word[64];
    long long n;
    int64_t sum = 0;
    FILE *f = open_in(folder, "memory.stat");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%63s %lld", word, &n) == 2 && n > 0 && n < NO_LIMIT &&
            (!strcmp(word, h->inactive) || !strcmp(word, h->active)))
            sum += n;
    if (f) fclose(f);
    return sum;
}

static void look(keel_memory_limit *out, const char *folder, const char *group, const hierarchy *h)
{
    const int64_t limit = number_in(folder, h->limit), usage = number_in(folder, h->usage);
    if (limit < 0) return;
    const int64_t files = file_bytes(folder, h);
    int64_t used = usage < 0 ? 0 : usage - (files < usage ? files : usage);
    if (used > limit) used = limit;
    if (out->limit >= 0 && limit - used >= out->free) return;
    out->limit = limit;
    out->free = limit - used;
    snprintf(out->group, sizeof out->group, "%s", *group ? group : "/");
}

/* Go from a group up to the mount. */
static void climb(keel_memory_limit *out, const char *root, const char *mount, char *group,
                  const hierarchy *h)
{
    char folder[PATH];
    for (;;) {
        const int n = snprintf(folder, sizeof folder, "%s%s%s", root, mount, group);
        if (n > 0 && n < (int)sizeof folder) look(out, folder, group, h);
        char *last = strrchr(group, '/');
        if (!last) return;
        *last = 0;
    }
}

/* Whether "memory" is one of the words between commas, which are cut apart. */
static bool lists_memory(char *words)
{
    char *rest = NULL;
    bool found = false;
    for (char *w = strtok_r(words, ",", &rest); w && !found; w = strtok_r(NULL, ",", &rest))
        found = !strcmp(w, "memory");
    return found;
}

/* The path of this process's group: of version 2 in the line "0::PATH", of version 1 in that whose
 * second word lists "memory". */
static bool find_group(char out[PATH], const char *root, bool second)
{
    char folder[PATH], line[LINE];
    bool found = false;
    snprintf(folder, sizeof folder, "%s/proc/self", root);
    FILE *f = open_in(folder, "cgroup");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *words = strchr(line, ':'), *path = words ? strchr(words + 1, ':') : NULL;
        if (!path) continue;
        *words++ = *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        if (second) {
            found = !strcmp(line, "0") && !*words;
        } else {
            found = lists_memory(words);
        }
        found = found && strlen(path) < PATH;
        if (found) strcpy(out, path);
    }
    if (f) fclose(f);
    return found;
}

/* A line of mountinfo: ID PARENT DEVICE ROOT POINT OPTIONS ... - TYPE SOURCE SUPER. */
static bool find_mount(char top[PATH], char mount[PATH], const char *root, bool second)
{
    char folder[PATH], line[LINE];
    bool found = false;
    snprintf(folder, sizeof folder, "%s/proc/self", root);
    FILE *f = open_in(folder, "mountinfo");
    while (f && !found && fgets(line, sizeof line, f)) {
        char type[64], super[1024];
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", top, mount) != 2) continue;
        if (sscanf(rest + 3, "%63s %*s %1023s", type, super) != 2) continue;
        if (second) {
            found = !strcmp(type, "cgroup2");
        } else if (!strcmp(type, "cgroup")) {
            found = lists_memory(super);
        }
    }
    if (f) fclose(f);
    return found;
}

static const char *system_root = "";

void keel_memory_limit_pretend(const char *root)
{
    system_root = root ? root : "";
}

void keel_memory_limit_find(keel_memory_limit *out, const char *root)
{
    if (!*root) root = system_root;
    *out = (keel_memory_limit){ .limit = -1, .free = -1 };
    for (int second = 0; second < 2; second++) {
        char group[PATH], top[PATH], mount[PATH];
        if (!find_group(group, root, second) || !find_mount(top, mount, root, second)) continue;
        const size_t n = strlen(top);
        char *inside = group;
        if (n > 1 && !strncmp(group, top, n) && (group[n] == '/' || !group[n])) inside += n;
        if (!strncmp(inside, "/..", 3)) *inside = 0; /* outside of what this process sees */
        if (!strcmp(inside, "/")) *inside = 0;
        climb(out, root, mount, inside, second ? &version_2 : &version_1);
    }
}
