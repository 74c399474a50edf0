#include "datasets/dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "datasets/prompts.h"
#include "datasets/readers/reader.h"
#include "datasets/split/coop.h"

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* 0 if root/name is a folder, ENOENT if there is none, otherwise the errno of the failure. */
static int look_for_folder(const char *root, const char *name)
{
    struct stat information;
    OWNED char *path = path_format("%s/%s", root, name);
    int number = stat(path, &information) != 0 ? errno : 0;
    if (number == ENOTDIR || (number == 0 && !S_ISDIR(information.st_mode)))
        return ENOENT;
    return number;
}

static status choose_folder(struct dataset *dataset, struct error *error)
{
    const char *const *folders = dataset->reader->folders;
    if (folders[0] == NULL)
        return OK;
    for (size_t i = 0; folders[i] != NULL; i++) {
        int number = look_for_folder(dataset->root, folders[i]);
        if (number != 0 && number != ENOENT)
            return error_errno(error, number, "%s/%s: cannot look for the dataset %s here", dataset->root, folders[i],
                               dataset->reader->name);
        if (number == 0) {
            dataset->folder = folders[i];
            return OK;
        }
    }
    bool two = folders[1] != NULL;
    SCOPED(strings_free) struct strings below = {0};
    strings_list_folders(&below, dataset->root, NULL);
    const char *near = nearest_word(folders[0], (const char *const *)below.items, below.count);
    OWNED char *link = near != NULL ? path_format("; if \"%s\" is meant: ln -s \"%s\" \"%s/%s\"", near, near,
                                                  dataset->root, folders[0])
                                    : NULL;
    error_set(error, ERROR_IO, "%s: expected a folder \"%s\"%s%s%s for the dataset %s, found none%s", dataset->root,
              folders[0], two ? " or \"" : "", two ? folders[1] : "", two ? "\"" : "", dataset->reader->name,
              link != NULL ? link : "");
    return ERROR_IO;
}

/* classnames.txt for the readers that find their classes in files. */
static status override_classes(struct dataset *dataset, struct error *error)
{
    SCOPED(strings_free) struct strings names = {0};
    bool found;
    if (dataset->names_given)
        return OK;
    TRY(dataset_read_override(dataset, "classnames.txt", &names, &found, error));
    if (!found)
        return OK;
    if (names.count != dataset->classes.count)
        return error_set(error, ERROR_FORMAT, "%s/%s/classnames.txt: expected %zu names, one a class, found %zu",
                         dataset->root, dataset->folder, dataset->classes.count, names.count);
    strings_free(&dataset->classes);
    dataset->classes = names;
    names = (struct strings){0};
    dataset->names_given = true;
    return OK;
}

/* The user's own names can be changed; the dataset's are as published. */
static status check_class_names(const struct dataset *dataset, struct error *error)
{
    struct same_names same;
    char *const *names = dataset->classes.items;
    prompts_find_same_names(&same, (const char *const *)names, dataset->classes.count);
    if (same.count == 0)
        return OK;
    if (dataset->names_given)
        return error_set(error, ERROR_FORMAT,
                         "%s/%s/classnames.txt:%zu: the class name \"%s\" is that of line %zu, \"%s\"; of two classes "
                         "with one name the second can never win, give it another name",
                         dataset->root, dataset->folder, same.second + 1, names[same.second], same.first + 1,
                         names[same.first]);
    log_warn(dataset->log,
             "%s/%s: %zu of %zu class names repeat those of earlier classes, and never win by name; the first is "
             "\"%s\" (labels %zu and %zu). Give them other names in classnames.txt",
             dataset->root, dataset->folder != NULL ? dataset->folder : dataset->reader->name, same.count,
             dataset->classes.count, names[same.second], same.first, same.second);
    return OK;
}

static bool has_one_hole(const char *template)
{
    const char *hole = strstr(template, "{}");
    return hole != NULL && strstr(hole + 2, "{}") == NULL;
}

static status choose_templates(struct dataset *dataset, struct error *error)
{
    bool found;
    TRY(dataset_read_override(dataset, "templates.txt", &dataset->templates, &found, error));
    if (!found)
        prompts_add_templates(dataset->reader->name, &dataset->templates);
    for (size_t i = 0; i < dataset->templates.count; i++) {
        if (!has_one_hole(dataset->templates.items[i]))
            return error_set(error, ERROR_FORMAT,
                             "%s/%s/templates.txt:%zu: expected one {} for the class name, found \"%s\"", dataset->root,
                             dataset->folder, i + 1, dataset->templates.items[i]);
    }
    return OK;
}

