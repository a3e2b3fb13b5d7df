/* Tar archives; see tar.h. A member is a header of 512 bytes, and its data, filled up to a multiple
 * of 512. Special members before it, pax's and GNU's, give it a longer name or a larger size. */
#include "io/tar.h"
#include "base/memory.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

enum {
    BLOCK = 512,
    NAME_MAX_BYTES = 4096,
    EXTRA_MAX = 1 << 16, /* bytes of a special member */
    AHEAD = 1 << 16,
    PADDING_MAX = 1 << 20, /* zeros behind the end of an archive */
};

/* Where the fields of a header are. */
enum { SIZE = 124, CHECKSUM = 148, TYPE = 156, MAGIC = 257, PREFIX = 345, PREFIX_END = 500 };

typedef struct walk {
    keel_tar *t;
    uint64_t at;                 /* of the next header */
    uint64_t n_bytes;            /* of the archive, as far as it is known */
    bool whole;                  /* n_bytes is all of it */
    bool ended;                  /* a block of zeros was seen */
    uint64_t end;                /* behind it */
    const unsigned char *memory; /* NULL: read from the file, by `window` */
    unsigned char *window;
    uint64_t from, have; /* the bytes in the window */
    uint64_t last;       /* bytes of the last member */
    /* From special members, for the next one. */
    char name[NAME_MAX_BYTES + 1];
    bool named, sized;
    uint64_t size;
} walk;

static keel_status damaged(const walk *w, const char *why)
{
    return keel_fail(KEEL_EFORMAT, "%s: the header at byte %llu is damaged: %s", w->t->in.path,
                     (unsigned long long)w->at, why);
}

static keel_status cut_short(const walk *w, const char *why)
{
    return keel_fail(KEEL_EFORMAT, "%s: is cut short at byte %llu: %s", w->t->in.path,
                     (unsigned long long)w->n_bytes, why);
}

/* Bytes [at, at + n), n at most EXTRA_MAX. KEEL_END: they are not inflated yet. */
static keel_status get(walk *w, uint64_t at, size_t n, const unsigned char **out)
{
    if (at > w->n_bytes || n > w->n_bytes - at)
        return w->whole ? cut_short(w, "a member ends behind it") : KEEL_END;
    if (w->memory) {
        *out = w->memory + at;
        return KEEL_OK;
    }
    if (at < w->from || at + n > w->from + w->have) {
        w->from = at;
        w->have = w->last < AHEAD / 4 ? AHEAD : n;
        if (w->have > w->n_bytes - at) w->have = w->n_bytes - at;
        KEEL_TRY(keel_file_read_at(&w->t->in.file, at, w->window, (size_t)w->have));
    }
    *out = w->window + (at - w->from);
    return KEEL_OK;
}

/* ---- headers --------------------------------------------------------------------------------- */

static bool is_zero(const unsigned char *b, size_t n)
{
    while (n && !*b) b++, n--;
    return !n;
}

/* Octal digits between spaces, up to the end of the field. */
static bool read_octal(const unsigned char *b, size_t n, uint64_t *out)
{
    size_t i = 0;
    uint64_t v = 0;
    while (i < n && b[i] == ' ') i++;
    const size_t first = i;
    for (; i < n && b[i] >= '0' && b[i] <= '7'; i++) v = v << 3 | (uint64_t)(b[i] - '0');
    if (i == first && i < n && b[i]) return false;
    for (; i < n; i++)
        if (b[i] && b[i] != ' ') return false;
    *out = v;
    return true;
}

/* The size: octal, or in GNU's form a big-endian number behind a first byte of 128. */
static bool read_size(const unsigned char *b, uint64_t *out)
{
    enum { N = 12 };
    if (b[0] < 128) return read_octal(b, N, out);
    uint64_t v = b[0] & 127;
    for (int i = 1; i < N; i++) {
        if (v >> 55) return false;
        v = v << 8 | b[i];
    }
    *out = v;
    return b[0] == 128;
}

