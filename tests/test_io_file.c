/* A new file is there complete or not at all, however its process ends. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "must.h"
#include "base/memory.h"
#include "io/file.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256], path[300];

static int begin(void **state)
{
    const char *tmp = getenv("KEEL_TEST_TMP");
    (void)state;
    snprintf(folder, sizeof folder, "%s/new-files-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    remove(path);
    rmdir(folder);
    return 0;
}

static int names(void)
{
    int n = 0;
    const struct dirent *e;
    DIR *d = opendir(folder);
    while (d && (e = readdir(d))) n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

static void same(const char *want)
{
    void *data;
    size_t n;
    must(keel_file_read(path, 100, &data, &n));
    assert_string_equal(data, want);
    keel_free(data);
}

/* But for files of /proc, which do not say their size. */
static void a_whole_file_is_read_into_one_block(void **state)
{
    (void)state;
    static char text[10000];
    void *data;
    size_t n;
    memset(text, 'a', sizeof text);
    static const size_t sizes[] = { 0, 1, 4094, 4095, 4096, 4097, sizeof text };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t size = sizes[i];
        must(keel_file_write(path, text, size));
        const int64_t before = keel_memory_calls();
        must(keel_file_read(path, sizeof text, &data, &n));
        assert_int_equal(keel_memory_calls(), before + 1);
        assert_int_equal(n, size);
        assert_memory_equal(data, text, n);
        assert_int_equal(((char *)data)[n], 0);
        keel_free(data);
    }
    assert_int_equal(keel_file_read(path, 5000, &data, &n), KEEL_EFORMAT);
    must(keel_file_read("/proc/self/maps", 1 << 20, &data, &n));
    assert_true(n > 4096);
    assert_int_equal(strlen(data), n);
    keel_free(data);
    remove(path);
}

static void a_killed_process_leaves_nothing(void **state)
{
    (void)state;
    const int fd = open(folder, O_TMPFILE | O_RDWR, 0666);
    if (fd < 0) skip(); /* the file system has no files without a name */
    close(fd);
    const pid_t pid = fork();
    if (pid == 0) {
        keel_new_file *f;
        if (keel_new_file_create(&f, path) >= 0 && keel_new_file_write(f, "part", 4) >= 0)
            raise(SIGKILL);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(names(), 0);
}

static void a_file_takes_the_place_of_another_when_it_is_complete(void **state)
{
    (void)state;
    struct stat st;
    const mode_t mask = umask(027);
    for (int named = 0; named < 2; named++) { /* also one that others write into */
        const char *name = NULL;
        keel_new_file *f;
        must(keel_file_write(path, "old", 3));
        must(keel_new_file_create(&f, path));
        if (named) must(keel_new_file_temporary(f, &name));
        if (named) assert_int_equal(access(name, F_OK), 0);
        must(keel_new_file_write(f, "new", 3));
        same("old");
        must(keel_new_file_commit(f));
        same("new");
        assert_int_equal(names(), 1);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0640);
    }
    umask(mask);
}

static void a_file_that_is_given_up_leaves_what_was_there(void **state)
{
    (void)state;
    keel_new_file *f;
    must(keel_file_write(path, "old", 3));
    must(keel_new_file_create(&f, path));
    must(keel_new_file_write(f, "new", 3));
    keel_new_file_abort(f);
    same("old");
    assert_int_equal(names(), 1);
}

static void where_a_link_has_the_name_the_file_that_it_leads_to_is_replaced(void **state)
{
    (void)state;
    char link[300];
    struct stat st;
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink("out", link), 0);
    keel_new_file *f;
    assert_int_equal(keel_new_file_create(&f, link), KEEL_EIO);
    assert_non_null(
        strstr(keel_error(), "link: cannot be created: it is a link that leads nowhere"));
    must(keel_file_write(path, "old", 3));
    must(keel_file_write(link, "new", 3));
    same("new");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(names(), 2);
    remove(link);
}

static void a_file_keeps_the_permissions_of_the_one_before(void **state)
{
    (void)state;
    struct stat st;
    must(keel_file_write(path, "old", 3));
    assert_int_equal(chmod(path, 0600), 0);
    must(keel_file_write(path, "new", 3));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_folder_that_is_gone_is_an_error_that_names_the_file(void **state)
{
    (void)state;
    keel_new_file *f;
    must(keel_new_file_create(&f, path));
    must(keel_new_file_write(f, "new", 3));
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(keel_new_file_commit(f), KEEL_EIO);
    assert_non_null(strstr(keel_error(), path));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_whole_file_is_read_into_one_block),
        TEST(a_killed_process_leaves_nothing),
        TEST(a_file_takes_the_place_of_another_when_it_is_complete),
        TEST(a_file_that_is_given_up_leaves_what_was_there),
        TEST(where_a_link_has_the_name_the_file_that_it_leads_to_is_replaced),
        TEST(a_file_keeps_the_permissions_of_the_one_before),
        TEST(a_folder_that_is_gone_is_an_error_that_names_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
