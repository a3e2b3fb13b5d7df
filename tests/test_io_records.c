/* Checksums, TFRecord files, tf.train.Example and tar archives: what is read, and what of hostile
 * or damaged files is refused. */
#include "data_files.h"
#include "base/memory.h"
#include "golden.h"
#include "io/crc32c.h"
#include "io/example.h"
#include "io/tar.h"
#include "io/tfrecord.h"
#include "must.h"
#include "record_files.h"
#include <zlib.h>

#define COUNT(list) (sizeof list / sizeof *list)

static void checksums_are_those_of_the_standard(void **state)
{
    (void)state;
    unsigned char bytes[32];
    /* RFC 3720, B.4 */
    memset(bytes, 0, 32);
    assert_int_equal(keel_crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    assert_int_equal(keel_crc32c(bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
    assert_int_equal(keel_crc32c(bytes, 32), 0x46dd794e);
    assert_int_equal(keel_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(keel_crc32c(NULL, 0), 0);
}

static void the_instruction_agrees_with_plain_c_for_any_length_and_place(void **state)
{
    (void)state;
    enum { N = 40000 };
    unsigned char *data = malloc(N + 8);
    for (int i = 0; i < N + 8; i++) data[i] = (unsigned char)((unsigned)i * 2654435761u >> 13);
    for (int n = 0; n < 1700; n++)
        assert_int_equal(keel_crc32c(data + n % 8, (size_t)n),
                         keel_crc32c_plain(data + n % 8, (size_t)n));
    for (int n = 12200; n < N; n += 997)
        assert_int_equal(keel_crc32c(data + n % 8, (size_t)n),
                         keel_crc32c_plain(data + n % 8, (size_t)n));
    free(data);
}

/* ---- examples -------------------------------------------------------------------------------- */

static void numbers_are_read_packed_and_not_packed(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int kind;
        unsigned char list[40];
        size_t n;
        double want[4];
        int count;
    } cases[] = {
        { "packed integers", 3, { 0x0a, 3, 1, 0xac, 2 }, 5, { 1, 300 }, 2 },
        { "single integers", 3, { 0x08, 1, 0x08, 0xac, 2 }, 5, { 1, 300 }, 2 },
        { "both", 3, { 0x08, 7, 0x0a, 2, 8, 9, 0x08, 1 }, 8, { 7, 8, 9, 1 }, 4 },
        { "a negative integer",
          3,
          { 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 },
          11,
          { -1 },
          1 },
        { "an empty packed list", 3, { 0x0a, 0 }, 2, { 0 }, 0 },
        { "no list of integers", 3, { 0 }, 0, { 0 }, 0 },
        { "packed floats", 2, { 0x0a, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0 }, 10, { 1, -2 }, 2 },
        { "single floats", 2, { 0x0d, 0, 0, 0x80, 0x3f, 0x0d, 0, 0, 0, 0xc0 }, 10, { 1, -2 }, 2 },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        record_bytes features = { 0 };
        record_entry(&features, "other", 1, "\x0a\1a", 3);
        record_entry(&features, "a", cases[i].kind, cases[i].list, cases[i].n);
        record_bytes e = record_example(features);
        const char *const names[] = { "a", "missing" };
        keel_feature f[2];
        int64_t whole[4] = { 0 };
        float real[4] = { 0 };
        must(keel_example_find(f, names, 2, e.at, e.n));
        if (f[0].count != cases[i].count) fail_msg("%s: %d values", cases[i].what, (int)f[0].count);
        assert_int_equal(f[0].kind, cases[i].kind);
        assert_int_equal(f[1].kind, KEEL_FEATURE_MISSING);
        if (cases[i].kind == 3)
            must(keel_feature_int64(&f[0], whole));
        else
            keel_feature_float(&f[0], real);
        for (int k = 0; k < cases[i].count; k++)
            if (cases[i].want[k] != (cases[i].kind == 3 ? (double)whole[k] : (double)real[k]))
                fail_msg("%s: value %d is %lld, %g", cases[i].what, k, (long long)whole[k],
                         (double)real[k]);
        free(e.at);
    }
}

static keel_status pass(void *arg, const char *name, size_t n_name, const keel_feature *f)
{
    (void)arg, (void)name, (void)n_name, (void)f;
    return KEEL_OK;
}

static void a_record_that_is_no_example_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *what, *says;
        unsigned char bytes[48];
        size_t n;
    } bad[] = {
        { "another message", "another kind", { 0x08, 1 }, 2 },
        { "a length behind the end", "another kind", { 0x0a, 9, 1 }, 3 },
        { "a length of 2^63",
          "another kind",
          { 0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0 },
          11 },
        { "a length of 11 bytes",
          "another kind",
          { 0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 },
          12 },
        { "features twice", "twice", { 0x0a, 0, 0x0a, 0 }, 4 },
        { "a sequence", "SequenceExample", { 0x12, 0 }, 2 },
        { "an entry without a name", "without a name", { 0x0a, 4, 0x0a, 2, 0x12, 0 }, 6 },
        { "two names", "two names", { 0x0a, 8, 0x0a, 6, 0x0a, 1, 'a', 0x0a, 1, 'b' }, 10 },
        { "a list of a fourth kind",
          "neither bytes_list",
          { 0x0a, 9, 0x0a, 7, 0x0a, 1, 'a', 0x12, 2, 0x22, 0 },
          11 },
        { "two lists",
          "two lists",
          { 0x0a, 11, 0x0a, 9, 0x0a, 1, 'a', 0x12, 4, 0x12, 0, 0x1a, 0 },
          13 },
        { "half a float",
          "cut short",
          { 0x0a, 13, 0x0a, 11, 0x0a, 1, 'a', 0x12, 6, 0x12, 4, 0x0a, 2, 0, 0 },
          15 },
        { "an integer without an end",
          "cut short",
          { 0x0a, 12, 0x0a, 10, 0x0a, 1, 'a', 0x12, 5, 0x1a, 3, 0x0a, 1, 0x80 },
          14 },
        { "a float among integers",
          "another type",
          { 0x0a, 14, 0x0a, 12, 0x0a, 1, 'a', 0x12, 7, 0x1a, 5, 0x0d, 0, 0, 0, 0 },
          16 },
        { "another field in a list",
          "something else",
          { 0x0a, 11, 0x0a, 9, 0x0a, 1, 'a', 0x12, 4, 0x1a, 2, 0x10, 1 },
          13 },
        { "a field of number 0 in a list",
          "something else",
          { 0x0a, 11, 0x0a, 9, 0x0a, 1, 'a', 0x12, 4, 0x1a, 2, 0x00, 1 },
          13 },
        { "a text behind the end of its list",
          "cut short",
          { 0x0a, 12, 0x0a, 10, 0x0a, 1, 'a', 0x12, 5, 0x0a, 3, 0x0a, 9, 'b' },
          14 },
        { "a feature twice",
          "twice",
          { 0x0a, 22,   0x0a, 9,    0x0a, 1,   'a',  0x12, 4,    0x1a, 2,    0x08,
            1,    0x0a, 9,    0x0a, 1,    'a', 0x12, 4,    0x1a, 2,    0x08, 1 },
          24 },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        const char *const name = "a";
        keel_feature f;
        unsigned char *copy = malloc(bad[i].n); /* so that sanitizers see its end */
        memcpy(copy, bad[i].bytes, bad[i].n);
        if (keel_example_find(&f, &name, 1, copy, bad[i].n) >= 0)
            fail_msg("%s: is read", bad[i].what);
        if (!strstr(keel_error(), bad[i].says)) fail_msg("%s: %s", bad[i].what, keel_error());
        if (strcmp(bad[i].what, "a feature twice") && /* which is for who looks for it */
            keel_example_each(copy, bad[i].n, pass, NULL) >= 0)
            fail_msg("%s: is read by who looks at each feature", bad[i].what);
        free(copy);
    }
}

static void an_integer_of_more_than_64_bits_is_refused(void **state)
{
    (void)state;
    unsigned char list[14] = { 0x0a, 12 };
    int64_t out[2];
    memset(list + 2, 0x80, 11);
    keel_feature f = { KEEL_FEATURE_INT64, 1, list, sizeof list };
    assert_int_equal(keel_feature_int64(&f, out), KEEL_EFORMAT);
    list[11] = 2; /* ten bytes, of which the last has a bit too many */
    assert_int_equal(keel_feature_int64(&f, out), KEEL_EFORMAT);
}

/* ---- TFRecord -------------------------------------------------------------------------------- */

static keel_status read_all(const char *path, int64_t *count)
{
    keel_tfrecord t;
    keel_scratch scratch = { 0 };
    int64_t room = KEEL_INFLATED_MAX;
    keel_status s = keel_tfrecord_open(&t, path, true, &room);
    *count = t.count;
    for (int64_t i = 0; s >= 0 && i < t.count; i++) {
        const unsigned char *data;
        size_t n;
        s = keel_tfrecord_read(&t, i, &scratch, &data, &n);
    }
    keel_scratch_free(&scratch);
    keel_tfrecord_close(&t);
    return s;
}

static record_bytes three_records(void)
{
    record_bytes b = { 0 };
    record_put(&b, "first", 5); /* ends at 21 */
    record_put(&b, "", 0);      /* ends at 37 */
    record_put(&b, "the third", 9);
    return b;
}

static void every_damaged_byte_of_a_file_is_found(void **state)
{
    (void)state;
    record_bytes b = three_records();
    int64_t count;
    files_begin();
    must(read_all(files_write("a.tfrecord", b.at, b.n), &count));
    assert_int_equal(count, 3);
    for (size_t i = 0; i < b.n; i++)
        for (int bit = 0; bit < 8; bit += 3) {
            b.at[i] ^= (unsigned char)(1 << bit);
            assert_int_equal(read_all(files_write("a.tfrecord", b.at, b.n), &count), KEEL_EFORMAT);
            b.at[i] ^= (unsigned char)(1 << bit);
        }
    for (size_t n = 1; n < b.n; n++) {
        if (n == 21 || n == 37) continue; /* whole records */
        assert_int_equal(read_all(files_write("a.tfrecord", b.at, n), &count), KEEL_EFORMAT);
        assert_non_null(strstr(keel_error(), "cut short"));
    }
    free(b.at);
    files_end();
}

static void the_error_names_file_record_byte_and_checksum(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        const char *says;
    } cases[] = {
        { 2, "record 0 at byte 0 is damaged: its length" },
        { 14, "record 0 at byte 0 is damaged: its 5 bytes of data" },
        { 45, "record 2 at byte 37 is damaged: its length" },
        { 60, "record 2 at byte 37 is damaged: its 9 bytes of data" },
    };
    record_bytes b = three_records();
    int64_t count;
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        b.at[cases[i].at] ^= 4;
        assert_int_equal(read_all(files_write("a.tfrecord", b.at, b.n), &count), KEEL_EFORMAT);
        if (!strstr(keel_error(), cases[i].says) || !strstr(keel_error(), "a.tfrecord"))
            fail_msg("byte %zu: %s", cases[i].at, keel_error());
        b.at[cases[i].at] ^= 4;
    }
    assert_int_equal(read_all(files_write("a.tfrecord", b.at, b.n - 3), &count), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "record 2, which begins at byte 37"));
    free(b.at);
    files_end();
}