/* The sum of all bytes, with spaces in place of the checksum; old programs took them as signed. */
static bool has_checksum(const unsigned char *h)
{
    uint64_t stored;
    int64_t sum = 0, sum_signed = 0;
    for (int i = 0; i < BLOCK; i++) {
        const bool own = i >= CHECKSUM && i < CHECKSUM + 8;
        sum += own ? ' ' : h[i];
        sum_signed += own ? ' ' : (signed char)h[i];
    }
    return read_octal(h + CHECKSUM, 8, &stored) &&
           ((int64_t)stored == sum || (int64_t)stored == sum_signed);
}

static void header_name(char out[NAME_MAX_BYTES + 1], const unsigned char *h)
{
    const bool posix = !memcmp(h + MAGIC, "ustar", 6); /* GNU's has a space behind */
    const int prefix = posix ? (int)strnlen((const char *)h + PREFIX, PREFIX_END - PREFIX) : 0;
    snprintf(out, NAME_MAX_BYTES + 1, "%.*s%s%.100s", prefix, (const char *)h + PREFIX,
             prefix ? "/" : "", (const char *)h);
}

/* ---- special members ------------------------------------------------------------------------- */

static keel_status take_name(walk *w, const unsigned char *name, size_t n)
{
    if (!n || n > NAME_MAX_BYTES || memchr(name, 0, n))
        return damaged(w, "a name that is empty, longer than 4096 bytes, or has a zero byte");
    memcpy(w->name, name, n);
    w->name[n] = 0;
    w->named = true;
    return KEEL_OK;
}

static keel_status take_pax(walk *w, const char *key, size_t n_key, const unsigned char *value,
                            size_t n, bool global)
{
    const bool path = n_key == 4 && !memcmp(key, "path", 4);
    const bool size = n_key == 4 && !memcmp(key, "size", 4);
    if (n_key >= 10 && !memcmp(key, "GNU.sparse", 10))
        return keel_fail(KEEL_EUNSUP,
                         "%s: the member at byte %llu is a sparse file, which is not read; make "
                         "the archive without --sparse",
                         w->t->in.path, (unsigned long long)w->at);
    if ((path || size) && global) return damaged(w, "a name or size for all members");
    if (path) return take_name(w, value, n);
    if (!size) return KEEL_OK; /* times, owners, comments */
    w->size = 0;
    w->sized = n > 0;
    for (size_t i = 0; i < n; i++)
        if (value[i] < '0' || value[i] > '9' || w->size > UINT64_MAX / 16)
            return damaged(w, "a size that is no number");
        else
            w->size = w->size * 10 + (value[i] - '0');
    return KEEL_OK;
}

/* pax: records "LENGTH KEY=VALUE\n", whose length counts itself. */
static keel_status read_pax(walk *w, const unsigned char *b, size_t n, bool global)
{
    for (size_t at = 0; at < n;) {
        size_t length = 0, i = at;
        for (; i < n && i < at + 6 && b[i] >= '0' && b[i] <= '9'; i++)
            length = 10 * length + (size_t)(b[i] - '0');
        if (i == at || i == n || b[i] != ' ' || length > n - at || length < i - at + 3 ||
            b[at + length - 1] != '\n')
            return damaged(w, "its pax records are not whole");
        const unsigned char *key = b + i + 1, *end = b + at + length - 1;
        const unsigned char *equals = memchr(key, '=', (size_t)(end - key));
        if (!equals) return damaged(w, "its pax records are not whole");
        KEEL_TRY(take_pax(w, (const char *)key, (size_t)(equals - key), equals + 1,
                          (size_t)(end - equals - 1), global));
        at += length;
    }
    return KEEL_OK;
}

