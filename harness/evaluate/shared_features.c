#include "harness/evaluate/shared_features.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/seen.h"
#include "core/text.h"
#include "datasets/cache/cache_file.h"
#include "datasets/image/image.h"
#include "harness/model/weights.h"
#include "harness/train/image_pass.h"
#include "harness/train/serializer.h"
#include "models/files/weights_file.h"

static char *copy_metadata(const struct archive *archive, const char *name)
{
    const char *value = archive_metadata(archive, name);
    return value != NULL ? xstrdup(value) : NULL;
}

static void describe_features(struct shared_file *file)
{
    SCOPED(archive_close_at) struct archive *archive = NULL;
    int64_t images;
    if (archive_open(&archive, file->path, NULL) != OK)
        return;
    const char *count = archive_metadata(archive, "images");
    file->dataset = copy_metadata(archive, "dataset");
    file->root = copy_metadata(archive, "root");
    file->images = count != NULL && parse_integer(count, &images) && images > 0 ? (size_t)images : 0;
}

/* Files being written have more characters after the extension. */
static bool is_features(const char *name)
{
    const char *ending = strstr(name, SHARED_FILE_ENDING);
    return ending != NULL && strcmp(ending, SHARED_FILE_ENDING) == 0;
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

static struct shared_file *add_file(struct shared_files *list, const char *folder, const char *name, const char *kind)
{
    struct stat information;
    GROW(list->files, list->count);
    struct shared_file *file = &list->files[list->count++];
    *file = (struct shared_file){.path = path_format("%s/%s", folder, name), .kind = kind};
    if (stat(file->path, &information) == 0) {
        file->bytes = (uint64_t)information.st_size;
        file->used = information.st_mtime;
    }
    return file;
}

/* A line for each place of what was seen; one for the file if it is damaged. */
static void add_seen(struct shared_files *list, const char *folder)
{
    SCOPED(seen_listing_free) struct seen_listing seen = {0};
    if (seen_list(&seen, folder, NULL) != OK)
        add_file(list, folder, SEEN_FILE, "survey");
    for (size_t i = 0; i < seen.count; i++) {
        const struct seen_listed *place = &seen.places[i];
        bool digest = strcmp(place->kind, FILE_DIGEST_KIND) == 0;
        struct shared_file *file = add_file(list, folder, SEEN_FILE, digest ? FILE_DIGEST_KIND : "survey");
        file->dataset = digest ? NULL : xstrdup(place->kind);
        file->root = xstrdup(place->root);
        file->images = (size_t)place->records;
        file->bytes = (uint64_t)place->bytes;
    }
}

status shared_files_list(struct shared_files *list, const char *folder, struct error *error)
{
    SCOPED(directory_free) struct directory names = {0};
    *list = (struct shared_files){0};
    if (!file_exists(folder))
        return OK;
    TRY(directory_list(&names, folder, error));
    for (size_t i = 0; i < names.count; i++)
        if (is_features(names.names[i]))
            describe_features(add_file(list, folder, names.names[i], "features"));
    add_seen(list, folder);
    return OK;
}

status shared_files_clear(struct shared_files *removed, const char *folder, const char *root, struct error *error)
{
    size_t gone = 0;
    TRY(shared_files_list(removed, folder, error));
    OWNED char *resolved = root != NULL ? realpath(root, NULL) : NULL;
    status result = OK;
    for (size_t i = 0; i < removed->count; i++) {
        struct shared_file file = removed->files[i];
        const char *of = resolved != NULL ? resolved : root;
        bool goes = result == OK && (of == NULL || (file.root != NULL && strcmp(file.root, of) == 0));
        if (goes && strcmp(file.kind, "features") == 0 && unlink(file.path) != 0 && errno != ENOENT) {
            result = error_errno(error, errno, "%s: cannot be removed", file.path);
            goes = false;
        }
        if (goes)
            removed->files[gone++] = file;
        else
            free_file(&file);
    }
    NEXT(result, seen_forget(folder, resolved != NULL ? resolved : root, error));
    removed->count = gone;
    if (result != OK)
        shared_files_free(removed);
    return result;
}

/* --- Origin of the numbers --- */

/* Of an index, all its shards, too: models that differ may have the same one. */
static status add_weights(struct text *text, const struct shared_features *shared, const char *path,
                          struct error *error)
{
    SCOPED(weights_shards_free) struct weights_shards shards = {0};
    if (weights_shards_is_index(path))
        TRY(weights_shards_read(&shards, path, error));
    for (size_t i = 0; i <= shards.count; i++) {
        struct file_digest digest;
        TRY(file_digest_read(&digest, i == 0 ? path : shards.paths[i - 1],
                             &(struct file_digest_settings){.folder = shared->folder}, error));
        text_add(text, "%s\n", digest.hash);
    }
    return OK;
}

/* A fast hash is enough: every process computes it, and it only distinguishes builds. */
static status read_program(char digest[DIGEST_SIZE], struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    TRY(file_read("/proc/self/exe", FILE_LIMIT, &bytes, error));
    snprintf(digest, DIGEST_SIZE, "%016llx", (unsigned long long)digest_quick(bytes.data, bytes.size, 0));
    return OK;
}

/* The instruction sets of a processor decide which kernels run, and thereby the last bits; clock rate and number of
 * cores do not. */
static void add_processor(struct text *text)
{
    static const char *const decisive[] = {"vendor_id", "cpu family",      "model",    "stepping", "cache size",
                                           "flags",     "CPU implementer", "CPU part", "Features"};
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[8192];
    while (file != NULL && fgets(line, sizeof line, file) != NULL && *line != '\n')
        for (size_t i = 0; i < sizeof decisive / sizeof *decisive; i++)
            if (strncmp(line, decisive[i], strlen(decisive[i])) == 0)
                text_add(text, "%s", line);
    if (file != NULL)
        fclose(file);
}

static status find_origin(struct shared_features *shared, struct error *error)
{
    const struct model *model = shared->model;
    SCOPED(text_free) struct text text = {0};
    OWNED char *path = weights_path(model->settings.weights);
    TRY(add_weights(&text, shared, path, error));
    TRY(read_program(shared->program, error));
    text_add(&text, "%s\n%zu %zu %d %d\n", model->backend->arithmetic, model->clip->dimensions.image_heads,
             model->clip->dimensions.text_heads, (int)model->clip->activation, (int)model->clip->pixels);
    add_processor(&text);
    digest_text(text.data, shared->origin);
    return OK;
}

status shared_features_open(struct shared_features *shared, struct model *model, const struct data *data,
                            struct error *error)
{
    *shared = (struct shared_features){.model = model, .data = data};
    const struct cache_settings *cache = &model->settings.cache;
    if (cache->kind != CACHE_DISK || !model->head->of_texts)
        return OK;
    shared->folder = cache->folder != NULL ? xstrdup(cache->folder) : cache_folder_default();
    return find_origin(shared, error); /* without a folder nothing is shared; the image cache has warned about it */
}

void shared_features_close(struct shared_features *shared)
{
    free(shared->folder);
    *shared = (struct shared_features){0};
}

/* --- A file --- */

struct place {
    char key[DIGEST_SIZE];
    char *path; /* NULL: none */
};

/* The name identifies the request; the key also covers inputs that may change afterwards. Generated images have no
 * identity and are not shared. */
static struct place find_place(const struct shared_features *shared, const struct task *task)
{
    enum { DIGITS = 16 };
    struct dataset_identity identity;
    struct place place = {.path = NULL};
    char name[DIGEST_SIZE];
    if (shared->folder == NULL || dataset_identify(task->dataset, SPLIT_TEST, &identity, NULL) != OK)
        return place;
    SCOPED(text_free) struct text text = {0};
    text_add(&text, "%s\n%s\n%zu\n", shared->origin, identity.list, shared->model->clip->dimensions.resolution);
    digest_text(text.data, name);
    text_add(&text, "%s\n%s\n%s\n", identity.content, shared->program, image_version());
    digest_text(text.data, place.key);
    place.path =
        path_format("%s/%s-test-%.*s" SHARED_FILE_ENDING, shared->folder, dataset_name(task->dataset), DIGITS, name);
    return place;
}

static bool says(const struct archive *archive, const char *name, const char *expected)
{
    const char *found = archive_metadata(archive, name);
    return found != NULL && strcmp(found, expected) == 0;
}

/* The features of the images of a test set, on the host. */
struct numbers {
    size_t mean_count, feature_count;
    float *means, *features;
};

/* Any fault of a file leads to computing the features; damage is also reported. */
static bool read_file(const struct shared_features *shared, const struct place *place, const struct numbers *x)
{
    SCOPED(archive_close_at) struct archive *archive = NULL;
    struct error problem;
    if (!file_exists(place->path))
        return false;
    if (archive_open(&archive, place->path, &problem) != OK) {
        log_warn(shared->model->log, "%s; its features are computed again", problem.message);
        return false;
    }
    bool whole = says(archive, "key", place->key) &&
                 archive_get(archive, "means", SAFETENSOR_F32, x->mean_count, x->means, NULL) == OK &&
                 archive_get(archive, "features", SAFETENSOR_F32, x->feature_count, x->features, NULL) == OK;
    return whole && not_finite_at(x->means, x->mean_count) == x->mean_count &&
           not_finite_at(x->features, x->feature_count) == x->feature_count;
}

static status write_file(const struct shared_features *shared, const struct place *place, const struct task *task,
                         const struct numbers *x, struct error *error)
{
    SCOPED(archive_close_at) struct archive *archive = NULL;
    char images[32];
    uint64_t available, bytes = (x->mean_count + x->feature_count) * sizeof *x->means;
    TRY(directory_create(shared->folder, error));
    TRY(cache_folder_available(shared->folder, place->path, shared->model->settings.cache.disk_limit, &available,
                               error));
    if (bytes > available)
        return error_set(error, ERROR_IO, "%s: no room for %.1f MB; raise run.cache_disk_megabytes or free disk space",
                         place->path, (double)bytes / 1e6);
    OWNED char *root = realpath(dataset_root(task->dataset), NULL);
    if (root == NULL)
        return error_errno(error, errno, "%s: cannot be found", dataset_root(task->dataset));
    snprintf(images, sizeof images, "%zu", dataset_size(task->dataset, SPLIT_TEST));
    struct safetensors_metadata metadata[] = {
        {"key", place->key}, {"dataset", dataset_name(task->dataset)}, {"root", root}, {"images", images}};
    archive_create(&archive);
    TRY(archive_put(archive, "means", SAFETENSOR_F32, x->mean_count, x->means, error));
    TRY(archive_put(archive, "features", SAFETENSOR_F32, x->feature_count, x->features, error));
    return archive_write(archive, place->path, metadata, sizeof metadata / sizeof *metadata, error);
}

status shared_features_take(struct shared_features *shared, const struct task *task, float *means, float *features,
                            const struct stop *stop, struct error *error)
{
    struct model *model = shared->model;
    size_t n = dataset_size(task->dataset, SPLIT_TEST);
    const struct numbers x = {.mean_count = n * model->clip->dimensions.image_width,
                              .feature_count = n * model->clip->dimensions.embed,
                              .means = means,
                              .features = features};
    struct place place = find_place(shared, task);
    bool read = place.path != NULL && read_file(shared, &place, &x);
    status result = OK;
    if (read)
        utimensat(AT_FDCWD, place.path, NULL, 0); /* time of last use; failing in a read-only folder is fine */
    if (!read)
        result = frozen_features(model, shared->data, task->dataset, SPLIT_TEST, NULL, n, means, features, stop, error);
    struct error reason;
    if (result == OK && !read && place.path != NULL && !shared->gave_up &&
        write_file(shared, &place, task, &x, &reason) != OK) {
        shared->gave_up = true;
        log_warn(model->log, "features are not kept: %s", reason.message);
    }
    free(place.path);
    return result;
}