static void files_of_tensorflow_have_six_records_however_they_are_packed(void **state)
{
    (void)state;
    static const char *const names[] = { "numbers.tfrecord", "numbers.tfrecord.gz",
                                         "zlib.tfrecord" };
    json_t *golden = golden_load("records.json");
    files_begin();
    for (size_t i = 0; i < COUNT(names); i++) {
        size_t n;
        int64_t count;
        unsigned char *data =
            files_base64(golden_text(json_object_get(golden, "files"), names[i]), &n);
        must(read_all(files_write("a.tfrecord", data, n), &count));
        assert_int_equal(count, 6);
        for (size_t cut = 1; i && cut < n; cut += 7)
            assert_int_equal(read_all(files_write("a.tfrecord", data, cut), &count), KEEL_EFORMAT);
        free(data);
    }
    files_end();
    json_decref(golden);
    assert_int_equal(keel_memory_live(), 0);
}

static void add_gzipped(record_bytes *to, const void *data, size_t n)
{
    unsigned char out[512];
    z_stream z = { .next_in = (Bytef *)data, .avail_in = (uInt)n };
    z.next_out = out;
    z.avail_out = sizeof out;
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    record_add(to, out, sizeof out - z.avail_out);
}

static void joined_gzip_files_have_the_records_of_all(void **state)
{
    static const size_t cuts[] = { 21, 30, 45 }; /* between records, and within them */
    (void)state;
    record_bytes b = three_records();
    files_begin();
    for (size_t i = 0; i < COUNT(cuts); i++) {
        record_bytes joined = { 0 };
        int64_t count = 0;
        add_gzipped(&joined, b.at, cuts[i]);
        add_gzipped(&joined, b.at + cuts[i], b.n - cuts[i]);
        must(read_all(files_write("a.tfrecord", joined.at, joined.n), &count));
        assert_int_equal(count, 3);
        free(joined.at);
    }
    free(b.at);
    files_end();
}