static status check_labels(const struct dataset *dataset, struct error *error)
{
    for (int split = 0; split < SPLITS; split++) {
        for (size_t i = 0; i < dataset->items[split].count; i++) {
            int32_t label = dataset->items[split].items[i].label;
            if (label >= 0 && (size_t)label < dataset->classes.count)
                continue;
            char *name = dataset_item_name(dataset, (enum split)split, i);
            error_set(error, ERROR_FORMAT,
                      "%s: %s: expected a label below %zu (0-based), the number of classes, found %d", dataset->root,
                      name, dataset->classes.count, label);
            free(name);
            return ERROR_FORMAT;
        }
    }
    if (dataset->items[SPLIT_TRAIN].count + dataset->items[SPLIT_TEST].count == 0)
        return error_set(error, ERROR_FORMAT, "%s: the dataset %s has no images", dataset->root, dataset->reader->name);
    return OK;
}

/* Moves the items without a file to the dataset's lists of missing files. */
static void drop_missing(struct dataset *dataset)
{
    for (int split = 0; split < SPLITS; split++) {
        struct dataset_items *items = &dataset->items[split];
        size_t kept = 0;
        for (size_t i = 0; i < items->count; i++) {
            char *path = path_format("%s/%s", dataset->root, items->items[i].file);
            bool found = file_exists(path);
            free(path);
            if (found)
                items->items[kept++] = items->items[i];
            else
                dataset_add_item(&dataset->missing[split], items->items[i]);
        }
        items->count = kept;
    }
}

/* "a.jpg, b.jpg, c.jpg, …"; the caller frees names. */
static void name_missing(const struct dataset *dataset, struct text *names)
{
    enum { NAMED = 3 };
    size_t named = 0, all = dataset_missing(dataset);
    for (int split = 0; split < SPLITS; split++)
        for (size_t i = 0; named < NAMED && i < dataset->missing[split].count; i++)
            text_add(names, "%s%s", named++ > 0 ? ", " : "", dataset->missing[split].items[i].file);
    text_add(names, "%s", all > named ? ", …" : "");
}

/* "; they are a folder deeper: mv a/a/… a" where the first missing image is there with one of its folders twice. */
static void advise_of_deeper(const struct dataset *dataset, const char *file, struct text *advice)
{
    for (const char *end = strchr(file, '/'), *start = file; end != NULL; start = end + 1, end = strchr(start, '/')) {
        int above = (int)(end - file), size = (int)(end - start);
        char *deeper = path_format("%s/%.*s/%.*s%s", dataset->root, above, file, size, start, end);
        bool found = file_exists(deeper);
        free(deeper);
        if (!found)
            continue;
        text_add(advice, "; they are a folder deeper: mv \"%s/%.*s/%.*s\"/* \"%s/%.*s/\"", dataset->root, above, file,
                 size, start, dataset->root, above, file);
        return;
    }
}

/* How the user may go on. A split without any image is no matter of a few that got lost. */
static void advise(const struct dataset *dataset, struct text *advice)
{
    static const char *const names[SPLITS] = {"training", "test"};
    for (int split = 0; split < SPLITS && advice->size == 0; split++) {
        const struct dataset_items *missing = &dataset->missing[split];
        if (missing->count == 0)
            continue;
        advise_of_deeper(dataset, missing->items[0].file, advice);
        if (advice->size == 0 && dataset->items[split].count == 0)
            text_add(advice, "; none of the %s images is there: put them into place, as datasets/README.md has them",
                     names[split]);
    }
    if (advice->size == 0)
        text_add(advice, "; set on_missing: skip for %s to continue without them", dataset->reader->name);
}

static status check_missing(struct dataset *dataset, struct error *error)
{
    SCOPED(text_free) struct text names = {0}, advice = {0};
    size_t listed = dataset->items[SPLIT_TRAIN].count + dataset->items[SPLIT_TEST].count;
    drop_missing(dataset);
    size_t missing = dataset_missing(dataset);
    if (missing == 0)
        return OK;
    bool skip = dataset->skip_missing;
    name_missing(dataset, &names);
    advise(dataset, &advice);
    if (skip)
        log_warn(dataset->log, "%s: %zu of %zu listed images of %s are missing and left out: %s", dataset->root,
                 missing, listed, dataset->reader->name, names.data);
    else
        error_set(error, ERROR_IO, "%s: %zu of %zu listed images of %s are missing: %s%s", dataset->root, missing,
                  listed, dataset->reader->name, names.data, advice.data);
    return skip ? OK : ERROR_IO;
}

