#include "datasets/mini/mini.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "datasets/mini/layout.h"

/* In the order of suite_domains, each with its folder below the root. */
static const struct {
    const char *folder;
    status (*write)(struct layout *, struct error *);
} layouts[SUITE_DOMAINS] = {
    {"fgvc-aircraft-2013b", layout_aircraft},
    {"caltech101", layout_caltech101},
    {"cifar-100-python", layout_cifar100},
    {"dtd", layout_dtd},
    {"eurosat", layout_eurosat},
    {"flowers-102", layout_flowers},
    {"food-101", layout_food},
    {"MNIST", layout_mnist},
    {"oxford-iiit-pet", layout_oxford_pet},
    {"stanford_cars", layout_stanford_cars},
    {"SUN397", layout_sun397},
};

/* mini.json says that the suite is complete, mini.unfinished that it is being written; both hold the same line. */
struct marker {
    char *complete, *unfinished;
    struct text line;
};

static void marker_make(struct marker *marker, const char *root, uint64_t seed)
{
    marker->complete = path_format("%s/mini.json", root);
    marker->unfinished = path_format("%s/mini.unfinished", root);
    text_add(&marker->line, "{\"suite\": \"mini\", \"generator\": %d, \"seed\": %llu}\n", MINI_GENERATOR,
             (unsigned long long)seed);
}

static void marker_free(struct marker *marker)
{
    free(marker->complete);
    free(marker->unfinished);
    text_free(&marker->line);
}

/* ERROR_ARGUMENT when the marker at path is not ours. */
static status marker_check(const struct marker *marker, const char *path, struct error *error)
{
    struct bytes found;
    TRY(file_read(path, 4096, &found, error));
    bool same = found.size == marker->line.size && memcmp(found.data, marker->line.data, found.size) == 0;
    status result = OK;
    if (!same)
        result =
            error_set(error, ERROR_ARGUMENT, "%s: expected %.*s, found %.*s; remove the folder or choose another one",
                      path, (int)marker->line.size - 1, marker->line.data, (int)strcspn((const char *)found.data, "\n"),
                      (const char *)found.data);
    bytes_free(&found);
    return result;
}

/* Refuses a root without a marker that has one of the folders. */
static status refuse_foreign(const char *root, struct error *error)
{
    for (int k = 0; k < SUITE_DOMAINS; k++) {
        char *path = path_format("%s/%s", root, layouts[k].folder);
        bool there = file_exists(path);
        status result =
            there ? error_set(error, ERROR_ARGUMENT,
                              "%s: already there and not written by this program; choose an empty folder for the suite",
                              path)
                  : OK;
        free(path);
        TRY(result);
    }
    return OK;
}

static status write_datasets(const char *root, const struct mini_settings *settings, struct error *error)
{
    for (int k = 0; k < SUITE_DOMAINS; k++) {
        TRY(layout_go_on(settings, root, error));
        struct layout layout = {.domain = &suite_domains[k], .settings = settings, .root = root};
        log_debug(settings->log, "%s: writing %s", root, layout.domain->name);
        status result = layouts[k].write(&layout, error);
        NEXT(result, layout_coop_split(&layout, error));
        NEXT(result, layout_draw(&layout, error));
        layout_free(&layout);
        TRY(result);
    }
    return OK;
}

static status write_marked(const char *root, const struct mini_settings *settings, const struct marker *marker,
                           struct error *error)
{
    if (file_exists(marker->complete)) {
        TRY(marker_check(marker, marker->complete, error));
        unlink(marker->unfinished);
        log_info(settings->log, "%s: the suite is complete, nothing to do", root);
        return OK;
    }
    if (file_exists(marker->unfinished)) {
        TRY(marker_check(marker, marker->unfinished, error));
        temporary_clear_below(root);
    } else {
        TRY(refuse_foreign(root, error));
    }
    TRY(directory_create(root, error));
    TRY(file_write(marker->unfinished, marker->line.data, marker->line.size, error));
    TRY(write_datasets(root, settings, error));
    TRY(file_sync_all(root, error));
    TRY(file_write(marker->complete, marker->line.data, marker->line.size, error));
    unlink(marker->unfinished); /* harmless when it stays: mini.json is looked at first, and the next call removes it */
    return OK;
}

status mini_write(const char *root, const struct mini_settings *settings, struct error *error)
{
    struct marker marker = {0};
    marker_make(&marker, root, settings->seed);
    status result = write_marked(root, settings, &marker, error);
    marker_free(&marker);
    return result;
}