static keel_status read_special(walk *w, unsigned char type, const unsigned char *b, size_t n)
{
    if (type == 'x' || type == 'g') return read_pax(w, b, n, type == 'g');
    if (type == 'L') return take_name(w, b, strnlen((const char *)b, n));
    return KEEL_OK; /* K: the name of a link's target */
}

/* ---- members --------------------------------------------------------------------------------- */

static keel_status add_member(walk *w, const char *name, uint64_t offset, uint64_t n_bytes)
{
    keel_tar *t = w->t;
    const size_t n = strlen(name) + 1;
    if (t->count == t->room) {
        const int64_t room = t->room ? 2 * t->room : 64;
        keel_tar_member *grown = keel_grow(t->member, (size_t)room, sizeof *grown);
        if (!grown) return KEEL_ENOMEM;
        t->member = grown;
        t->room = room;
    }
    if (n > t->names_room - t->n_names) {
        const size_t room = 2 * t->names_room + n + 1024;
        char *grown = keel_grow(t->names, room, 1);
        if (!grown) return KEEL_ENOMEM;
        t->names = grown;
        t->names_room = room;
    }
    memcpy(t->names + t->n_names, name, n);
    t->member[t->count++] = (keel_tar_member){ t->n_names, offset, n_bytes };
    t->n_names += n;
    return KEEL_OK;
}

static keel_status refuse(const walk *w, unsigned char type, const char *name)
{
    static const struct {
        char type;
        const char *what;
    } kinds[] = {
        { '1', "a link; store the files themselves, by tar --hard-dereference" },
        { '2', "a link; store the files themselves, by tar --dereference" },
        { '3', "a device" },
        { '4', "a device" },
        { '6', "a pipe" },
        { 'S', "a sparse file, which is not read; make the archive without --sparse" },
        { 'M', "a part of a multi-volume archive" },
    };
    char shown[256];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type)
            return keel_fail(KEEL_EUNSUP, "%s: member '%s' at byte %llu is %s", w->t->in.path,
                             keel_printable(shown, sizeof shown, name), (unsigned long long)w->at,
                             kinds[i].what);
    return keel_fail(KEEL_EUNSUP, "%s: member '%s' at byte %llu has the unknown type %d",
                     w->t->in.path, keel_printable(shown, sizeof shown, name),
                     (unsigned long long)w->at, type);
}

/* A member that is no special one: note plain files, pass over folders and volume labels. */
static keel_status take_member(walk *w, const unsigned char *h, uint64_t size)
{
    char own[NAME_MAX_BYTES + 1];
    const unsigned char type = h[TYPE];
    if (!w->named) header_name(own, h);
    const char *name = w->named ? w->name : own;
    const size_t n = strlen(name);
    if (type == '5' || type == 'V' || type == 'D') return KEEL_OK;
    if (type && type != '0' && type != '7') return refuse(w, type, name);
    if (!n) return damaged(w, "a member without a name");
    if (name[n - 1] == '/') return KEEL_OK; /* a folder, in the old format */
    return add_member(w, name, w->at + BLOCK, size);
}

/* Read the header at w->at and go to the next. */
static keel_status next(walk *w)
{
    const unsigned char *b;
    unsigned char h[BLOCK];
    uint64_t size;
    keel_status s;
    if (w->whole && w->at == w->n_bytes)
        return cut_short(w, "the block of zeros that ends an archive is not there");
    if ((s = get(w, w->at, BLOCK, &b)) != KEEL_OK) return s;
    memcpy(h, b, BLOCK);
    if (is_zero(h, BLOCK)) {
        w->ended = true;
        w->end = w->at += BLOCK;
        return KEEL_OK;
    }
    if (!has_checksum(h))
        return w->at ? damaged(w, "it does not have its checksum")
                     : keel_fail(KEEL_EFORMAT,
                                 "%s: is no tar archive, or its first header is damaged: it does "
                                 "not have its checksum",
                                 w->t->in.path);
    if (!read_size(h + SIZE, &size)) return damaged(w, "its size is no number");
    const unsigned char type = h[TYPE];
    const bool special = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (!special && w->sized) size = w->size;
    if (special && size > EXTRA_MAX) return damaged(w, "a name or pax records of more than 64 KiB");
    if (size > INT64_MAX - 2 * BLOCK - w->at) return damaged(w, "its size is too large");
    if (special) {
        if ((s = get(w, w->at + BLOCK, (size_t)size, &b)) != KEEL_OK) return s;
        KEEL_TRY(read_special(w, type, b, (size_t)size));
    } else {
        if (w->whole && w->at + BLOCK + size > w->n_bytes)
            return cut_short(w, "its last member ends behind it");
        KEEL_TRY(take_member(w, h, size));
        w->named = w->sized = false;
    }
    w->last = size;
    w->at += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
    return KEEL_OK;
}