static void gzipped_files_have_one_room_together(void **state)
{
    (void)state;
    record_bytes b = three_records(), zipped = { 0 };
    const int64_t n = (int64_t)b.n;
    const struct {
        const char *what;
        int64_t room;
        int fits; /* files */
    } cases[] = {
        { "room for two", 2 * n, 2 },
        { "a byte less than two need", 2 * n - 1, 1 },
        { "room for one", n, 1 },
        { "a byte less than one needs", n - 1, 0 },
    };
    files_begin();
    add_gzipped(&zipped, b.at, b.n);
    const char *path = files_write("a.tfrecord", zipped.at, zipped.n);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t room = cases[i].room;
        for (int k = 0; k < 3; k++) {
            keel_tfrecord t;
            const keel_status s = keel_tfrecord_open(&t, path, true, &room);
            keel_tfrecord_close(&t);
            if (s != (k < cases[i].fits ? KEEL_OK : KEEL_EDATA))
                fail_msg("%s, file %d: %s", cases[i].what, k, s < 0 ? keel_error() : "it fits");
        }
    }
    free(b.at);
    free(zipped.at);
    files_end();
}

/* ---- tar ------------------------------------------------------------------------------------- */

static keel_status list_tar(const char *path, char *names, size_t size)
{
    keel_tar t;
    int64_t room = KEEL_INFLATED_MAX;
    const keel_status s = keel_tar_open(&t, path, true, &room);
    size_t at = 0;
    *names = 0;
    for (int64_t i = 0; s >= 0 && i < t.count; i++)
        at += (size_t)snprintf(names + at, size - at, "%s:%d ", keel_tar_name(&t, i),
                               (int)t.member[i].n_bytes);
    keel_tar_close(&t);
    return s;
}

