/* JPEGs of any size, colour sampling and kind of scan, for tests of the decoder. */
#ifndef TESTS_MADE_JPEGS_H
#define TESTS_MADE_JPEGS_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <jpeglib.h>

static uint64_t chance_state;

static inline unsigned chance(void) /* splitmix64 */
{
    uint64_t z = chance_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ (z >> 31)) >> 32);
}

typedef struct made_jpeg {
    unsigned char *data;
    unsigned long n;
    int height, width;
    bool inks; /* CMYK, of which no gray is made */
} made_jpeg;

/* Waves and noise, so that neighbours differ. */
static inline unsigned char pixel(int y, int x, int c)
{
    const double wave = sin(y * 0.02 * (c + 1)) + cos(x * 0.015 * (3 - c)) + 0.001 * (x - y);
    return (unsigned char)(128 + 30 * wave + chance() % 24);
}

typedef enum coding { PLAIN, PROGRESSIVE, RESTARTS, CODINGS } coding;

/* across, down: places of a colour for one that it is stored at; black has all. */
static inline made_jpeg made_jpeg_in(J_COLOR_SPACE space, int height, int width, int across,
                                     int down, coding how)
{
    const bool gray = space == JCS_GRAYSCALE, inks = space == JCS_CMYK || space == JCS_YCCK;
    made_jpeg out = { .height = height, .width = width, .inks = inks };
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    c.err = jpeg_std_error(&e);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out.data, &out.n);
    c.image_height = (JDIMENSION)height;
    c.image_width = (JDIMENSION)width;
    c.input_components = gray ? 1 : inks ? 4 : 3;
    c.in_color_space = inks ? JCS_CMYK : space;
    jpeg_set_defaults(&c);
    if (inks) jpeg_set_colorspace(&c, space);
    jpeg_set_quality(&c, 90, TRUE);
    for (int i = 0; i < 4 && !gray; i += 3) {
        if (i == 3 && !inks) break;
        c.comp_info[i].h_samp_factor = across;
        c.comp_info[i].v_samp_factor = down;
    }
    if (how == PROGRESSIVE) jpeg_simple_progression(&c);
    if (how == RESTARTS) c.restart_interval = 3;
    jpeg_start_compress(&c, TRUE);
    unsigned char *row = malloc((size_t)width * 4);
    for (int y = 0; y < height; y++) {
        for (int i = 0; i < width * c.input_components; i++)
            row[i] = pixel(y, i / c.input_components, i % c.input_components);
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(row);
    return out;
}

static inline made_jpeg made_jpeg_of(int height, int width, int across, int down, bool gray,
                                     coding how)
{
    return made_jpeg_in(gray ? JCS_GRAYSCALE : JCS_RGB, height, width, across, down, how);
}

#endif