/* Behind its end an archive is filled up with zeros. Anything else is another archive, whose rows
 * would be left out in silence. */
static keel_status check_end(walk *w)
{
    while (w->at < w->n_bytes) {
        const unsigned char *b;
        const uint64_t left = w->n_bytes - w->at;
        const size_t n = left < BLOCK ? (size_t)left : BLOCK;
        KEEL_TRY(get(w, w->at, n, &b));
        if (!is_zero(b, n) || w->n_bytes > w->end + PADDING_MAX)
            return keel_fail(KEEL_EFORMAT,
                             "%s: has more behind the end of the archive, at byte %llu; give "
                             "archives one by one, or join them by tar --concatenate",
                             w->t->in.path, (unsigned long long)w->at);
        w->at += n;
    }
    return KEEL_OK;
}

static keel_status walk_on(walk *w)
{
    keel_status s = KEEL_OK;
    while (s == KEEL_OK && !w->ended) s = next(w);
    if (s < 0) return s;
    return w->ended ? check_end(w) : KEEL_OK; /* or the rest is not inflated yet */
}

static keel_status look(void *arg, const unsigned char *data, uint64_t n, bool whole)
{
    walk *w = arg;
    w->memory = data;
    w->n_bytes = n;
    w->whole = whole;
    return walk_on(w);
}

static keel_status is_gzipped(const keel_tar *t, bool *out)
{
    unsigned char head[3];
    *out = false;
    if (t->in.n_bytes < sizeof head) return KEEL_OK;
    KEEL_TRY(keel_file_read_at(&t->in.file, 0, head, sizeof head));
    *out = head[0] == 0x1f && keel_input_is_deflated(head, sizeof head);
    return KEEL_OK;
}

static keel_status open_plain(keel_tar *t, walk *w, bool keep_open)
{
    if (!(w->window = keel_calloc(1, AHEAD))) return KEEL_ENOMEM;
    w->n_bytes = t->in.n_bytes;
    w->whole = true;
    const keel_status s = walk_on(w);
    keel_free(w->window);
    if (s >= 0 && !keep_open) keel_file_close(&t->in.file);
    return s;
}

keel_status keel_tar_open(keel_tar *out, const char *path, bool keep_open, int64_t *room)
{
    bool gzipped = false;
    *out = (keel_tar){ 0 };
    KEEL_TRY(keel_input_open(&out->in, path, true));
    KEEL_TRY(is_gzipped(out, &gzipped));
    walk *w = keel_calloc(1, sizeof *w);
    if (!w) return KEEL_ENOMEM;
    w->t = out;
    keel_status s;
    if (gzipped) {
        keel_input_close(&out->in);
        s = keel_input_inflate(&out->in, path, room, look, w);
    } else {
        s = open_plain(out, w, keep_open);
    }
    keel_free(w);
    return s;
}

void keel_tar_close(keel_tar *t)
{
    keel_input_close(&t->in);
    keel_free(t->member);
    keel_free(t->names);
    *t = (keel_tar){ 0 };
}
