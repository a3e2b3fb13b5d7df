/* Zip archives: a table of damaged ones, round trips, the same bytes each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "io/file.h"
#include "io/zip.h"
#include "record_files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char place[512];

static const char *in_scratch(const char *name)
{
    const char *folder = getenv("KEEL_TEST_TMP");
    snprintf(place, sizeof place, "%s/%s", folder ? folder : "/tmp", name);
    return place;
}

static void *read_bytes(const char *path, size_t *n)
{
    void *bytes = NULL;
    assert_int_equal(keel_file_read(path, 1 << 20, &bytes, n), KEEL_OK);
    return bytes;
}

/* A member that is made while it is written: a megabyte and a half, from its end to its begin. */
enum { MADE = 3 << 19, MADE_BY = 1 << 10 };

static unsigned char made_byte(size_t i)
{
    return (unsigned char)(i * 7 + (i >> 9));
}

static keel_status make(const void *context, keel_new_file *archive, int64_t at, uint64_t *n_bytes)
{
    unsigned char piece[MADE_BY];
    if (!context) return keel_fail(KEEL_ENUMERIC, "there is nothing to write");
    for (int64_t i = MADE - MADE_BY; i >= 0; i -= MADE_BY) {
        for (size_t k = 0; k < MADE_BY; k++) piece[k] = made_byte((size_t)i + k);
        KEEL_TRY(keel_new_file_write_at(archive, at + i, piece, MADE_BY));
    }
    *n_bytes = *(const uint64_t *)context;
    return KEEL_OK;
}

static void a_member_can_be_made_while_it_is_written(void **state)
{
    (void)state;
    const uint64_t all = MADE;
    const keel_zip_member m[] = { { .name = "before", .data = "xyz", .n_bytes = 3 },
                                  { .name = "made", .write = make, .context = &all },
                                  { .name = "after", .data = "ab", .n_bytes = 2 } };
    const keel_zip_member fails = { .name = "made", .write = make };
    unsigned char *bytes = NULL;
    size_t n = 0;
    keel_zip *z = NULL;
    assert_int_equal(keel_zip_write(in_scratch("made.zip"), m, 3), KEEL_OK);
    assert_int_equal(keel_zip_open(&z, place), KEEL_OK);
    assert_int_equal(keel_zip_read(z, "made", MADE, (void **)&bytes, &n), KEEL_OK);
    assert_int_equal(n, MADE);
    for (size_t i = 0; i < MADE; i++) assert_int_equal(bytes[i], made_byte(i));
    keel_free(bytes);
    assert_int_equal(keel_zip_read(z, "after", 2, (void **)&bytes, &n), KEEL_OK);
    assert_memory_equal(bytes, "ab", 3);
    keel_free(bytes);
    keel_zip_close(z);
    assert_int_equal(keel_zip_write(in_scratch("fails.zip"), &fails, 1), KEEL_ENUMERIC);
    assert_non_null(strstr(keel_error(), "there is nothing to write"));
    assert_int_equal(access(place, F_OK), -1);
    assert_int_equal(keel_memory_live(), 0);
}

