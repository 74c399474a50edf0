#include "tests/fuzz/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "tests/fuzz/target.h"

/* In memory where the system has such a place: a target's files are written a thousand times a second. */
static const char *const places[] = {"/dev/shm/mtil-fuzz-XXXXXX", "/tmp/mtil-fuzz-XXXXXX"};
struct error fuzz_error;
static char root[64];
static pid_t owner;

/* A child that a target starts leaves the folder alone. */
static void remove_root(void)
{
    char command[sizeof root + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (getpid() == owner && system(command) != 0)
        abort();
}

const char *input_folder(void)
{
    if (owner == 0) {
        size_t place = 0, count = sizeof places / sizeof *places;
        owner = getpid();
        for (; place < count; place++) {
            snprintf(root, sizeof root, "%s", places[place]);
            if (mkdtemp(root) != NULL)
                break;
        }
        if (place == count || atexit(remove_root) != 0)
            abort();
    }
    return root;
}

/* In a buffer that the next call overwrites. */
static char *path_of(const char *prefix, const char *name)
{
    static char path[256];
    if (snprintf(path, sizeof path, "%s/%s%s", input_folder(), prefix, name) >= (int)sizeof path)
        abort();
    return path;
}

/* Plain stdio, and a new file each time, because some file systems wait for the disk when one is cut to nothing and written
 * again: no test's file needs to survive a power cut. */
static const char *write_file(const char *path, const uint8_t *data, size_t size)
{
    unlink(path);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        char *folder = path_parent(path);
        file = directory_create(folder, NULL) == OK ? fopen(path, "wb") : NULL;
        free(folder);
    }
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
    return path;
}

const char *input_file(const uint8_t *data, size_t size)
{
    return write_file(path_of("", "input"), data, size);
}

void input_folder_write(const char *name, const uint8_t *data, size_t size)
{
    write_file(path_of("", name), data, size);
}

void input_folder_fill(const char *prefix, const char *const *names, size_t count, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        const char *path = path_of(prefix, names[i]);
        const uint8_t *end = memmem(data, size, INPUT_SEPARATOR, strlen(INPUT_SEPARATOR));
        if (end == NULL) {
            unlink(path);
            continue;
        }
        write_file(path, data, (size_t)(end - data));
        size -= (size_t)(end - data) + strlen(INPUT_SEPARATOR);
        data = end + strlen(INPUT_SEPARATOR);
    }
}

struct words input_words(const uint8_t *data, size_t size)
{
    struct words words = {.text = xstrndup((const char *)data, size)};
    for (char *rest = words.text, *word; words.count < WORDS_MOST && (word = strsep(&rest, "\n")) != NULL;)
        words.items[words.count++] = word;
    return words;
}
