#include "harness/evaluate/shared_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "datasets/survey/survey_file.h"
#include "harness/run/archive.h"
#include "harness/run/file_digest.h"

static char *copy_metadata(const struct archive *archive, const char *name)
{
    const char *value = archive_metadata(archive, name);
    return value != NULL ? strdup(value) : NULL;
}

static void describe_features(struct shared_file *file)
{
    struct archive *archive;
    int64_t images;
    if (archive_open(&archive, file->path, NULL) != OK)
        return;
    const char *count = archive_metadata(archive, "images");
    file->dataset = copy_metadata(archive, "dataset");
    file->root = copy_metadata(archive, "root");
    file->images = count != NULL && parse_integer(count, &images) && images > 0 ? (size_t)images : 0;
    archive_close(archive);
}

static void describe_survey(struct shared_file *file)
{
    struct survey_label label;
    if (survey_file_describe(file->path, &label, &file->images, NULL) != OK)
        return;
    file->dataset = strdup(label.dataset);
    file->root = strdup(label.root);
}

static void describe_digest(struct shared_file *file)
{
    struct bytes bytes;
    if (file_read(file->path, FILE_DIGEST_LONGEST, &bytes, NULL) != OK)
        return;
    file->root = strndup((const char *)bytes.data, strcspn((const char *)bytes.data, "\n"));
    bytes_free(&bytes);
}

/* Files being written have more characters after the extension. */
static const struct kind {
    const char *ending, *name;
    void (*describe)(struct shared_file *file);
} kinds[] = {{SHARED_FILE_ENDING, "features", describe_features},
             {SURVEY_FILE_ENDING, "survey", describe_survey},
             {FILE_DIGEST_ENDING, "digest", describe_digest}};

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *ending = strstr(name, kinds[i].ending);
        if (ending != NULL && strcmp(ending, kinds[i].ending) == 0)
            return &kinds[i];
    }
    return NULL;
}

static void describe(struct shared_file *file, const struct kind *kind)
{
    struct stat information;
    file->kind = kind->name;
    if (stat(file->path, &information) == 0) {
        file->bytes = (uint64_t)information.st_size;
        file->used = information.st_mtime;
    }
    kind->describe(file);
}

static void free_file(struct shared_file *file)
{
    free(file->path);
    free(file->dataset);
    free(file->root);
}

void shared_files_free(struct shared_files *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_file(&list->files[i]);
    free(list->files);
    *list = (struct shared_files){0};
}

static void list_names(struct shared_files *list, const char *folder, const struct directory *names)
{
    list->files = xcalloc(names->count + 1, sizeof *list->files);
    for (size_t i = 0; i < names->count; i++) {
        const struct kind *kind = kind_of(names->names[i]);
        if (kind == NULL)
            continue;
        struct shared_file *file = &list->files[list->count];
        file->path = path_format("%s/%s", folder, names->names[i]);
        list->count++;
        describe(file, kind);
    }
}

status shared_files_list(struct shared_files *list, const char *folder, struct error *error)
{
    struct directory names;
    *list = (struct shared_files){0};
    if (!file_exists(folder))
        return OK;
    TRY(directory_list(&names, folder, error));
    list_names(list, folder, &names);
    directory_free(&names);
    return OK;
}

static bool is_to_go(const struct shared_file *file, const char *root)
{
    return root == NULL || (file->root != NULL && strcmp(file->root, root) == 0);
}

status shared_files_clear(struct shared_files *removed, const char *folder, const char *root, struct error *error)
{
    size_t gone = 0;
    TRY(shared_files_list(removed, folder, error));
    char *resolved = root != NULL ? realpath(root, NULL) : NULL;
    status result = OK;
    for (size_t i = 0; i < removed->count; i++) {
        struct shared_file file = removed->files[i];
        bool goes = result == OK && is_to_go(&file, resolved != NULL ? resolved : root);
        if (goes && unlink(file.path) != 0 && errno != ENOENT) {
            result = error_errno(error, errno, "%s: cannot be removed", file.path);
            goes = false;
        }
        if (goes)
            removed->files[gone++] = file;
        else
            free_file(&file);
    }
    free(resolved);
    removed->count = gone;
    if (result != OK)
        shared_files_free(removed);
    return result;
}
