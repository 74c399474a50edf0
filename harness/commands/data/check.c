/* mtil data check: whether the datasets below a root are complete and fit for training. */
#include <string.h>

#include "core/file.h"
#include "core/scope.h"
#include "datasets/check.h"
#include "datasets/dataset.h"
#include "harness/commands/inputs/dataset_choice.h"
#include "harness/commands/output.h"
#include "harness/run/identity/surveyor.h"

static const struct option options[] = {
    OUTPUT_FORMAT_OPTION,
    OPTION(BOOLEAN, "json", "false", "JSON output, as with --format=json"),
    OPTION(LIST, "dataset", NULL, "datasets to check; default: all that are found"),
    OPTION_ONE_OF("split", "any|torchvision|coop", "any", "split to check; any: torchvision's, or else CoOp's"),
    OPTION_PATH,
    OPTION(BOOLEAN, "problems", "false", "print every problem instead of the counts"),
    OPTION(BOOLEAN, "strict", "false",
           "also fail if sizes differ from the published ones or classes have no test images"),
    OPTION(TEXT, "cache-folder", NULL,
           "folder for surveys of images, which runs reuse, as in run.cache_folder (default $XDG_CACHE_HOME/mtil or "
           "~/.cache/mtil)"),
    THREADS_OPTION,
    {0},
};

static const char *const parts[SPLITS] = {"train", "test"};
static const char *const kinds[CHECK_KINDS] = {"missing",  "unreadable", "duplicate",  "two classes",
                                               "repeated", "left out",   "empty class"};

/* The survey of all datasets so far. */
struct root_survey {
    const struct command_call *call;
    const char *root, *path; /* path: for the reader whose folder is an option */
    struct surveyor surveyor;
    const struct dataset_reader *reader; /* of the current dataset */
    const char *name;                    /* the reader's, or the folder's where its contents identified it */
    size_t count, unfit, different;
    struct text unfit_names;
    struct table counts, problems;
};