static void members_come_back_and_the_file_is_the_same_each_time(void **state)
{
    (void)state;
    const keel_zip_member m[] = { { "config.json", "{\"a\": 1}", 8 },
                                  { "empty", "", 0 },
                                  { "folder/h\xC3\xA4us", "xyz", 3 } };
    void *bytes = NULL, *first, *second;
    size_t n = 0, n_first, n_second;
    keel_zip *z = NULL;
    assert_int_equal(keel_zip_write(in_scratch("a.zip"), m, 3), KEEL_OK);
    first = read_bytes(place, &n_first);
    assert_int_equal(keel_zip_open(&z, place), KEEL_OK);
    assert_int_equal(keel_zip_count(z), 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(keel_zip_name(z, i), m[i].name);
        assert_int_equal(keel_zip_find(z, m[i].name), i);
        assert_int_equal(keel_zip_size(z, i), m[i].n_bytes);
        assert_int_equal(keel_zip_read(z, m[i].name, 100, &bytes, &n), KEEL_OK);
        assert_int_equal(n, m[i].n_bytes);
        assert_memory_equal(bytes, m[i].data, n);
        keel_free(bytes);
    }
    assert_int_equal(keel_zip_find(z, "absent"), -1);
    assert_int_equal(keel_zip_read(z, "absent", 100, &bytes, &n), KEEL_EFORMAT);
    assert_int_equal(keel_zip_read(z, "config.json", 7, &bytes, &n), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "config.json"));
    keel_zip_close(z);
    assert_int_equal(keel_zip_write(in_scratch("b.zip"), m, 3), KEEL_OK);
    second = read_bytes(place, &n_second);
    assert_int_equal(n_first, n_second);
    assert_memory_equal(first, second, n_first);
    keel_free(first);
    keel_free(second);
    assert_int_equal(keel_zip_write(in_scratch("none.zip"), m, 0), KEEL_OK);
    assert_int_equal(keel_zip_open(&z, place), KEEL_OK);
    assert_int_equal(keel_zip_count(z), 0);
    keel_zip_close(z);
    assert_int_equal(keel_memory_live(), 0);
}

static void names_may_not_repeat(void **state)
{
    (void)state;
    const keel_zip_member twice[] = { { "a", "1", 1 }, { "b", "2", 1 }, { "a", "3", 1 } };
    const keel_zip_member no_name[] = { { "", "1", 1 } };
    assert_int_equal(keel_zip_write(in_scratch("t.zip"), twice, 3), KEEL_EARG);
    assert_int_equal(keel_zip_write(in_scratch("t.zip"), no_name, 1), KEEL_EARG);
    /* An archive of others may: rename the second member of a good one in both its headers. */
    const keel_zip_member pair[] = { { "a1", "1", 1 }, { "a2", "2", 1 } };
    keel_zip *z = NULL;
    size_t n;
    assert_int_equal(keel_zip_write(in_scratch("t.zip"), pair, 2), KEEL_OK);
    char *bytes = read_bytes(place, &n);
    for (size_t i = 0; i + 1 < n; i++)
        if (bytes[i] == 'a' && bytes[i + 1] == '2') bytes[i + 1] = '1';
    assert_int_equal(keel_zip_open_memory(&z, bytes, n, "t.zip"), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "two members 'a1'"));
    keel_free(bytes);
    assert_int_equal(keel_memory_live(), 0);
}

/* Offsets within a record of the directory, from its signature. Of a member: 8 flags, 10 method, 20
 * compressed, 24 size, 28 to 33 the lengths of the name, of the extra field and of the comment, 46
 * name. Of the end: 4 and 6 disks, 8 and 10 members, 12 bytes, 16 place. */