static void long_names_and_large_sizes_come_from_special_members(void **state)
{
    (void)state;
    enum { LONG = 2000 };
    char names[4096], longer[LONG + 1], want[LONG + 100];
    memset(longer, 'n', LONG);
    longer[LONG] = 0;
    files_begin();
    record_bytes b = { 0 };
    tar_put(&b, "folder/", '5', "", 0);
    tar_put(&b, "@LongLink", 'L', longer, LONG + 1);
    tar_put(&b, "short", '0', "abc", 3);
    tar_put(&b, "p", 'x', "12 path=a=b\n10 size=4\n15 mtime=12.34\n", 37);
    const size_t sized = b.n;
    tar_put(&b, "q", '0', "wxyz", 4);
    memset(b.at + sized + 124, '7', 11); /* its own size does not count then */
    tar_sum(b.at + sized);
    tar_put(&b, "g", 'g', "13 comment=a\n", 13);
    tar_put(&b, "old", 0, "", 0);
    tar_end(&b);
    const size_t whole = b.n;
    record_add(&b, (char[9000]){ 0 }, 9000); /* filled up, as GNU tar does */
    must(list_tar(files_write("a.tar", b.at, b.n), names, sizeof names));
    snprintf(want, sizeof want, "%s:3 a=b:4 old:0 ", longer);
    assert_string_equal(names, want);
    b.at[b.n - 1] = 1;
    assert_int_equal(list_tar(files_write("a.tar", b.at, b.n), names, sizeof names), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "behind the end"));
    for (size_t n = 0; n + 1024 < whole; n += 256) {
        assert_int_equal(list_tar(files_write("a.tar", b.at, n), names, sizeof names),
                         KEEL_EFORMAT);
        assert_non_null(strstr(keel_error(), "cut short"));
    }
    free(b.at);
    files_end();
}