static void report_left_out(const struct dataset *dataset)
{
    enum { NAMED = 3 };
    SCOPED(text_free) struct text names = {0};
    size_t count = dataset->left_out.count;
    for (size_t i = 0; i < count && i < NAMED; i++)
        text_add(&names, "%s%s", i > 0 ? ", " : "", dataset->left_out.items[i]);
    if (count > 0)
        log_info(dataset->log,
                 "%s/%s: only JPEG, PNG, GIF, WebP and BMP images in a class folder are read; files left out: %zu "
                 "(%s%s)",
                 dataset->root, dataset->folder, count, names.data, count > NAMED ? ", …" : "");
}

static bool is_chosen(const struct options *options, const char *key, const char *value)
{
    return options_find(options_table(options), key) != NULL && strcmp(options_text(options, key), value) == 0;
}

/* An archive that was unpacked into a folder of its own name lies a folder too deep, unless its files are looked for there. */
static status explain_deeper(const struct dataset *dataset, struct error *error)
{
    const char *own = dataset->folder != NULL ? dataset->folder : "", *slash = strrchr(own, '/');
    OWNED char *folder = path_format("%s/", own);
    OWNED char *deeper = path_format("%s%s/", folder, slash != NULL ? slash + 1 : own);
    struct error first = *error;
    SCOPED(text_free) struct text advice = {0};
    if (first.code == ERROR_IO && dataset->reader->folders[0] != NULL && strstr(first.message, deeper) == NULL)
        advise_of_deeper(dataset, folder, &advice);
    if (advice.size > 0)
        error_set(error, first.code, "%s%s", first.message, advice.data);
    return first.code;
}

static status open_with(struct dataset *dataset, const struct options *options, struct error *error)
{
    bool coop = is_chosen(options, "split", "coop"),
         own_lists = !coop || (dataset->reader->coop != NULL && !dataset->reader->coop->file);
    dataset->skip_missing = is_chosen(options, "on_missing", "skip");
    dataset->skip_unreadable = is_chosen(options, "on_unreadable", "skip");
    dataset->original_names = is_chosen(options, "class_names", "original");
    if (own_lists) {
        TRY(choose_folder(dataset, error));
        if (dataset->reader->open(dataset, options, error) != OK)
            return explain_deeper(dataset, error);
    } else {
        TRY(coop_open(dataset, error));
    }
    TRY(override_classes(dataset, error));
    TRY(check_class_names(dataset, error));
    TRY(choose_templates(dataset, error));
    if (dataset->reader->listed || dataset->has_lists || coop) {
        TRY(check_missing(dataset, error));
        dataset_warn_repeated(dataset);
    }
    report_left_out(dataset);
    return check_labels(dataset, error);
}

status dataset_open(struct dataset **dataset, const char *name, const char *root, const struct options *options,
                    const struct log *log, struct error *error)
{
    const struct dataset_reader *reader;
    SCOPED(options_destroy_at) struct options *defaults = NULL;
    *dataset = NULL;
    TRY(dataset_reader_find(&reader, name, error));
    SCOPED(dataset_close_at) struct dataset *opened = xcalloc(1, sizeof *opened);
    opened->root = xstrdup(root != NULL ? root : ".");
    opened->reader = reader;
    opened->log = log;
    if (options == NULL)
        TRY(options_create(&defaults, reader->options, error));
    TRY(open_with(opened, options != NULL ? options : defaults, error));
    *dataset = TAKE(opened);
    return OK;
}

void dataset_close(struct dataset *dataset)
{
    if (dataset == NULL)
        return;
    for (size_t i = 0; i < dataset->source_count && dataset->whole == NULL; i++) {
        dataset->sources[i].release(dataset->sources[i].owner);
        free(dataset->sources[i].name);
    }
    if (dataset->whole == NULL)
        free(dataset->sources);
    for (int split = 0; split < SPLITS; split++) {
        dataset_items_free(&dataset->items[split]);
        dataset_items_free(&dataset->missing[split]);
    }
    strings_free(&dataset->classes);
    strings_free(&dataset->templates);
    strings_free(&dataset->left_out);
    free(dataset->given_folder);
    free(dataset->root);
    free(dataset);
}

bool dataset_found(const struct dataset_reader *reader, const char *root)
{
    for (size_t i = 0; reader->folders[i] != NULL; i++)
        if (look_for_folder(root, reader->folders[i]) != ENOENT)
            return true;
    return false;
}