static void a_lying_directory_is_refused(void **state)
{
    (void)state;
    static const char member[] = "PK\1\2", end[] = "PK\5\6";
    const struct {
        const char *of;
        int at, n;
        uint32_t value;
        const char *says;
    } bad[] = {
        { member, 0, 4, 0, "cut short" },
        { member, 20, 4, 1000, "claims" },
        { member, 24, 4, 1000, "claims" },
        { member, 24, 4, 0x7FFFFFFF, "claims" },
        { member, 10, 2, 12, "compression 12" },
        { member, 8, 2, 1, "encrypted" },
        { member, 8, 2, 1 << 6, "encrypted" },
        { member, 8, 2, 1 << 13, "encrypted" },
        { member, 28, 2, 0, "name is empty" },
        { member, 28, 2, 2, "cut short" },
        { member, 30, 2, 1, "cut short" },
        { member, 32, 2, 1, "cut short" },
        { member, 46, 1, 0, "zero byte" },
        { end, 0, 4, 0, "not a zip archive" },
        { end, 4, 2, 1, "several files" },
        { end, 6, 2, 1, "several files" },
        { end, 8, 2, 2, "several files" },
        { end, 8, 4, 0, "longer than its entries" },
        { end, 8, 4, 2 | 2 << 16, "does not end where" },
        { end, 12, 4, 46, "does not end where" },
        { end, 16, 4, 40, "does not end where" },
        { end, 16, 4, 4000, "does not end where" },
    };
    const keel_zip_member m[] = { { "a", "hello world", 11 } };
    size_t n;
    assert_int_equal(keel_zip_write(in_scratch("lie.zip"), m, 1), KEEL_OK);
    unsigned char *bytes = read_bytes(place, &n);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned char *copy = malloc(n), *header = copy;
        keel_zip *z = NULL;
        memcpy(copy, bytes, n);
        while (memcmp(header, bad[i].of, 4) != 0) header++;
        for (int k = 0; k < bad[i].n; k++)
            header[bad[i].at + k] = (unsigned char)(bad[i].value >> (8 * k));
        assert_true(keel_zip_open_memory(&z, copy, n, "lie.zip") < 0);
        if (!strstr(keel_error(), bad[i].says)) fail_msg("%s: %s", bad[i].says, keel_error());
        free(copy);
    }
    keel_free(bytes);
    assert_int_equal(keel_memory_live(), 0);
}

static void any_cut_or_changed_byte_gives_an_error_or_the_bytes(void **state)
{
    (void)state;
    const keel_zip_member m[] = { { "one", "hello world", 11 }, { "two", "again", 5 } };
    size_t n;
    assert_int_equal(keel_zip_write(in_scratch("cut.zip"), m, 2), KEEL_OK);
    unsigned char *bytes = read_bytes(place, &n);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *copy = malloc(cut + 1);
        keel_zip *z = NULL;
        memcpy(copy, bytes, cut);
        assert_true(keel_zip_open_memory(&z, copy, cut, "cut.zip") < 0);
        free(copy);
    }
    for (size_t i = 0; i < 8 * n; i++) {
        keel_zip *z = NULL;
        void *got = NULL;
        size_t n_got = 0;
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        if (keel_zip_open_memory(&z, bytes, n, "bit.zip") >= 0) {
            const int64_t one = keel_zip_find(z, "one");
            const bool read = keel_zip_read(z, "one", 100, &got, &n_got) >= 0;
            uint64_t at = 0;
            char there[11];
            if (read) {
                assert_int_equal(n_got, 11);
                assert_memory_equal(got, "hello world", 11);
                keel_free(got);
            }
            if (one >= 0) assert_true((keel_zip_place(z, one, &at) >= 0) == read);
            if (at > 0) {
                assert_int_equal(keel_zip_read_at(z, at, there, 11), KEEL_OK);
                assert_memory_equal(there, "hello world", 11);
            }
            keel_zip_close(z);
        }
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    keel_free(bytes);
    assert_int_equal(keel_memory_live(), 0);
}

