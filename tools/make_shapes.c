/* make_shapes DIR [COUNT [SEED]]: draw COUNT JPEG files of ten classes of shapes into DIR/CLASS,
 * for the demo and its tests. Place, size, turn, colours, noise and image size are drawn by chance,
 * the same for the same seed. Class and file number alternate, so classes differ by at most one
 * file. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jpeglib.h> /* after stdio.h, which it needs */

enum { SIDE_MAX = 112, SIDE_MIN = 80, GRID = 3 };

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t state;

static double uniform(double low, double high) /* splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return low + (high - low) * (double)(z >> 11) * 0x1p-53;
}

/* ---- shapes: is (u, v) inside? v grows downwards; the shape fills -1..1 ---------------------- */

static bool circle(double u, double v)
{
    return u * u + v * v <= 1;
}

static bool crescent(double u, double v)
{
    return circle(u, v) && !circle((u - 0.5) / 0.8, v / 0.8);
}

static bool cross(double u, double v)
{
    u = fabs(u), v = fabs(v);
    return (u < 0.28 && v < 1) || (v < 0.28 && u < 1);
}

static bool diamond(double u, double v)
{
    return fabs(u) / 0.55 + fabs(v) <= 1;
}

static bool heart(double u, double v)
{
    const double x = 1.2 * u, y = 0.15 - 1.2 * v, r = x * x + y * y - 1;
    return r * r * r - x * x * y * y * y <= 0;
}

static bool ring(double u, double v)
{
    return circle(u, v) && !circle(u / 0.62, v / 0.62);
}

static bool square(double u, double v)
{
    return fabs(u) < 0.8 && fabs(v) < 0.8;
}

static bool star(double u, double v) /* five points: within each of ten sectors a straight edge */
{
    const double sector = 2 * M_PI / 5;
    double a = fmod(atan2(u, -v) + 2 * M_PI, sector);
    if (a > sector / 2) a = sector - a;
    const double r = hypot(u, v), x = r * cos(a), y = r * sin(a);
    const double ex = 0.4 * cos(sector / 2) - 1, ey = 0.4 * sin(sector / 2);
    return (x - 1) * ey - y * ex <= 0;
}

static bool stripes(double u, double v)
{
    return fabs(u) < 0.85 && fabs(v) < 0.9 && fmod(v + 0.9, 0.72) < 0.36;
}

static bool triangle(double u, double v)
{
    return v < 0.75 && fabs(u) < (v + 0.9) * 0.58;
}

static const struct {
    const char *name;
    bool (*inside)(double u, double v);
} classes[] = {
    { "circle", circle },   { "crescent", crescent }, { "cross", cross },   { "diamond", diamond },
    { "heart", heart },     { "ring", ring },         { "square", square }, { "star", star },
    { "stripes", stripes }, { "triangle", triangle },
};
enum { CLASSES = sizeof classes / sizeof *classes };

/* ---- drawing --------------------------------------------------------------------------------- */

typedef struct picture {
    int width, height;
    unsigned char pixel[SIDE_MAX * SIDE_MAX * 3];
} picture;

static void draw(picture *p, int class)
{
    double back[3], front[3], tilt[2], apart;
    p->width = (int)uniform(SIDE_MIN, SIDE_MAX + 1);
    p->height = (int)uniform(SIDE_MIN, SIDE_MAX + 1);
    do {
        apart = 0;
        for (int c = 0; c < 3; c++) {
            back[c] = uniform(20, 235);
            front[c] = uniform(20, 235);
            apart += fabs(back[c] - front[c]);
        }
    } while (apart < 200);
    for (int i = 0; i < 2; i++) tilt[i] = uniform(-25, 25); /* light from one side */
    const double side = p->width < p->height ? p->width : p->height;
    const double size = side * uniform(0.28, 0.44), turn = uniform(-0.2, 0.2);
    const double x0 = uniform(size, p->width - size), y0 = uniform(size, p->height - size);
    const double noise = uniform(2, 14), co = cos(turn), si = sin(turn);
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            int hits = 0;
            for (int k = 0; k < GRID * GRID; k++) { /* soft edges */
                const double dx = (x + (k % GRID + 0.5) / GRID - x0) / size;
                const double dy = (y + (k / GRID + 0.5) / GRID - y0) / size;
                hits += classes[class].inside(co * dx + si * dy, co * dy - si * dx);
            }
            const double part = (double)hits / (GRID * GRID);
            const double light = tilt[0] * x / p->width + tilt[1] * y / p->height;
            for (int c = 0; c < 3; c++) {
                double value = back[c] + part * (front[c] - back[c]) + light;
                value += noise * (uniform(-1, 1) + uniform(-1, 1));
                value = value < 0 ? 0 : value > 255 ? 255 : value;
                p->pixel[(y * p->width + x) * 3 + c] = (unsigned char)(value + 0.5);
            }
        }
}

static bool save(const picture *p, const char *path)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    c.err = jpeg_std_error(&errors); /* ends the program, which is right here */
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, f);
    c.image_width = (JDIMENSION)p->width;
    c.image_height = (JDIMENSION)p->height;
    c.input_components = 3;
    c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 90, TRUE);
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < p->height; y++) {
        JSAMPROW row = (JSAMPROW)&p->pixel[y * p->width * 3];
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return !fclose(f);
}

static bool folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

int main(int argc, char **argv)
{
    static picture p;
    char path[4096];
    const long count = argc > 2 ? atol(argv[2]) : 1031;
    if (argc < 2 || argc > 4 || count < 1) {
        fputs("usage: make_shapes DIR [COUNT [SEED]]\n", stderr);
        return 2;
    }
    state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    bool good = folder(argv[1]);
    for (long i = 0; good && i < count; i++) {
        const int class = (int)(i % CLASSES);
        snprintf(path, sizeof path, "%s/%s", argv[1], classes[class].name);
        good = folder(path);
        snprintf(path, sizeof path, "%s/%s/%05ld.jpg", argv[1], classes[class].name, i);
        draw(&p, class);
        good = good && save(&p, path);
    }
    if (!good) {
        fprintf(stderr, "make_shapes: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    printf("%s: %ld images of %d classes\n", argv[1], count, CLASSES);
    return 0;
}