static void survey_begin(struct root_survey *survey)
{
    static const struct table_column counts[] = {
        {.title = "dataset"},    {.title = "folder"},    {.title = "split"},
        {.title = "part"},       {.title = "classes"},   {.title = "images"},
        {.title = "published"},  {.title = "least"},     {.title = "median", .decimals = 1},
        {.title = "most"},       {.title = "empty"},     {.title = "missing"},
        {.title = "unreadable"}, {.title = "duplicate"}, {.title = "two_classes"},
        {.title = "repeated"},   {.title = "clipped"},   {.title = "state"}};
    static const struct table_column problems[] = {
        {.title = "dataset"}, {.title = "part"}, {.title = "problem"}, {.title = "what"}, {.title = "detail"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        table_add_column(&survey->counts, &counts[i]);
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        table_add_column(&survey->problems, &problems[i]);
}

static void survey_end(struct root_survey *survey)
{
    text_free(&survey->unfit_names);
    table_free(&survey->counts);
    table_free(&survey->problems);
    surveyor_close(&survey->surveyor);
}

static void add_problem(struct root_survey *survey, const char *part, const char *problem, const char *what,
                        const char *detail)
{
    table_add_text(&survey->problems, survey->reader->name);
    table_add_text(&survey->problems, part);
    table_add_text(&survey->problems, problem);
    table_add_text(&survey->problems, what);
    table_add_text(&survey->problems, detail);
}

/* --- messages about one dataset ------------------------------------------------------------------------------- */

static void report_finding(const struct root_survey *survey, const struct check_finding *finding)
{
    const struct log *log = survey->call->log;
    const char *name = survey->name;
    switch (finding->kind) {
    case CHECK_MISSING:
        log_warn(log, "%s: %s is listed but missing", name, finding->subject);
        break;
    case CHECK_UNREADABLE:
        log_warn(log, "%s: %s", name, finding->detail);
        break;
    case CHECK_DUPLICATE:
        log_warn(log, "%s: the test image %s has the pixels of the training image %s", name, finding->subject,
                 finding->detail);
        break;
    case CHECK_CLASSES:
        log_warn(log, "%s: %s has the pixels of %s, and another class", name, finding->subject, finding->detail);
        break;
    case CHECK_REPEATED:
        log_warn(log, "%s: %s is listed more than once, and counts as often", name, finding->subject);
        break;
    case CHECK_EMPTY_CLASS:
        log_warn(log, "%s: the class \"%s\" has no images to %s with", name, finding->subject, parts[finding->split]);
        break;
    case CHECK_LEFT_OUT:
        log_warn(log, "%s: %s is not an image in a class folder, and is left out", name, finding->subject);
        break;
    }
}

/* All findings go to the table; the first few of each kind also to the log, unless the table is the answer. */
static void report_findings(struct root_survey *survey, const struct check *check)
{
    enum { REPORTED = 3 };
    bool logs = !options_boolean(survey->call->options, "problems");
    size_t reported[SPLITS][CHECK_KINDS] = {{0}};
    for (size_t i = 0; i < check->count; i++) {
        const struct check_finding *finding = &check->findings[i];
        size_t *so_far = &reported[finding->split][finding->kind],
               all = check->splits[finding->split].of[finding->kind];
        add_problem(survey, parts[finding->split], kinds[finding->kind], finding->subject, finding->detail);
        if ((*so_far)++ < REPORTED && logs)
            report_finding(survey, finding);
        if (*so_far == all && all > REPORTED && logs)
            log_warn(survey->call->log, "%s: %zu more of this kind in %s (%s); --problems lists all", survey->name,
                     all - REPORTED, parts[finding->split], kinds[finding->kind]);
    }
}

static void report_clipped(const struct root_survey *survey, const struct check *check)
{
    size_t clipped = check->splits[SPLIT_TRAIN].clipped + check->splits[SPLIT_TEST].clipped;
    if (clipped > 0)
        log_warn(survey->call->log,
                 "%s: %zu images are 16-bit grey with values beyond 255, which are read as white, as Pillow does",
                 survey->name, clipped);
}

/* Whether the sizes differ from the published ones; logs the difference. */
static bool differs(struct root_survey *survey, const struct dataset *dataset,
                    const struct dataset_published *published)
{
    size_t classes = dataset_classes(dataset), train = dataset_size(dataset, SPLIT_TRAIN),
           test = dataset_size(dataset, SPLIT_TEST);
    if (published == NULL || (published->classes == classes && published->train == train && published->test == test))
        return false;
    char detail[160];
    snprintf(detail, sizeof detail, "published %zu classes, %zu + %zu images; found %zu classes, %zu + %zu",
             published->classes, published->train, published->test, classes, train, test);
    log_info(survey->call->log, "%s: %s", survey->name, detail);
    add_problem(survey, NULL, "differs", NULL, detail);
    return true;
}

static void add_count(struct table *table, bool known, size_t count)
{
    if (known)
        table_add_integer(table, (int64_t)count);
    else
        table_add_empty(table);
}

static void add_counts(struct root_survey *survey, const struct dataset *dataset, const char *split,
                       const struct dataset_published *published, const struct check *check, const char *state)
{
    struct table *table = &survey->counts;
    for (int part = 0; part < SPLITS; part++) {
        const struct check_split *found = &check->splits[part];
        table_add_text(table, survey->reader->name);
        table_add_text(table, dataset_own_folder(dataset));
        table_add_text(table, split);
        table_add_text(table, parts[part]);
        table_add_integer(table, (int64_t)dataset_classes(dataset));
        table_add_integer(table, (int64_t)found->images);
        add_count(table, published != NULL,
                  published == NULL     ? 0
                  : part == SPLIT_TRAIN ? published->train
                                        : published->test);
        table_add_integer(table, (int64_t)found->least);
        table_add_real(table, found->median);
        table_add_integer(table, (int64_t)found->most);
        table_add_integer(table, (int64_t)found->of[CHECK_EMPTY_CLASS]);
        table_add_integer(table, (int64_t)found->of[CHECK_MISSING]);
        table_add_integer(table, (int64_t)found->of[CHECK_UNREADABLE]);
        add_count(table, part == SPLIT_TEST, found->of[CHECK_DUPLICATE]);
        table_add_integer(table, (int64_t)found->of[CHECK_CLASSES]);
        table_add_integer(table, (int64_t)found->of[CHECK_REPEATED]);
        table_add_integer(table, (int64_t)found->clipped);
        table_add_text(table, state);
    }
}

static void count_unfit(struct root_survey *survey)
{
    text_add(&survey->unfit_names, "%s%s", survey->unfit > 0 ? ", " : "", survey->name);
    survey->unfit++;
}

static void add_unopened(struct root_survey *survey, const struct error *cause)
{
    if (!options_boolean(survey->call->options, "problems"))
        log_warn(survey->call->log, "%s: %s", survey->name, cause->message);
    add_problem(survey, NULL, "not opened", NULL, cause->message);
    table_add_text(&survey->counts, survey->reader->name);
    table_add_text(&survey->counts, survey->path); /* the reader "folder" has no other name */
    for (size_t i = 3; i < survey->counts.columns; i++)
        table_add_empty(&survey->counts);
    table_add_text(&survey->counts, "unfit");
    count_unfit(survey);
}

/* --- one dataset -------------------------------------------------------------------------------------------------- */

static status open_split(const struct root_survey *survey, const char *split, struct dataset **dataset,
                         struct error *error)
{
    struct dataset_choice choice = {
        .name = survey->reader->name, .root = survey->root, .split = split, .path = survey->path, .skip_missing = true};
    return dataset_choice_open(&choice, NULL, dataset, error);
}

/* Opens the dataset with the requested split or the one available; *split becomes its name. */
static status open_any(const struct root_survey *survey, const char **split, struct dataset **dataset,
                       struct error *error)
{
    const char *wanted = options_text(survey->call->options, "split");
    bool any = strcmp(wanted, "any") == 0, has_coop = survey->reader->coop != NULL;
    struct error again;
    *split = any || !has_coop ? "torchvision" : wanted;
    if (open_split(survey, *split, dataset, error) == OK)
        return OK;
    if (!any || !has_coop || open_split(survey, "coop", dataset, &again) != OK)
        return error->code;
    log_info(survey->call->log, "%s: CoOp's split is checked, since torchvision's does not open: %s", survey->name,
             error->message);
    *split = "coop";
    return OK;
}

/* Faults of the dataset are the answer of this command, not a failure. */
static status check_one(struct root_survey *survey, struct error *error)
{
    SCOPED(dataset_close_at) struct dataset *dataset = NULL;
    SCOPED(check_free) struct check check = {0};
    struct error cause;
    const char *split;
    if (open_any(survey, &split, &dataset, &cause) != OK) {
        if (cause.code == ERROR_MEMORY)
            return error_set(error, cause.code, "%s", cause.message);
        add_unopened(survey, &cause);
        return OK;
    }
    TRY(check_dataset(&check, dataset, &survey->surveyor.settings, error));
    const struct dataset_published *published = dataset_published_find(survey->reader->name, split);
    report_findings(survey, &check);
    report_clipped(survey, &check);
    const size_t *train = check.splits[SPLIT_TRAIN].of, *test = check.splits[SPLIT_TEST].of;
    bool different = differs(survey, dataset, published) || test[CHECK_EMPTY_CLASS] > 0;
    bool unfit = train[CHECK_MISSING] + train[CHECK_UNREADABLE] + train[CHECK_EMPTY_CLASS] + test[CHECK_MISSING] +
                     test[CHECK_UNREADABLE] + test[CHECK_DUPLICATE] >
                 0;
    add_counts(survey, dataset, split, published, &check, unfit ? "unfit" : different ? "differs" : "ok");
    survey->different += different && !unfit;
    if (unfit)
        count_unfit(survey);
    return OK;
}

/* --- the root ----------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct root_survey *survey, const struct dataset_reader *reader)
{
    const struct options *given = survey->call->options;
    size_t names = options_list_size(given, "dataset");
    for (size_t i = 0; i < names; i++)
        if (strcmp(options_list_item(given, "dataset", i), reader->name) == 0)
            return true;
    return names == 0 && dataset_found(reader, survey->root);
}

static status check_names(const struct options *given, struct error *error)
{
    const struct dataset_reader *reader;
    for (size_t i = 0; i < options_list_size(given, "dataset"); i++)
        TRY(dataset_reader_find(&reader, options_list_item(given, "dataset", i), error));
    return OK;
}

/* One dataset of the root; path is for the reader whose folder is an option. */
static status check_next(struct root_survey *survey, const struct dataset_reader *reader, const char *path,
                         const char *name, struct error *error)
{
    survey->reader = reader;
    survey->path = path;
    survey->name = name;
    survey->surveyor.subject = (struct surveyor_subject){name, survey->surveyor.subject.number + 1, survey->count};
    return check_one(survey, error);
}

static status check_all(struct root_survey *survey, const struct directory *found, struct error *error)
{
    size_t count;
    const struct dataset_reader *folder, *const *readers = dataset_readers(&count);
    survey->count = found->count;
    for (size_t i = 0; i < count; i++)
        survey->count += is_wanted(survey, readers[i]);
    if (survey->count == 0)
        return error_set(
            error, ERROR_IO,
            "%s: expected a folder with datasets, found none of those that mtil list datasets shows, and no "
            "class folders of images",
            survey->root);
    for (size_t i = 0; i < count; i++) {
        bool has_path = readers[i]->folders[0] == NULL && options_find(readers[i]->options, "path") != NULL;
        if (is_wanted(survey, readers[i]))
            TRY(check_next(survey, readers[i], has_path ? options_text(survey->call->options, "path") : NULL,
                           readers[i]->name, error));
    }
    TRY(dataset_reader_find(&folder, "folder", error));
    for (size_t i = 0; i < found->count; i++)
        TRY(check_next(survey, folder, found->names[i], found->names[i], error));
    return OK;
}

static status print_survey(const struct root_survey *survey, struct error *error)
{
    const struct command_call *call = survey->call;
    const struct table *table = options_boolean(call->options, "problems") ? &survey->problems : &survey->counts;
    progress_end(call->progress);
    if (options_boolean(call->options, "json"))
        output_table_as(call, table, TABLE_JSON);
    else
        output_table(call, table);
    if (survey->unfit > 0)
        return error_set(error, ERROR_FORMAT, "%s: %zu of %zu datasets are unfit: %s; --problems says why",
                         survey->root, survey->unfit, survey->count, survey->unfit_names.data);
    if (survey->different > 0 && options_boolean(call->options, "strict"))
        return error_set(error, ERROR_FORMAT, "%s: %zu of %zu datasets differ from the published ones", survey->root,
                         survey->different, survey->count);
    return OK;
}

/* Folders that are no datasets, so that nobody takes them for checked. */
static void tell_others(const struct root_survey *survey, const struct directory *others)
{
    enum { NAMED = 8 };
    SCOPED(text_free) struct text names = {0};
    for (size_t i = 0; i < others->count && i < NAMED; i++)
        text_add(&names, "%s%s", i > 0 ? ", " : "", others->names[i]);
    if (others->count > 0)
        log_warn(
            survey->call->log,
            "%s: not checked, because they have neither two class folders of images nor train and test with such: %s%s",
            survey->root, names.data, others->count > NAMED ? ", …" : "");
}

/* Without names, checks all datasets that the readers find, and folders of images. */
static status check_root(struct root_survey *survey, struct error *error)
{
    SCOPED(directory_free) struct directory found = {0}, others = {0};
    if (!file_is_directory(survey->root))
        return error_set(error, ERROR_IO, "%s: expected a folder with datasets, found no folder", survey->root);
    if (options_list_size(survey->call->options, "dataset") == 0)
        TRY(dataset_find_folders(survey->root, &found, &others, error));
    status result = check_all(survey, &found, error);
    NEXT(result, print_survey(survey, error));
    if (result != ERROR_STOPPED)
        tell_others(survey, &others);
    return result;
}

static status run(const struct command_call *call, struct error *error)
{
    SCOPED(survey_end) struct root_survey survey = {.call = call, .root = call->arguments[0]};
    TRY(check_names(call->options, error));
    const struct settings settings = {.threads = (size_t)options_integer(call->options, "threads"),
                                      .cache.folder = options_text(call->options, "cache-folder")};
    TRY(surveyor_open(&survey.surveyor, &settings, call->log, call->progress, call->stop, error));
    survey_begin(&survey);
    return check_root(&survey, error);
}

const struct command command_data_check = {
    .name = "data check",
    .arguments = "ROOT",
    .summary = "decode every image of every dataset below a folder and report faults",
    .details =
        "Compares sizes with the published ones and looks for listed images that are missing, images that\n"
        "cannot be read, test images with the pixels of a training image, and classes without images. Any of\n"
        "these makes a dataset unfit and the exit status 1; different sizes alone do so only with --strict.\n"
        "Without --dataset, folders with class folders of images (or train and test with such) are checked too.\n"
        "The survey of the images is stored: a run or another check decodes only images that have changed since.\n",
    .example = "  mtil data check data/mini\n"
               "  mtil data check /data --dataset=dtd,food --problems --json\n",
    .options = options,
    .least = 1,
    .most = 1,
    .run = run,
};
