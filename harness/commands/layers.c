/* mtil layers: which blocks gain most from experts. */
#include "core/scope.h"
#include "harness/commands/inputs/suite_words.h"
#include "harness/commands/output.h"
#include "harness/run/layer_choice.h"
#include "harness/run/run.h"

static const struct option options[] = {OUTPUT_FORMAT_OPTION, BACKEND_OPTIONS(NULL, NULL, NULL), {0}};

static void add_columns(struct table *table, const struct run *run)
{
    static const char *const titles[] = {"tower", "rank", "block", "score"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(table, &(struct table_column){.title = titles[i], .decimals = 4, .once = i == 0});
    for (size_t k = 0; run->data.task_count > 1 && k < run->data.task_count; k++)
        table_add_column(table, &(struct table_column){.title = run->data.tasks[k].settings.name, .decimals = 4});
}

static void add_block(struct table *table, const struct layer_scores *scores, enum tower tower, size_t block)
{
    table_add_text(table, tower == TOWER_IMAGE ? "image" : "text");
    table_add_integer(table, (int64_t)layer_scores_rank(scores, tower, block));
    table_add_integer(table, (int64_t)block);
    table_add_real(table, layer_scores_sum(scores, tower, block));
    for (size_t k = 0; scores->tasks > 1 && k < scores->tasks; k++)
        table_add_real(table, scores->values[tower][k * scores->blocks[tower] + block]);
}

/* A block of rows per tower, the best first. */
static void show(const struct command_call *call, const struct run *run, const struct layer_scores *scores)
{
    SCOPED(table_free) struct table table = {0};
    add_columns(&table, run);
    for (int t = 0; t < TOWERS; t++) {
        if (scores->blocks[t] > 0 && table_rows(&table) > 0)
            table_begin_block(&table);
        for (size_t rank = 1; rank <= scores->blocks[t]; rank++)
            for (size_t block = 0; block < scores->blocks[t]; block++)
                if (layer_scores_rank(scores, (enum tower)t, block) == rank)
                    add_block(&table, scores, (enum tower)t, block);
    }
    output_table(call, &table);
}

static status score(const struct command_call *call, const struct suite *suite, struct error *error)
{
    SCOPED(run_close_at) struct run *run = NULL;
    SCOPED(layer_scores_free) struct layer_scores scores = {0};
    TRY(run_open(&run, suite, settings_seed(suite, 0), call->log, error));
    run->model.stop = call->stop;
    TRY(layer_choice_score(run, call->progress, &scores, error));
    progress_end(call->progress);
    show(call, run, &scores);
    return OK;
}

static status run(const struct command_call *call, struct error *error)
{
    /* blocks and sharing of the suite and of the command line are overridden: the last word counts */
    static const char *const own[] = {"adapter.blocks=by_score_1", "adapter.share_across_blocks=0",
                                      "adapter.share_routing=0"};
    SCOPED(strings_free) struct strings words = {0};
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    suite_words_add(&words, call);
    strings_copy(&words, own, sizeof own / sizeof *own);
    TRY(suite_words_load(&suite, call, &words, error));
    return score(call, suite, error);
}

const struct command command_layers = {
    .name = "layers",
    .arguments = "SUITE [key=value…]",
    .summary = "rank the blocks of a model by how much experts in them would gain",
    .details =
        "With experts in every block, each task of the suite takes adapter.score_steps training steps from the\n"
        "initial model. The score of a block is the norm of the gradient of its experts over as many more batches,\n"
        "summed over the tasks. adapter.blocks=by_score_N puts adapters into the N best blocks of each tower.\n"
        "Only the first seed is used, and nothing is stored.\n",
    .example = "  mtil layers mini adapter.kind=ffn adapter.score_steps=20\n",
    .options = options,
    .least = 1,
    .most = SIZE_MAX,
    .run = run,
};
