#include "tests/datasets/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "datasets/image/image.h"
#include "tests/test.h"

void scratch_create(struct scratch *scratch)
{
    const char *parent = getenv("TMPDIR");
    snprintf(scratch->path, sizeof scratch->path, "%s/mtil-test-XXXXXX", parent != NULL ? parent : "/tmp");
    assert_non_null(mkdtemp(scratch->path));
}

const char *scratch_file(const struct scratch *scratch, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", scratch->path, name);
    return path;
}

static void make_parent(const struct scratch *scratch, const char *name)
{
    char *path = path_format("%s/%s", scratch->path, name);
    *strrchr(path, '/') = 0;
    assert_ok(directory_create(path, &error));
    free(path);
}

void scratch_write(const struct scratch *scratch, const char *name, const void *data, size_t size)
{
    make_parent(scratch, name);
    assert_ok(file_write(scratch_file(scratch, name), data, size, &error));
}

void scratch_write_text(const struct scratch *scratch, const char *name, const char *text)
{
    scratch_write(scratch, name, text, strlen(text));
}

void scratch_write_png(const struct scratch *scratch, const char *name, int width, int height, unsigned color)
{
    struct image image;
    make_parent(scratch, name);
    assert_ok(image_create(&image, width, height, &error));
    for (size_t i = 0; i < (size_t)width * (size_t)height * 3; i++)
        image.pixels[i] = (uint8_t)(color >> (16 - 8 * (i % 3)));
    assert_ok(image_write_png(scratch_file(scratch, name), &image, &error));
    image_free(&image);
}

void scratch_run(const struct scratch *scratch, const char *commands)
{
    char *line = path_format("cd '%s' && %s", scratch->path, commands);
    if (system(line) != 0)
        fail_msg("failed: %s", line);
    free(line);
}

void scratch_remove(struct scratch *scratch)
{
    scratch_run(scratch, "rm -rf \"$PWD\"");
}

static struct scratch of_tests;

static void remove_of_tests(void)
{
    scratch_remove(&of_tests);
}

const struct scratch *test_scratch(void)
{
    if (of_tests.path[0] == 0) {
        scratch_create(&of_tests);
        assert_int_equal(atexit(remove_of_tests), 0);
    }
    return &of_tests;
}