static void only_a_plain_file_is_replaced(void **state)
{
    (void)state;
    struct stat st;
    keel_new_file *f = NULL;
    mkfifo(in_scratch("pipe"), 0600);
    assert_int_equal(keel_file_write(place, "abc", 3), KEEL_EIO);
    assert_non_null(strstr(keel_error(), "pipe: cannot be created"));
    assert_int_equal(stat(place, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    unlink(place);
    assert_int_equal(keel_new_file_create(&f, "/"), KEEL_EIO);
    assert_null(f);
    for (int i = 0; i < 2; i++)
        assert_int_equal(keel_file_write(in_scratch("it"), "a", 1), KEEL_OK);
}

static void a_file_that_is_cut_while_it_is_open_is_an_error(void **state)
{
    (void)state;
    static char data[1 << 16];
    const keel_zip_member m[] = { { "a", data, sizeof data } };
    void *bytes = NULL;
    size_t n = 0;
    keel_zip *z = NULL;
    assert_int_equal(keel_zip_write(in_scratch("shrinks.zip"), m, 1), KEEL_OK);
    assert_int_equal(keel_zip_open(&z, place), KEEL_OK);
    assert_int_equal(truncate(place, 100), 0);
    assert_int_equal(keel_zip_read(z, "a", SIZE_MAX / 2, &bytes, &n), KEEL_EIO);
    assert_non_null(strstr(keel_error(), "truncated while it was read"));
    keel_zip_close(z);
    assert_int_equal(keel_memory_live(), 0);
}

static void members_that_share_bytes_are_refused(void **state)
{
    (void)state;
    const keel_zip_member m[] = { { "a", "hello world", 11 }, { "b", "hello world", 11 } };
    size_t n;
    keel_zip *z = NULL;
    assert_int_equal(keel_zip_write(in_scratch("overlap.zip"), m, 2), KEEL_OK);
    unsigned char *bytes = read_bytes(place, &n), *second = bytes;
    for (int i = 0; i < 2; i++, second++)
        while (memcmp(second, "PK\1\2", 4) != 0) second++;
    second--;
    memset(second + 42, 0, 4); /* the offset of the first */
    assert_int_equal(keel_zip_open_memory(&z, bytes, n, "overlap.zip"), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "overlap"));
    keel_free(bytes);
    assert_int_equal(keel_memory_live(), 0);
}

/* An archive of one member whose numbers are in the fields of zip64. */
typedef struct large {
    const char *what;
    uint32_t size, packed, at; /* of the directory; all ones: the next number of the extra field */
    int n_extra;
    uint64_t extra[3];
    unsigned id;         /* of an extra field before it; 0: none */
    int64_t end;         /* where the locator says that the end record is, from where it is */
    const char *refused; /* NULL: the member comes back */
    uint64_t disks;      /* the number of this one, and of the one with the directory */
} large;

enum { ONES = 0xFFFFFFFF };

static record_bytes large_archive(const large *l)
{
    record_bytes b = { 0 };
    const unsigned n = l->id ? 8 : 0, own = (unsigned)l->n_extra * 8;
    record_le(&b, 0x04034B50, 4);
    record_le(&b, 45, 2);
    record_le(&b, 0, 8); /* flags, stored, time and date */
    record_le(&b, 0x0D4A1185, 4);
    record_le(&b, 11, 4);
    record_le(&b, 11, 4);
    record_le(&b, 1, 4); /* the lengths of the name and of no extra field */
    record_add(&b, "ahello world", 12);
    const size_t directory = b.n;
    record_le(&b, 0x02014B50, 4);
    record_le(&b, 45 | 45 << 16, 4);
    record_le(&b, 0, 8);
    record_le(&b, 0x0D4A1185, 4);
    record_le(&b, l->packed, 4);
    record_le(&b, l->size, 4);
    record_le(&b, 1, 2);
    record_le(&b, n + 4 + own, 2);
    record_le(&b, 0, 10);
    record_le(&b, l->at, 4);
    record_add(&b, "a", 1);
    if (n) record_le(&b, l->id | 4 << 16, 4);
    if (n) record_le(&b, 7, 4);
    record_le(&b, 1 | own << 16, 4);
    for (int i = 0; i < l->n_extra; i++) record_le(&b, l->extra[i], 8);
    const size_t end = b.n;
    record_le(&b, 0x06064B50, 4);
    record_le(&b, 44, 8);
    record_le(&b, 45 | 45 << 16, 4);
    record_le(&b, l->disks, 8);
    record_le(&b, 1, 8);
    record_le(&b, 1, 8);
    record_le(&b, end - directory, 8);
    record_le(&b, directory, 8);
    record_le(&b, 0x07064B50, 4);
    record_le(&b, 0, 4);
    record_le(&b, end + (uint64_t)l->end, 8);
    record_le(&b, 1, 4);
    record_le(&b, 0x06054B50, 4);
    record_le(&b, 0, 4);
    for (int i = 0; i < 3; i++) record_le(&b, ONES, 4);
    record_le(&b, 0, 2);
    return b;
}

static void numbers_of_large_archives_are_read(void **state)
{
    (void)state;
    static const large cases[] = {
        { "all three", ONES, ONES, ONES, 3, { 11, 11, 0 } },
        { "the sizes", ONES, ONES, 0, 2, { 11, 11 } },
        { "the place", 11, 11, ONES, 1, { 0 } },
        { "none", 11, 11, 0, 0, { 0 } },
        { "behind another extra field", ONES, ONES, ONES, 3, { 11, 11, 0 }, 0x9999 },
        { "too few numbers", ONES, ONES, ONES, 2, { 11, 11 }, .refused = "no valid size" },
        { "no number", 11, ONES, 0, 0, { 0 }, .refused = "no valid size" },
        { "a place behind the end", 11, 11, ONES, 1, { UINT64_MAX }, .refused = "claims 11 bytes" },
        { "a size of all memory", 11, ONES, 0, 1, { UINT64_MAX }, .refused = "claims 11 bytes" },
        { "a part of several files", 11, 11, 0, 0, { 0 }, .disks = 1, .refused = "several files" },
        { "the last part of several files",
          11,
          11,
          0,
          0,
          { 0 },
          .disks = UINT64_C(1) << 32,
          .refused = "several files" },
        { "an end record elsewhere", 11, 11, 0, 0, { 0 }, .end = -1, .refused = "is missing" },
        { "an end record before the file",
          11,
          11,
          0,
          0,
          { 0 },
          .end = INT64_MIN,
          .refused = "is missing" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const large *l = &cases[i];
        record_bytes b = large_archive(l);
        keel_zip *z = NULL;
        void *bytes = NULL;
        size_t n = 0;
        keel_status s = keel_zip_open_memory(&z, b.at, b.n, "large.zip");
        if (s >= 0) s = keel_zip_read(z, "a", 100, &bytes, &n);
        if ((s < 0) != !!l->refused || (s < 0 && !strstr(keel_error(), l->refused)))
            fail_msg("%s: %s", l->what, s < 0 ? keel_error() : "is read");
        if (s >= 0) assert_int_equal(n, 11);
        if (s >= 0) assert_memory_equal(bytes, "hello world", 11);
        keel_free(bytes);
        keel_zip_close(z);
        free(b.at);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* Deflated, with a repetition that is as far behind as deflate allows, and `more` bytes behind it
 * or cut off. */
static record_bytes deflated_archive(const unsigned char *data, size_t n, int size_more, int more,
                                     uint32_t crc_flips)
{
    record_bytes b = { 0 };
    static unsigned char packed[1 << 17];
    z_stream z = { .next_in = (unsigned char *)data,
                   .avail_in = (uInt)n,
                   .next_out = packed,
                   .avail_out = sizeof packed };
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    const size_t n_packed = (size_t)((long)z.total_out + more),
                 size = (size_t)((long)n + size_more);
    const uint32_t crc = (uint32_t)crc32(0, data, (uInt)n) ^ crc_flips;
    for (int directory = 0; directory < 2; directory++) {
        record_le(&b, directory ? 0x02014B50 : 0x04034B50, 4);
        if (directory) record_le(&b, 20, 2);
        record_le(&b, 20, 4);
        record_le(&b, 8, 2);
        record_le(&b, 0, 4);
        record_le(&b, crc, 4);
        record_le(&b, n_packed, 4);
        record_le(&b, size, 4);
        record_le(&b, 1, directory ? 8 : 4);
        if (directory) record_le(&b, 0, 8);
        if (directory) record_le(&b, 0, 2);
        record_add(&b, "a", 1);
        if (!directory) record_add(&b, packed, n_packed);
    }
    record_le(&b, 0x06054B50, 4);
    record_le(&b, 0, 4);
    record_le(&b, 1 | 1 << 16, 4);
    record_le(&b, 47, 4);
    record_le(&b, 31 + n_packed, 4);
    record_le(&b, 0, 2);
    return b;
}

static void a_deflated_member_has_the_size_and_the_bytes_that_it_claims(void **state)
{
    (void)state;
    enum { BACK = 32500, N = BACK + 1000 };
    static const struct {
        int size_more, more;
        uint32_t crc_flips;
        const char *says; /* NULL: it is read */
    } cases[] = {
        { 0, 0, 0, NULL },
        { -1, 0, 0, "longer than the size it claims" },
        { 1, 0, 0, "ends before the size it claims" },
        { 0, 1, 0, "longer than the size it claims" },
        { 0, -1, 0, "cut short" },
        { 0, 0, 1, "its checksum differs" },
    };
    static unsigned char data[N];
    uint32_t random = 1;
    for (int i = 0; i < N; i++) {
        random = random * 1664525 + 1013904223;
        data[i] = i < BACK ? (unsigned char)(random >> 24) : data[i - BACK];
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_zip *z = NULL;
        void *bytes = NULL;
        size_t n = 0;
        record_bytes b =
            deflated_archive(data, N, cases[i].size_more, cases[i].more, cases[i].crc_flips);
        assert_int_equal(keel_zip_open_memory(&z, b.at, b.n, "deflated.zip"), KEEL_OK);
        uint64_t at = 1;
        assert_int_equal(keel_zip_place(z, 0, &at), KEEL_OK);
        assert_int_equal(at, 0);
        const keel_status s = keel_zip_read(z, "a", 1 << 20, &bytes, &n);
        if (cases[i].says) {
            assert_int_equal(s, KEEL_EFORMAT);
            if (!strstr(keel_error(), cases[i].says))
                fail_msg("%s: %s", cases[i].says, keel_error());
        } else {
            assert_int_equal(s, KEEL_OK);
            assert_int_equal(n, N);
            assert_memory_equal(bytes, data, N);
        }
        keel_free(bytes);
        keel_zip_close(z);
        free(b.at);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    keel_status s = KEEL_ENOMEM;
    for (int i = 0; s < 0 && i < 100; i++) {
        keel_zip *z = NULL;
        void *bytes = NULL;
        size_t n = 0;
        keel_memory_fail_at(i);
        s = keel_zip_open(&z, "golden/sequential_plain.keras");
        if (s >= 0) s = keel_zip_read(z, "config.json", 1 << 20, &bytes, &n);
        if (s >= 0) {
            const keel_zip_member m = { "a", bytes, n };
            s = keel_zip_write(in_scratch("alloc.zip"), &m, 1);
        }
        keel_memory_fail_at(-1);
        keel_free(bytes);
        keel_zip_close(z);
        assert_true(s == KEEL_OK || s == KEEL_ENOMEM);
        assert_int_equal(keel_memory_live(), 0);
    }
    assert_int_equal(s, KEEL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_back_and_the_file_is_the_same_each_time),
        cmocka_unit_test(a_member_can_be_made_while_it_is_written),
        cmocka_unit_test(names_may_not_repeat),
        cmocka_unit_test(a_lying_directory_is_refused),
        cmocka_unit_test(any_cut_or_changed_byte_gives_an_error_or_the_bytes),
        cmocka_unit_test(only_a_plain_file_is_replaced),
        cmocka_unit_test(a_file_that_is_cut_while_it_is_open_is_an_error),
        cmocka_unit_test(members_that_share_bytes_are_refused),
        cmocka_unit_test(numbers_of_large_archives_are_read),
        cmocka_unit_test(a_deflated_member_has_the_size_and_the_bytes_that_it_claims),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
