/* The types of elements in .npy files: their codes and names, and how they become Keel's types. */
#include "io/npy.h"
#include "tensor/dtype.h"
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied unchanged");

enum { TEXT_WIDTH_MAX = 1 << 28 };

static const struct {
    char descr[4]; /* without byte order */
    unsigned char size;
    keel_dtype dtype;
    const char *name;
} types[KEEL_NPY_TYPE_COUNT] = {
    /* size: of a whole element; of S and U, of one character */
    [KEEL_NPY_F2] = { "f2", 2, KEEL_FLOAT32, "float16" },
    [KEEL_NPY_F4] = { "f4", 4, KEEL_FLOAT32, "float32" },
    [KEEL_NPY_F8] = { "f8", 8, KEEL_FLOAT64, "float64" },
    [KEEL_NPY_U1] = { "u1", 1, KEEL_UINT8, "uint8" },
    [KEEL_NPY_I4] = { "i4", 4, KEEL_INT32, "int32" },
    [KEEL_NPY_I8] = { "i8", 8, KEEL_INT64, "int64" },
    [KEEL_NPY_B1] = { "b1", 1, KEEL_BOOL, "bool" },
    [KEEL_NPY_I1] = { "i1", 1, KEEL_INT32, "int8" },
    [KEEL_NPY_I2] = { "i2", 2, KEEL_INT32, "int16" },
    [KEEL_NPY_U2] = { "u2", 2, KEEL_INT32, "uint16" },
    [KEEL_NPY_U4] = { "u4", 4, KEEL_INT64, "uint32" },
    [KEEL_NPY_U8] = { "u8", 8, KEEL_INT64, "uint64" },
    [KEEL_NPY_S] = { "S", 1, KEEL_STRING, "bytes" },
    [KEEL_NPY_U] = { "U", 4, KEEL_STRING, "str" },
};

const char *keel_npy_type_name(keel_npy_type type)
{
    return types[type].name;
}

/* The 5 of 'S5' and 'U5': characters in each text. */
static bool take_width(const char *digits, size_t *width)
{
    size_t n = 0;
    if (!*digits) return false;
    for (; *digits; digits++) {
        if (*digits < '0' || *digits > '9') return false;
        n = 10 * n + (size_t)(*digits - '0');
        if (n > TEXT_WIDTH_MAX) return false;
    }
    *width = n;
    return true;
}

static void set(keel_npy_header *h, int type, char order, size_t width)
{
    h->stored = (keel_npy_type)type;
    h->is_text = type == KEEL_NPY_S || type == KEEL_NPY_U;
    h->swapped = order == '>' && types[type].size > 1;
    h->dtype = types[type].dtype;
    h->element_bytes = types[type].size * width;
}

keel_status keel_npy_type_read(keel_npy_header *h, const char *descr)
{
    const char *name = descr + (descr[0] != 0);
    for (int i = 0; i < KEEL_NPY_TYPE_COUNT; i++) {
        size_t width = 1;
        const bool text = i == KEEL_NPY_S || i == KEEL_NPY_U;
        if (text ? *name != *types[i].descr || !take_width(name + 1, &width)
                 : strcmp(name, types[i].descr) != 0)
            continue;
        if (descr[0] != '<' && descr[0] != '>' && !(descr[0] == '|' && types[i].size == 1))
            continue;
        if (width == 0) return keel_fail(KEEL_EUNSUP, "dtype '%s': texts without room", descr);
        set(h, i, descr[0], width);
        return KEEL_OK;
    }
    return keel_fail(KEEL_EUNSUP,
                     "dtype '%s'%s; supported are f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8, bool, S and U",
                     descr, strcmp(descr, "|O") ? "" : ", Python objects: convert them by astype");
}

keel_status keel_npy_type_named(keel_npy_header *h, const char *name)
{
    const char order = *name == '<' || *name == '>' ? *name : '<';
    const char *plain = name + (*name == '<' || *name == '>');
    for (int i = 0; i < KEEL_NPY_S; i++)
        if (!strcmp(plain, types[i].name) || !strcmp(plain, types[i].descr)) {
            set(h, i, order, 1);
            return KEEL_OK;
        }
    return keel_fail(
        KEEL_EUNSUP,
        "type '%s'; supported are float16, float32, float64, int8, uint8, int16, "
        "uint16, int32, uint32, int64, uint64 and bool, with > before it if it is big-endian",
        name);
}

bool keel_npy_is_plain(const keel_npy_header *h)
{
    return !h->swapped && h->stored != KEEL_NPY_B1 && h->stored != KEEL_NPY_U8 && !h->is_text &&
           keel_dtype_size(h->dtype) == h->element_bytes;
}

static uint32_t get32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* IEEE 754 binary16 to binary32, exact. */
static float widen(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, fraction = half & 0x3FF;
    const uint32_t exponent = half >> 10 & 31;
    uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
    float value;
    if (exponent == 31) bits = sign | 0x7F800000 | fraction << 13;
    if (exponent == 0) { /* a zero, or fraction * 2^-24 */
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Elements in little-endian order. */
static keel_status convert(const keel_npy_header *h, void *out, const void *stored, size_t count)
{
    const unsigned char *from = stored;
    int32_t *wide = out;
    unsigned char *byte = out;
    switch (h->stored) {
    case KEEL_NPY_B1:
        for (size_t i = 0; i < count; i++) byte[i] = from[i] != 0;
        break;
    case KEEL_NPY_F2: {
        float *real = out;
        for (size_t i = 0; i < count; i++)
            real[i] = widen((uint16_t)(from[2 * i] | from[2 * i + 1] << 8));
        break;
    }
    case KEEL_NPY_I1:
        for (size_t i = 0; i < count; i++) wide[i] = (int8_t)from[i];
        break;
    case KEEL_NPY_I2:
        for (size_t i = 0; i < count; i++)
            wide[i] = (int16_t)(uint16_t)(from[2 * i] | from[2 * i + 1] << 8);
        break;
    case KEEL_NPY_U2:
        for (size_t i = 0; i < count; i++) wide[i] = from[2 * i] | from[2 * i + 1] << 8;
        break;
    case KEEL_NPY_U4: {
        int64_t *wider = out;
        for (size_t i = 0; i < count; i++) wider[i] = get32(from + 4 * i);
        break;
    }
    case KEEL_NPY_U8: {
        int64_t *wider = out;
        memcpy(out, stored, count * sizeof *wider);
        for (size_t i = 0; i < count; i++)
            if (wider[i] < 0)
                return keel_fail(KEEL_EDATA, "%llu of a uint64 array: numbers below 2^63 are read",
                                 (unsigned long long)wider[i]);
        break;
    }
    default:
        memcpy(out, stored, count * h->element_bytes);
    }
    return KEEL_OK;
}

static void swap(unsigned char *out, const unsigned char *from, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++, out += size, from += size)
        for (size_t k = 0; k < size; k++) out[k] = from[size - 1 - k];
}

keel_status keel_npy_convert(const keel_npy_header *h, void *out, const void *stored, size_t count)
{
    enum { PIECE = 4096 };
    unsigned char piece[PIECE];
    const size_t size = h->element_bytes;
    if (count == 0) return KEEL_OK;
    if (!h->swapped) return convert(h, out, stored, count);
    for (size_t done = 0; done < count;) {
        const size_t n = count - done < PIECE / size ? count - done : PIECE / size;
        swap(piece, (const unsigned char *)stored + done * size, n, size);
        KEEL_TRY(convert(h, (char *)out + done * keel_dtype_size(h->dtype), piece, n));
        done += n;
    }
    return KEEL_OK;
}
