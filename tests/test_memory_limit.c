/* The memory limits of control groups, as trees of files show them; then those of this machine. */
#include "device/memory_limit.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { FILES = 12 };

typedef struct tree_case {
    const char *name;
    struct {
        const char *path, *text;
    } file[FILES];
    int64_t limit, left;
    const char *group;
} tree_case;

#define SECOND "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define FIRST  "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define INSIDE "30 25 0:26 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"

static const tree_case cases[] = {
    { "no control groups are no limit", { { "proc/self/mountinfo", "1 2 3\n" } }, -1, -1, "" },
    { "version 2: a group's own limit",
      { { "proc/self/cgroup", "0::/a/b\n" },
        { "proc/self/mountinfo", SECOND },
        { "sys/fs/cgroup/a/b/memory.max", "1000\n" },
        { "sys/fs/cgroup/a/b/memory.current", "300\n" },
        { "sys/fs/cgroup/a/b/memory.stat", "anon 200\nactive_file 40\ninactive_file 60\n" } },
      1000,
      800,
      "/a/b" },
    { "version 2: max is no limit, and the parent's counts",
      { { "proc/self/cgroup", "0::/a/b\n" },
        { "proc/self/mountinfo", SECOND },
        { "sys/fs/cgroup/a/b/memory.max", "max\n" },
        { "sys/fs/cgroup/a/memory.max", "500\n" },
        { "sys/fs/cgroup/a/memory.current", "100\n" } },
      500,
      400,
      "/a" },
    { "version 2: of two limits the one that leaves less",
      { { "proc/self/cgroup", "0::/a/b\n" },
        { "proc/self/mountinfo", SECOND },
        { "sys/fs/cgroup/a/b/memory.max", "500\n" },
        { "sys/fs/cgroup/a/b/memory.current", "10\n" },
        { "sys/fs/cgroup/a/memory.max", "800\n" },
        { "sys/fs/cgroup/a/memory.current", "700\n" } },
      800,
      100,
      "/a" },
    { "version 1: the line that lists memory",
      { { "proc/self/cgroup", "9:cpu:/x\n4:cpuacct,memory:/c\n0::/\n" },
        { "proc/self/mountinfo", FIRST },
        { "sys/fs/cgroup/memory/c/memory.limit_in_bytes", "4096\n" },
        { "sys/fs/cgroup/memory/c/memory.usage_in_bytes", "1024\n" },
        { "sys/fs/cgroup/memory/c/memory.stat", "total_inactive_file 24\n" } },
      4096,
      3096,
      "/c" },
    { "version 1: the number that stands for none",
      { { "proc/self/cgroup", "4:memory:/c\n" },
        { "proc/self/mountinfo", FIRST },
        { "sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712\n" } },
      -1,
      -1,
      "" },
    { "in a container the mount shows only a part of the tree",
      { { "proc/self/cgroup", "4:memory:/docker/ab/in\n" },
        { "proc/self/mountinfo", INSIDE },
        { "sys/fs/cgroup/memory/in/memory.limit_in_bytes", "100\n" },
        { "sys/fs/cgroup/memory/memory.limit_in_bytes", "70\n" } },
      70,
      70,
      "/" },
    { "a group whose name only begins as that of the mount is not in it",
      { { "proc/self/cgroup", "4:memory:/docker/abc/in\n" },
        { "proc/self/mountinfo", INSIDE },
        { "sys/fs/cgroup/memoryc/in/memory.limit_in_bytes", "50\n" },
        { "sys/fs/cgroup/memory/memory.limit_in_bytes", "70\n" } },
      70,
      70,
      "/" },
    { "more bytes of files than are in use leave all",
      { { "proc/self/cgroup", "0::/\n" },
        { "proc/self/mountinfo", SECOND },
        { "sys/fs/cgroup/memory.max", "90\n" },
        { "sys/fs/cgroup/memory.current", "50\n" },
        { "sys/fs/cgroup/memory.stat", "inactive_file 60\n" } },
      90,
      90,
      "/" },
    { "a path outside of what the process sees is that of the mount",
      { { "proc/self/cgroup", "0::/../../x\n" },
        { "proc/self/mountinfo", SECOND },
        { "sys/fs/cgroup/memory.max", "90\n" } },
      90,
      90,
      "/" },
    { "more in use than the limit leaves nothing",
      { { "proc/self/cgroup", "0::/\n" },
        { "proc/self/mountinfo", SECOND },
        { "sys/fs/cgroup/memory.max", "90\n" },
        { "sys/fs/cgroup/memory.current", "95\n" } },
      90,
      0,
      "/" },
    { "files that are not what they should be are no limit",
      { { "proc/self/cgroup", "::\n:::\n0::/a\n" },
        { "proc/self/mountinfo", "- - -\n" SECOND },
        { "sys/fs/cgroup/a/memory.max", "-5\n" },
        { "sys/fs/cgroup/a/memory.current", "x\n" } },
      -1,
      -1,
      "" },
};

static void put(const char *root, const char *path, const char *text)
{
    char at[512];
    snprintf(at, sizeof at, "%s/%s", root, path);
    for (char *c = at + strlen(root) + 1; *c; c++)
        if (*c == '/') {
            *c = 0;
            mkdir(at, 0777);
            *c = '/';
        }
    FILE *f = fopen(at, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void limits_of_control_groups_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tree_case *c = &cases[i];
        char root[] = "/tmp/keel-groups-XXXXXX", command[64];
        keel_memory_limit m;
        assert_non_null(mkdtemp(root));
        for (int k = 0; k < FILES && c->file[k].path; k++)
            put(root, c->file[k].path, c->file[k].text);
        keel_memory_limit_find(&m, root);
        if (m.limit != c->limit || m.free != c->left || strcmp(m.group, c->group) != 0)
            fail_msg("%s: %lld, %lld free, '%s'", c->name, (long long)m.limit, (long long)m.free,
                     m.group);
        snprintf(command, sizeof command, "rm -r %s", root);
        assert_int_equal(system(command), 0);
    }
}

static void the_limits_of_this_machine_make_sense(void **state)
{
    (void)state;
    keel_memory_limit m;
    keel_memory_limit_find(&m, "");
    if (m.limit < 0) {
        print_message("no control group limits the memory here\n");
        return;
    }
    print_message("%s: %lld bytes, %lld free\n", m.group, (long long)m.limit, (long long)m.free);
    assert_true(m.free >= 0 && m.free <= m.limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_of_control_groups_are_found),
        cmocka_unit_test(the_limits_of_this_machine_make_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
