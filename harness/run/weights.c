#include "harness/run/weights.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"

static char *beside_program(const char *file)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    char *slash = strrchr(program, '/');
    if (slash != NULL)
        *slash = 0;
    static const char *const places[] = {"weights", "../weights", "../share/mtil/weights"};
    char *path = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        free(path);
        path = path_format("%s/%s/%s", program, places[i], file);
        if (path == NULL || file_exists(path))
            return path;
    }
    return path; /* the last place: the message of whoever opens it names it */
}

char *weights_path(const char *name)
{
    return strcmp(name, "mini") == 0 ? beside_program("mini-clip.safetensors") : strdup(name);
}

char *vocabulary_path(const char *name)
{
    return strcmp(name, "mini") == 0 ? beside_program("mini-vocabulary.txt") : strdup(name);
}

char *weights_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *dot = strrchr(name, '.');
    return strndup(name, dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name));
}
