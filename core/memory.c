#include "core/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MOST = 4096 };

/* The number behind a word at the beginning of a line; word "": the first line is the number itself. */
static bool read_number(const char *path, const char *word, uint64_t *number)
{
    FILE *file = fopen(path, "re");
    char line[256];
    bool found = false;
    size_t length = strlen(word);
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *end, *digits = line + length;
        if (strncmp(line, word, length) != 0)
            continue;
        *number = strtoull(digits, &end, 10);
        found = end != digits; /* "max" is none */
        if (length == 0)
            break;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Where a version of control groups keeps its numbers. */
struct group_files {
    const char *controllers; /* of its line in /proc/self/cgroup */
    const char *folder, *limit, *usage;
    const char *files[2]; /* lines of memory.stat with copies of files, which can be dropped: read once, and again */
};
static const struct group_files versions[] = {
    {"", "sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file ", "active_file "}},
    {"memory",
     "sys/fs/cgroup/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file ", "total_active_file "}}};

static bool read_of_group(const char *root, const struct group_files *version, const char *group, const char *name,
                          const char *word, uint64_t *number)
{
    char path[2 * PATH_MOST];
    snprintf(path, sizeof path, "%s/%s%s/%s", root, version->folder, group, name);
    return read_number(path, word, number);
}

/* What the group and those around it leave, at most `least`. A container sees its own group at the top alone. */
static uint64_t left_of_groups(const char *root, const struct group_files *version, char *group, uint64_t least)
{
    for (char *end = group + strlen(group); end != NULL; end = strrchr(group, '/')) {
        uint64_t limit, usage, once = 0, again = 0;
        *end = 0;
        if (!read_of_group(root, version, group, version->limit, "", &limit) ||
            !read_of_group(root, version, group, version->usage, "", &usage))
            continue;
        read_of_group(root, version, group, "memory.stat", version->files[0], &once);
        read_of_group(root, version, group, "memory.stat", version->files[1], &again);
        uint64_t files = once + again, used = usage > files ? usage - files : 0, left = limit > used ? limit - used : 0;
        least = left < least ? left : least;
    }
    return least;
}

uint64_t memory_available(const char *root)
{
    char path[PATH_MOST], line[PATH_MOST];
    uint64_t kilobytes, bytes;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!read_number(path, "MemAvailable:", &kilobytes))
        return 0;
    bytes = kilobytes << 10;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) { /* "4:memory:/group", or "0::/group" */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = 0;
        for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
            if (strcmp(controllers + 1, versions[v].controllers) == 0)
                bytes = left_of_groups(root, &versions[v], group, bytes);
    }
    if (file != NULL)
        fclose(file);
    return bytes > 0 ? bytes : 1;
}