/* Fields of a header as programs of old and of others write them. */
static void a_header_has_several_forms(void **state)
{
    (void)state;
    static const struct {
        int at, n;
        const char *bytes, *want; /* want: the list; or what is wrong */
    } cases[] = {
        { 124, 12, "00000000003 ", "m:3 " },
        { 124, 12, "         3\0\0", "m:3 " },
        { 124, 12, "000000000003", "m:3 " },
        { 124, 12, "\x80\0\0\0\0\0\0\0\0\0\0\3", "m:3 " },
        { 124, 12, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", "its size is too large" },
        { 124, 12, "\x80\0\0\0\x80\0\0\0\0\0\0\0", "its size is no number" },
        { 124, 12, "\x81\0\0\0\0\0\0\0\0\0\0\3", "its size is no number" },
        { 124, 12, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "its size is no number" },
        { 124, 12, "00000000008\0", "its size is no number" },
        { 124, 12, "3 3\0\0\0\0\0\0\0\0\0", "its size is no number" },
        { 124, 12, "x\0\0\0\0\0\0\0\0\0\0\0", "its size is no number" },
        { 124, 12, "00000010000\0", "its last member ends behind it" },
        { 345, 4, "a/b\0", "a/b/m:3 " },
        { 257, 8, "ustar  \0", "m:3 " },
        { 156, 1, "7", "m:3 " },
        { 156, 1, "V", "" },
        { 0, 2, "d/", "" },
        { 0, 2, "\0\0", "a member without a name" },
    };
    char names[512];
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int spaces = 0; spaces < 2; spaces++) { /* how the checksum ends */
            record_bytes b = { 0 };
            tar_put(&b, "m", '0', "abc", 3);
            if (cases[i].at == 257) memcpy(b.at + 345, "time", 4); /* GNU has other fields there */
            memcpy(b.at + cases[i].at, cases[i].bytes, (size_t)cases[i].n);
            tar_sum(b.at);
            if (!spaces) {
                memmove(b.at + 149, b.at + 148, 6);
                memcpy(b.at + 148, "0", 1);
                b.at[155] = 0;
            }
            tar_end(&b);
            const keel_status s = list_tar(files_write("a.tar", b.at, b.n), names, sizeof names);
            if (s < 0 ? !strstr(keel_error(), cases[i].want) || !*cases[i].want
                      : strcmp(names, cases[i].want) != 0)
                fail_msg("case %zu: %s", i, s < 0 ? keel_error() : names);
            free(b.at);
        }
    files_end();
}

static void an_archive_may_be_filled_up_with_a_mebibyte_of_zeros(void **state)
{
    (void)state;
    char names[64];
    record_bytes b = { 0 };
    files_begin();
    tar_put(&b, "m", '0', "abc", 3);
    record_add(&b, (char[512]){ 0 }, 512);
    char *zeros = calloc(1 << 20, 1);
    record_add(&b, zeros, 1 << 20);
    must(list_tar(files_write("a.tar", b.at, b.n), names, sizeof names));
    assert_string_equal(names, "m:3 ");
    record_add(&b, zeros, 1);
    assert_int_equal(list_tar(files_write("a.tar", b.at, b.n), names, sizeof names), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "behind the end"));
    free(zeros);
    free(b.at);
    files_end();
}

