#include "harness/commands/inputs/image_paths.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/image/image.h"

struct image_paths {
    const char *const *arguments;
    size_t count, next; /* the list is number `count` */
    const struct stop *stop;
    const char *list_name, *list_open;
    FILE *list; /* being read; NULL: none */
    char *line;
    size_t line_size, line_number;
    FTS *walk;  /* of a folder; NULL: none */
    char *path; /* the last one that was given */
};

/* --- Kinds of arguments --- */

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static status check_argument(const char *path, const char *expected, bool folders, struct error *error)
{
    struct stat information;
    if (stat(path, &information) != 0)
        return error_errno(error, errno, "%s: expected %s", path, expected);
    if (S_ISREG(information.st_mode) || (folders && S_ISDIR(information.st_mode)))
        return OK;
    return error_set(error, ERROR_ARGUMENT, "%s: expected %s, found %s", path, expected, kind_of(information.st_mode));
}

static const char *list_of(const char *argument)
{
    return *argument == '@' ? argument + 1 : NULL;
}

static status check_arguments(const struct image_paths *paths, struct error *error)
{
    static const char list[] = "a file that lists images, one path per line";
    for (size_t i = 0; i < paths->count; i++) {
        const char *argument = paths->arguments[i], *named = list_of(argument);
        TRY(check_argument(named != NULL ? named : argument, named != NULL ? list : "an image file or a folder",
                           named == NULL, error));
    }
    return paths->list_name != NULL ? check_argument(paths->list_name, list, false, error) : OK;
}

status image_paths_open(struct image_paths **result, const char *const *arguments, size_t count, const char *list,
                        const struct stop *stop, struct error *error)
{
    struct image_paths *paths = xcalloc(1, sizeof *paths);
    *paths = (struct image_paths){.arguments = arguments, .count = count, .stop = stop, .list_name = list};
    status checked = check_arguments(paths, error);
    if (checked != OK) {
        image_paths_close(paths);
        return checked;
    }
    *result = paths;
    return OK;
}

static void leave_folder(struct image_paths *paths)
{
    if (paths->walk != NULL)
        fts_close(paths->walk);
    paths->walk = NULL;
}

void image_paths_close(struct image_paths *paths)
{
    if (paths == NULL)
        return;
    leave_folder(paths);
    if (paths->list != NULL)
        fclose(paths->list);
    free(paths->line);
    free(paths->path);
    free(paths);
}

/* --- Folders --- */

/* Of whole paths: "a.jpg" before "a/b.jpg". */
static int by_path(const FTSENT **a, const FTSENT **b)
{
    const char *x = (*a)->fts_name, *y = (*b)->fts_name;
    for (; *x != 0 && *x == *y; x++)
        y++;
    int left = *x == 0 && (*a)->fts_info == FTS_D ? '/' : (unsigned char)*x,
        right = *y == 0 && (*b)->fts_info == FTS_D ? '/' : (unsigned char)*y;
    return left - right;
}

static status enter_folder(struct image_paths *paths, const char *named, struct error *error)
{
    char *folder = xstrdup(named);
    for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/';)
        folder[--end] = 0;
    paths->walk = fts_open((char *const[]){folder, NULL}, FTS_LOGICAL | FTS_NOCHDIR, by_path);
    int number = errno;
    free(folder);
    return paths->walk != NULL ? OK : error_errno(error, number, "%s: cannot list this folder", named);
}

/* One step in the folder; *found: it reached an image. */
static status walk(struct image_paths *paths, bool *found, struct error *error)
{
    const FTSENT *entry = fts_read(paths->walk);
    *found = false;
    if (entry == NULL)
        leave_folder(paths);
    else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
        return error_errno(error, entry->fts_errno, "%s: cannot list this folder", entry->fts_path);
    else if (entry->fts_info == FTS_DC)
        return error_set(error, ERROR_FORMAT, "%s: a symbolic link leads back to a folder that it is in",
                         entry->fts_path);
    else if (entry->fts_info == FTS_F && image_file_recognized(entry->fts_path)) {
        free(paths->path);
        paths->path = xstrdup(entry->fts_path);
        *found = true;
    }
    return OK;
}

/* --- Lists and arguments --- */

/* A named file or folder. If it has disappeared, reading it reports that. */
static status take(struct image_paths *paths, const char *named, bool *found, struct error *error)
{
    *found = !file_is_directory(named);
    if (!*found)
        return enter_folder(paths, named, error);
    free(paths->path);
    paths->path = xstrdup(named);
    return OK;
}

static status open_list(struct image_paths *paths, const char *name, struct error *error)
{
    paths->list_open = name;
    paths->line_number = 0;
    paths->list = fopen(name, "re");
    return paths->list != NULL ? OK : error_errno(error, errno, "%s: cannot be opened", name);
}

static status end_list(struct image_paths *paths, struct error *error)
{
    bool failed = ferror(paths->list) != 0;
    fclose(paths->list);
    paths->list = NULL;
    return failed ? error_set(error, ERROR_IO, "%s: cannot be read to its end", paths->list_open) : OK;
}

static status next_line(struct image_paths *paths, bool *found, struct error *error)
{
    ssize_t length = getline(&paths->line, &paths->line_size, paths->list);
    char *line = paths->line;
    *found = false;
    if (length < 0)
        return end_list(paths, error);
    if (++paths->line_number == 1 && length >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3; /* a byte order mark */
        length -= 3;
    }
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
        line[--length] = 0;
    if ((size_t)length != strlen(line))
        return error_set(error, ERROR_FORMAT, "%s:%zu: expected a path, found a NUL byte", paths->list_open,
                         paths->line_number);
    return length > 0 ? take(paths, line, found, error) : OK;
}

static status next_argument(struct image_paths *paths, bool *found, struct error *error)
{
    const char *argument = paths->next < paths->count ? paths->arguments[paths->next] : NULL,
               *list = argument != NULL ? list_of(argument) : paths->list_name;
    paths->next++;
    *found = false;
    return list != NULL ? open_list(paths, list, error) : take(paths, argument, found, error);
}

status image_paths_next(struct image_paths *paths, const char **path, struct error *error)
{
    size_t last = paths->count + (paths->list_name != NULL);
    bool found = false;
    *path = NULL;
    while (!found && !stop_requested(paths->stop) &&
           (paths->walk != NULL || paths->list != NULL || paths->next < last)) {
        if (paths->walk != NULL)
            TRY(walk(paths, &found, error));
        else if (paths->list != NULL)
            TRY(next_line(paths, &found, error));
        else
            TRY(next_argument(paths, &found, error));
    }
    if (found)
        *path = paths->path;
    return stop_requested(paths->stop) ? error_set(error, ERROR_STOPPED, "stopped while searching for images") : OK;
}