status dataset_set_template(struct dataset *dataset, const char *template, struct error *error)
{
    if (!has_one_hole(template))
        return error_set(error, ERROR_ARGUMENT, "expected a template with one {} for the class name, found \"%s\"",
                         template);
    strings_free(&dataset->templates);
    strings_add(&dataset->templates, template, strlen(template));
    return OK;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

const char *dataset_name(const struct dataset *dataset)
{
    return dataset->reader->name;
}

const char *dataset_root(const struct dataset *dataset)
{
    return dataset->root;
}

size_t dataset_size(const struct dataset *dataset, enum split split)
{
    return dataset->items[split].count;
}

bool dataset_skips_unreadable(const struct dataset *dataset)
{
    return dataset->skip_unreadable;
}

size_t dataset_missing(const struct dataset *dataset)
{
    return dataset->missing[SPLIT_TRAIN].count + dataset->missing[SPLIT_TEST].count;
}

const char *dataset_missing_file(const struct dataset *dataset, enum split split, size_t index)
{
    return index < dataset->missing[split].count ? dataset->missing[split].items[index].file : NULL;
}

const char *dataset_left_out(const struct dataset *dataset, size_t index)
{
    return index < dataset->left_out.count ? dataset->left_out.items[index] : NULL;
}

const char *dataset_own_folder(const struct dataset *dataset)
{
    return dataset->folder;
}

size_t dataset_classes(const struct dataset *dataset)
{
    return dataset->classes.count;
}

const char *dataset_class_name(const struct dataset *dataset, size_t index)
{
    return dataset->classes.items[index];
}

size_t dataset_templates(const struct dataset *dataset)
{
    return dataset->templates.count;
}

const char *dataset_template(const struct dataset *dataset, size_t index)
{
    return dataset->templates.items[index];
}

int dataset_label(const struct dataset *dataset, enum split split, size_t index)
{
    return dataset->items[split].items[index].label;
}

const char *dataset_item_file(const struct dataset *dataset, enum split split, size_t index, int64_t *record)
{
    const struct dataset_item *item = &dataset->items[split].items[index];
    const struct raw_images *images = item->source < dataset->source_count ? &dataset->sources[item->source] : NULL;
    *record = item->file != NULL ? -1 : (int64_t)item->position - (images != NULL ? images->first : 0);
    return item->file != NULL ? item->file : images != NULL ? images->name : dataset->reader->name;
}

char *dataset_item_name(const struct dataset *dataset, enum split split, size_t index)
{
    int64_t record;
    const char *file = dataset_item_file(dataset, split, index, &record);
    return record < 0 ? xstrdup(file) : path_format("%s[%" PRId64 "]", file, record);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static status read_raw(const struct raw_images *images, uint32_t row, struct image *image, struct error *error)
{
    const uint8_t *samples = images->samples + (size_t)row * images->stride;
    size_t count = (size_t)images->width * (size_t)images->height, plane = images->channels == 3 ? count : 0;
    TRY(image_create(image, images->width, images->height, error));
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < 3; c++)
            image->pixels[3 * i + c] = samples[c * plane + i];
    return OK;
}

static status read_file(const struct dataset *dataset, const char *file, struct image *image, struct error *error)
{
    OWNED char *path = path_format("%s/%s", dataset->root, file);
    return image_decode_file(image, path, error);
}

status dataset_read(const struct dataset *dataset, enum split split, size_t index, struct image *image, int *label,
                    struct error *error)
{
    *image = (struct image){0};
    if (index >= dataset->items[split].count)
        return error_set(error, ERROR_ARGUMENT, "%s: asked for item %zu of %zu", dataset->reader->name, index,
                         dataset->items[split].count);
    const struct dataset_item *item = &dataset->items[split].items[index];
    if (label != NULL)
        *label = item->label;
    if (dataset->reader->read != NULL)
        return dataset->reader->read(dataset, item, image, error);
    if (item->file != NULL)
        return read_file(dataset, item->file, image, error);
    const struct raw_images *images = &dataset->sources[item->source];
    return read_raw(images, item->position - images->first, image, error);
}

char *prompt_format(const char *template, const char *name)
{
    const char *hole = strstr(template, "{}");
    if (hole == NULL)
        return xstrdup(template);
    return path_format("%.*s%s%s", (int)(hole - template), template, name, hole + 2);
}

/* --- digests, to detect that something made from pixels is out of date -------------------------------------------- */

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
    OWNED char *path = path_format("%s/%s", root, file);
    add_number(digest, file_stamp_read(&stamp, path, NULL) == OK);
    digest_add(digest, &stamp, sizeof stamp);
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
    OWNED bool *used = xcalloc(dataset->source_count + 1, sizeof *used);
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