/* Of many archives only the first ones stay open. */
static void what_is_not_to_stay_open_is_closed(void **state)
{
    (void)state;
    files_begin();
    record_bytes b = { 0 }, r = { 0 };
    tar_put(&b, "m", '0', "abc", 3);
    tar_end(&b);
    record_put(&r, "abc", 3);
    files_write("a.tar", b.at, b.n);
    files_write("a.tfrecord", r.at, r.n);
    const int before = files_open();
    for (int open = 0; open < 2; open++) {
        keel_tar t;
        keel_tfrecord f;
        int64_t room = KEEL_INFLATED_MAX;
        must(keel_tar_open(&t, files_path("a.tar"), open, &room));
        must(keel_tfrecord_open(&f, files_path("a.tfrecord"), open, &room));
        assert_int_equal(files_open(), before + 2 * open);
        const unsigned char *data;
        char buffer[8];
        size_t n;
        keel_scratch scratch = { 0 };
        must(keel_input_read(&t.in, t.member[0].offset, 3, buffer, &data));
        assert_memory_equal(data, "abc", 3);
        must(keel_tfrecord_read(&f, 0, &scratch, &data, &n));
        assert_int_equal(n, 3);
        assert_memory_equal(data, "abc", 3);
        keel_scratch_free(&scratch);
        keel_tar_close(&t);
        keel_tfrecord_close(&f);
        assert_int_equal(files_open(), before);
    }
    free(b.at);
    free(r.at);
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static void members_without_data_of_their_own_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        char type;
        const char *data, *says;
    } cases[] = {
        { '1', "", "'m' at byte 0 is a link" },
        { '2', "", "'m' at byte 0 is a link" },
        { '3', "", "a device" },
        { '6', "", "a pipe" },
        { 'S', "", "sparse" },
        { 'M', "", "multi-volume" },
        { 'Z', "", "unknown type 90" },
        { 'x', "22 GNU.sparse.major=1\n", "sparse" },
        { 'x', "99 path=a\n", "pax records" },
        { 'x', "8 path=a\n", "pax records" },
        { 'x', "10 path=ab", "pax records" },
        { 'x', "9 size=x\n", "no number" },
        { 'x', "7 path\n", "pax records" },
        { 'g', "9 path=a\n", "for all members" },
        { 'L', "", "a name that is empty" },
    };
    char names[256];
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        record_bytes b = { 0 };
        tar_put(&b, "m", cases[i].type, cases[i].data, strlen(cases[i].data));
        tar_put(&b, "n", '0', "", 0);
        tar_end(&b);
        if (list_tar(files_write("a.tar", b.at, b.n), names, sizeof names) >= 0)
            fail_msg("case %zu is read: %s", i, names);
        if (!strstr(keel_error(), cases[i].says) || !strstr(keel_error(), "a.tar"))
            fail_msg("case %zu: %s", i, keel_error());
        free(b.at);
    }
    files_end();
}

static void every_damaged_byte_of_a_header_is_found(void **state)
{
    (void)state;
    char names[256];
    record_bytes b = { 0 };
    files_begin();
    tar_put(&b, "first", '0', "abc", 3);
    tar_put(&b, "second", '0', "defg", 4);
    tar_end(&b);
    for (size_t i = 1024; i < 1536; i++) {
        b.at[i] ^= 1;
        const keel_status s = list_tar(files_write("a.tar", b.at, b.n), names, sizeof names);
        if (s >= 0) fail_msg("byte %zu: %s", i, names);
        b.at[i] ^= 1;
    }
    assert_int_equal(list_tar(files_text("a.tar", "no archive"), names, sizeof names),
                     KEEL_EFORMAT);
    free(b.at);
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_those_of_the_standard),
        cmocka_unit_test(the_instruction_agrees_with_plain_c_for_any_length_and_place),
        cmocka_unit_test(numbers_are_read_packed_and_not_packed),
        cmocka_unit_test(a_record_that_is_no_example_is_refused),
        cmocka_unit_test(an_integer_of_more_than_64_bits_is_refused),
        cmocka_unit_test(every_damaged_byte_of_a_file_is_found),
        cmocka_unit_test(the_error_names_file_record_byte_and_checksum),
        cmocka_unit_test(files_of_tensorflow_have_six_records_however_they_are_packed),
        cmocka_unit_test(joined_gzip_files_have_the_records_of_all),
        cmocka_unit_test(gzipped_files_have_one_room_together),
        cmocka_unit_test(long_names_and_large_sizes_come_from_special_members),
        cmocka_unit_test(a_header_has_several_forms),
        cmocka_unit_test(an_archive_may_be_filled_up_with_a_mebibyte_of_zeros),
        cmocka_unit_test(what_is_not_to_stay_open_is_closed),
        cmocka_unit_test(members_without_data_of_their_own_are_refused_by_name),
        cmocka_unit_test(every_damaged_byte_of_a_header_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
