/* mtil data show: a page of a dataset's images with their labels and prompts. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/rng.h"
#include "core/scope.h"
#include "harness/commands/inputs/dataset_choice.h"
#include "harness/commands/output.h"
#include "harness/terminal/contact_sheet.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    OPTION(TEXT, "root", ".", "folder that holds the datasets' folders"),
    OPTION_ONE_OF("part", "train|test", "train", "split to show"),
    OPTION_NUMBER(INTEGER, "count", 1, CONTACT_SHEET_MOST, "24", "number of images"),
    OPTION(TEXT, "out", NULL, "PNG file to write (default DATASET.png)"),
    OPTION_NUMBER(INTEGER, "seed", 0, 1e15, "1", "seed of the random choice"),
    OPTION_SPLIT,
    OPTION_PATH,
    {0},
};

/* Some images of one part of a dataset, and their page. */
struct showing {
    const struct command_call *call;
    const struct dataset *dataset;
    enum split part;
    uint32_t *items;
    size_t count;
    struct contact_sheet sheet;
    struct table table;
};

static void close_showing(struct showing *showing)
{
    contact_sheet_free(&showing->sheet);
    table_free(&showing->table);
    free(showing->items);
}

struct place {
    int label;
    uint32_t item;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->label != y->label ? x->label - y->label : (x->item > y->item) - (x->item < y->item);
}

/* `count` items drawn without repetition, in the order of their labels. */
static status draw_items(struct showing *showing, struct error *error)
{
    size_t all = dataset_size(showing->dataset, showing->part);
    if (all == 0)
        return error_set(error, ERROR_FORMAT, "%s: there are no images to %s with", dataset_name(showing->dataset),
                         options_text(showing->call->options, "part"));
    showing->count = (size_t)options_integer(showing->call->options, "count");
    showing->count = showing->count < all ? showing->count : all;
    showing->items = xmalloc(all * sizeof *showing->items);
    OWNED struct place *places = xmalloc(showing->count * sizeof *places);
    struct rng rng = rng_make((uint64_t)options_integer(showing->call->options, "seed"), RNG_ORDER, 0, 0);
    rng_permutation(&rng, all, showing->items);
    for (size_t i = 0; i < showing->count; i++)
        places[i] =
            (struct place){dataset_label(showing->dataset, showing->part, showing->items[i]), showing->items[i]};
    qsort(places, showing->count, sizeof *places, compare_places);
    for (size_t i = 0; i < showing->count; i++)
        showing->items[i] = places[i].item;
    return OK;
}

static status show_item(struct showing *showing, size_t item, struct error *error)
{
    SCOPED(image_free) struct image image = {0};
    int label;
    TRY(dataset_read(showing->dataset, showing->part, item, &image, &label, error));
    const char *class_name = dataset_class_name(showing->dataset, (size_t)label);
    OWNED char *title = path_format("%d: %s", label, class_name),
               *file = dataset_item_name(showing->dataset, showing->part, item),
               *prompt = prompt_format(dataset_template(showing->dataset, 0), class_name);
    TRY(contact_sheet_add(&showing->sheet, &image, title, prompt, error));
    table_add_integer(&showing->table, (int64_t)item);
    table_add_text(&showing->table, file);
    table_add_integer(&showing->table, label);
    table_add_text(&showing->table, class_name);
    table_add_text(&showing->table, prompt);
    return OK;
}

static status show_items(struct showing *showing, struct error *error)
{
    static const char *const titles[] = {"item", "image", "label", "class", "prompt"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(&showing->table, &(struct table_column){.title = titles[i]});
    for (size_t i = 0; i < showing->count; i++) {
        if (stop_requested(showing->call->stop))
            return error_set(error, ERROR_STOPPED, "stopped, nothing was written");
        TRY(show_item(showing, showing->items[i], error));
    }
    return OK;
}

static status write_page(const struct showing *showing, struct error *error)
{
    const char *given = options_text(showing->call->options, "out");
    OWNED char *path = given != NULL ? xstrdup(given) : path_format("%s.png", dataset_name(showing->dataset));
    TRY(image_write_png(path, &showing->sheet.page, error));
    log_info(showing->call->log, "%s: %zu of %zu images", path, showing->count,
             dataset_size(showing->dataset, showing->part));
    return OK;
}

static status run(const struct command_call *call, struct error *error)
{
    SCOPED(dataset_close_at) struct dataset *dataset = NULL;
    struct dataset_choice choice = {.name = call->arguments[0],
                                    .root = options_text(call->options, "root"),
                                    .split = options_text(call->options, "split"),
                                    .path = options_text(call->options, "path"),
                                    .skip_missing = true};
    TRY(dataset_choice_open(&choice, call->log, &dataset, error));
    SCOPED(close_showing)
    struct showing showing = {.call = call,
                              .dataset = dataset,
                              .part = options_choice(call->options, "part") == 0 ? SPLIT_TRAIN : SPLIT_TEST};
    TRY(draw_items(&showing, error));
    TRY(contact_sheet_create(&showing.sheet, showing.count, error));
    TRY(show_items(&showing, error));
    TRY(write_page(&showing, error));
    output_table(call, &showing.table);
    return OK;
}

const struct command command_data_show = {
    .name = "data show",
    .arguments = "DATASET",
    .summary = "write a page of a dataset's images with their labels and prompts as a PNG",
    .details = "The prompt is the first template with the class name. The same images are printed as a table. Letters\n"
               "beyond ASCII are drawn without diacritics or as a box; the table shows them unchanged.\n",
    .example = "  mtil data show dtd --root=data/mini --part=test --count=12 --out=dtd.png\n",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run,
};
