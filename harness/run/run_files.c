#include "harness/run/run_files.h"
#include "core/alloc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HASH_DIGITS = 12 };

const char *run_files_place(const char *folder, int64_t seed)
{
    char last[40];
    size_t length = strlen(folder);
    int tail = snprintf(last, sizeof last, "/seed%" PRIu64, (uint64_t)seed);
    if (length <= (size_t)tail + HASH_DIGITS + 1 || strcmp(folder + length - (size_t)tail, last) != 0)
        return NULL;
    const char *hash = folder + length - (size_t)tail - HASH_DIGITS, *slash = memrchr(folder, '/', hash - folder);
    bool digits = hash[-1] == '-';
    for (int i = 0; i < HASH_DIGITS; i++)
        digits = digits && isxdigit((unsigned char)hash[i]);
    return !digits ? NULL : slash != NULL ? slash + 1 : folder;
}

/* "adapters.safetensors", "task03.weights.safetensors", "resume.safetensors", or a temporary file of one of them. */
static bool is_run_file(int folder, const char *name, uint64_t *bytes)
{
    struct stat information;
    const char *ending = strstr(name, ".safetensors");
    bool named = ending != NULL && (ending[strlen(".safetensors")] == 0 ||
                                    strncmp(ending, ".safetensors.tmp-", strlen(".safetensors.tmp-")) == 0);
    if (!named || fstatat(folder, name, &information, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(information.st_mode))
        return false;
    *bytes += (uint64_t)information.st_size;
    return true;
}

static status list(struct run_files *files, struct error *error)
{
    TRY(directory_list(&files->entries, files->folder, error));
    files->name = xmalloc((files->entries.count + 1) * sizeof *files->name);
    for (size_t i = 0; i < files->entries.count; i++) {
        bool own = is_run_file(files->descriptor, files->entries.names[i], &files->bytes);
        if (own)
            files->name[files->count++] = files->entries.names[i];
        else
            files->others++;
    }
    return OK;
}

static status open_folder(struct run_files *files, const char *folder, struct error *error)
{
    files->descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (files->descriptor < 0 && (errno == ENOENT || errno == ENOTDIR))
        return OK;
    if (files->descriptor < 0)
        return error_errno(error, errno, "%s: cannot open the run's folder", folder);
    if (flock(files->descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return error_set(error, ERROR_BUSY,
                         "%s: in use by a run of another database with the same suite and seed; wait for it or stop it",
                         folder);
    files->folder = xstrdup(folder);
    return list(files, error);
}

status run_files_find(struct run_files *files, const char *folder, int64_t seed, struct error *error)
{
    *files = (struct run_files){.descriptor = -1};
    if (folder == NULL || !file_exists(folder))
        return OK;
    if (run_files_place(folder, seed) == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: expected the folder of a run with seed %" PRId64 " (SUITE-HASH/seed%" PRId64
                         "), found another name; see whose files they are",
                         folder, seed, seed);
    return open_folder(files, folder, error);
}

/* The run's folder, and the suite's folder if that is empty then. */
static void remove_folders(const struct run_files *files)
{
    char *parent = xstrdup(files->folder);
    if (rmdir(files->folder) == 0) {
        *strrchr(parent, '/') = 0;
        rmdir(parent);
    }
    free(parent);
}

status run_files_remove(struct run_files *files, struct error *error)
{
    for (size_t i = 0; i < files->count; i++)
        if (unlinkat(files->descriptor, files->name[i], 0) != 0 && errno != ENOENT)
            return error_errno(error, errno, "%s/%s: cannot be removed", files->folder, files->name[i]);
    if (files->folder != NULL && files->others == 0)
        remove_folders(files);
    return OK;
}

void run_files_close(struct run_files *files)
{
    if (files->descriptor >= 0)
        close(files->descriptor);
    free(files->folder);
    free(files->name);
    directory_free(&files->entries);
    *files = (struct run_files){.descriptor = -1};
}
