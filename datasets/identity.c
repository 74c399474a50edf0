/* Digests that identify the pixels of a split, to detect that something made from them is out of date. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/readers/reader.h"

bool dataset_has_files(const struct dataset *dataset, enum split split)
{
    const struct dataset_items *items = &dataset->items[split];
    return items->count > 0 && items->items[0].file != NULL;
}

static void add_text(struct digest *digest, const char *text)
{
    digest_add(digest, text, strlen(text) + 1);
}

static void add_number(struct digest *digest, uint64_t number)
{
    digest_add(digest, &number, sizeof number);
}

/* A missing file gets size and time 0; reading it reports the error. */
static void add_file(struct digest *digest, const char *root, const char *file)
{
    struct file_stamp stamp = {0};
    char *path = path_format("%s/%s", root, file);
    add_number(digest, file_stamp_read(&stamp, path, NULL) == OK);
    digest_add(digest, &stamp, sizeof stamp);
    free(path);
}

static bool is_generated(const struct dataset *dataset, const struct dataset_item *item)
{
    return item->file == NULL && (dataset->reader->read != NULL || item->source >= dataset->source_count);
}

static status add_list(struct digest *digest, const struct dataset *dataset, enum split split, struct error *error)
{
    char *root = realpath(dataset->root, NULL);
    add_text(digest, root != NULL ? root : dataset->root);
    free(root);
    add_text(digest, dataset->reader->name);
    add_number(digest, dataset->items[split].count);
    for (size_t i = 0; i < dataset->items[split].count; i++) {
        const struct dataset_item *item = &dataset->items[split].items[i];
        if (is_generated(dataset, item))
            return error_set(error, ERROR_ARGUMENT, "%s: its images are generated and have no file",
                             dataset->reader->name);
        add_text(digest, item->file != NULL ? item->file : dataset->sources[item->source].name);
        add_number(digest, item->file != NULL ? 0 : item->position);
    }
    return OK;
}

/* Samples of a larger file are already in memory, and are hashed themselves. */
static void add_samples(struct digest *digest, const struct raw_images *images)
{
    add_number(digest, (uint64_t)images->width);
    add_number(digest, (uint64_t)images->height);
    add_number(digest, (uint64_t)images->channels);
    size_t image = (size_t)images->width * (size_t)images->height * (size_t)images->channels;
    if (images->count > 0) /* the last one has no successor */
        digest_add(digest, images->samples, (images->count - 1) * images->stride + image);
}

static void add_content(struct digest *digest, const struct dataset *dataset, enum split split)
{
    bool *used = xcalloc(dataset->source_count + 1, sizeof *used);
    for (size_t i = 0; i < dataset->items[split].count; i++) {
        const struct dataset_item *item = &dataset->items[split].items[i];
        if (item->file != NULL)
            add_file(digest, dataset->root, item->file);
        else
            used[item->source] = true;
    }
    for (size_t i = 0; i < dataset->source_count; i++)
        if (used[i])
            add_samples(digest, &dataset->sources[i]);
    free(used);
}

status dataset_identify(const struct dataset *dataset, enum split split, struct dataset_identity *identity,
                        struct error *error)
{
    struct digest list = digest_begin();
    TRY(add_list(&list, dataset, split, error));
    struct digest content = list;
    add_content(&content, dataset, split);
    digest_end(&list, identity->list);
    digest_end(&content, identity->content);
    return OK;
}

static const char *below_own_folder(const struct dataset *dataset, const char *file)
{
    size_t size = dataset->folder != NULL ? strlen(dataset->folder) : 0;
    bool below = size > 0 && strncmp(file, dataset->folder, size) == 0 && file[size] == '/';
    return below ? file + size + 1 : file;
}

void dataset_digest_item(struct digest *digest, const struct dataset *dataset, enum split split, size_t index)
{
    const struct dataset_item *item = &dataset->items[split].items[index];
    if (item->file != NULL)
        add_text(digest, below_own_folder(dataset, item->file));
    else
        add_number(digest, item->position - (is_generated(dataset, item) ? 0 : dataset->sources[item->source].first));
    add_number(digest, (uint64_t)item->label);
}

void dataset_digest_items(const struct dataset *dataset, enum split split, char hash[DIGEST_SIZE])
{
    struct digest digest = digest_begin();
    for (size_t i = 0; i < dataset->items[split].count; i++)
        dataset_digest_item(&digest, dataset, split, i);
    digest_end(&digest, hash);
}
