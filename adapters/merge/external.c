/* A program in any language as the policy (docs/external.md): it sees what a policy sees and answers with the merges. It is started at
 * the first merge of a session; what it has to remember comes with each answer and is handed back when a stopped run goes on. */
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/coprocess.h"
#include "core/file.h"
#include "core/json.h"

enum { PROTOCOL = 1, STATE = 1 << 20, END_SECONDS = 10 };

struct state {
    char text[STATE + 1]; /* "": none */
};

struct program {
    struct coprocess *coprocess;
    char *name;    /* its command */
    unsigned asks; /* enum merge_needs: what it is sent besides counts */
};

static const char *const tower_names[TOWERS] = {[TOWER_IMAGE] = "image", [TOWER_TEXT] = "text"};

static const struct {
    const char *word;
    unsigned need;
} needs[] = {{"earlier", NEEDS_EARLIER_COUNTS},
             {"pairs", NEEDS_PAIR_COUNTS},
             {"next", NEEDS_NEXT_COUNTS},
             {"similarity", NEEDS_SIMILARITY}};

static const char *name_of(const struct merge_call *call)
{
    const struct program *program = *call->program;
    return program->name;
}

/* --- Start --- */

static status read_needs(struct program *program, const json_t *ready, const char *name, struct error *error)
{
    const json_t *list = json_object_get(ready, "needs"), *item;
    size_t i;
    json_array_foreach((json_t *)list, i, item)
    {
        const char *word = json_string_value(item);
        unsigned found = 0;
        for (size_t k = 0; word != NULL && k < sizeof needs / sizeof *needs; k++)
            found |= strcmp(word, needs[k].word) == 0 ? needs[k].need : 0;
        if (found == 0)
            return error_set(error, ERROR_FORMAT,
                             "%s: \"needs\": expected earlier, pairs, next or similarity, found \"%s\"", name,
                             word != NULL ? word : "something else than a text");
        program->asks |= found;
    }
    return OK;
}

static json_t *towers_of(const struct merge_call *call)
{
    json_t *towers = json_object();
    for (int t = 0; t < TOWERS; t++)
        if (call->blocks[t] > 0)
            json_object_set_new(towers, tower_names[t],
                                json_pack("{s:i, s:i}", "blocks", (int)call->blocks[t], "experts", (int)call->experts));
    return towers;
}

static status begin(struct program *program, const struct merge_call *call, struct error *error)
{
    const struct state *state = call->state;
    SCOPED(json_decref_at) json_t *ready = NULL;
    json_t *message =
        json_pack("{s:s, s:i, s:s, s:I, s:o, s:o, s:o}", "type", "begin", "mtil", PROTOCOL, "role", "merge_policy",
                  "seed", (json_int_t)call->rng.seed, "options", coprocess_options(call->options), "towers",
                  towers_of(call), "state", *state->text != 0 ? json_string(state->text) : json_null());
    TRY(coprocess_send(program->coprocess, message, error));
    TRY(coprocess_receive(program->coprocess, options_real(call->options, "timeout"), &ready, error));
    bool right = strcmp(coprocess_text(ready, "type"), "ready") == 0;
    status result = right ? read_needs(program, ready, name_of(call), error)
                          : error_set(error, ERROR_FORMAT, "%s: expected \"ready\", found \"%s\"", name_of(call),
                                      coprocess_text(ready, "type"));
    return result == OK ? OK : coprocess_explain(program->coprocess, error);
}

/* It is not asked to stop: a merge is part of a step, and what it knew comes with the last answer. */
static status start(const struct merge_call *call, struct error *error)
{
    struct program *program = *call->program = xcalloc(1, sizeof *program);
    size_t count;
    program->name = coprocess_command(call->options);
    OWNED const char **words = options_list_items(call->options, "command", &count);
    OWNED char *log = path_format("%s/policy.log", call->folder);
    status result =
        coprocess_start(&program->coprocess,
                        &(struct coprocess_settings){.name = name_of(call), .arguments = words, .log = log}, error);
    if (result != OK)
        return error_context(error, "merge.command");
    return begin(program, call, error);
}

static void close_program(void *started)
{
    struct program *program = started;
    struct error ignored;
    if (program->coprocess != NULL &&
        coprocess_send(program->coprocess, json_pack("{s:s}", "type", "end"), &ignored) == OK)
        coprocess_end(program->coprocess, END_SECONDS, &ignored);
    coprocess_close(program->coprocess);
    free(program->name);
    free(program);
}

/* --- A merge --- */

/* [rows, columns] */
static json_t *whole_numbers(const int32_t *values, size_t rows, size_t columns)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rows; i++) {
        json_t *row = json_array();
        for (size_t j = 0; j < columns; j++)
            json_array_append_new(row, json_integer(values[i * columns + j]));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *reals(const float *values, size_t rows, size_t columns)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rows; i++) {
        json_t *row = json_array();
        for (size_t j = 0; j < columns; j++)
            json_array_append_new(row, json_real((double)values[i * columns + j]));
        json_array_append_new(list, row);
    }
    return list;
}

/* [blocks, E, E] of either type; the other is NULL */
static json_t *squares(const int32_t *integers, const float *floats, size_t blocks, size_t experts)
{
    json_t *list = json_array();
    for (size_t b = 0; b < blocks; b++)
        json_array_append_new(list, integers != NULL ? whole_numbers(integers + b * experts * experts, experts, experts)
                                                     : reals(floats + b * experts * experts, experts, experts));
    return list;
}

static json_t *question(const struct merge_view *view, const struct merge_call *call, unsigned asks)
{
    size_t blocks = view->blocks, experts = view->experts;
    json_t *message = json_pack(
        "{s:s, s:s, s:i, s:i, s:b, s:o, s:o}", "type", "merge", "tower", tower_names[view->tower], "task",
        (int)call->task, "iteration", (int)call->iteration, "after_task", call->moment == MERGE_AFTER_TASK, "counts",
        whole_numbers(view->counts, blocks, experts), "frozen", whole_numbers(view->frozen, blocks, experts));
    if (asks & NEEDS_EARLIER_COUNTS)
        json_object_set_new(message, "earlier", whole_numbers(view->earlier, blocks, experts));
    if (asks & NEEDS_PAIR_COUNTS)
        json_object_set_new(message, "pairs", squares(view->pairs, NULL, blocks, experts));
    if (asks & NEEDS_NEXT_COUNTS)
        json_object_set_new(message, "next", squares(view->next, NULL, blocks - 1, experts));
    if (asks & NEEDS_SIMILARITY)
        json_object_set_new(message, "similarity", squares(NULL, view->similarity, blocks, experts));
    return message;
}

static bool is_below(const json_t *value, size_t end)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 && (size_t)json_integer_value(value) < end;
}

static const char *read_sources(struct merge *merge, const json_t *item, size_t experts)
{
    const json_t *sources = json_object_get(item, "sources"), *weights = json_object_get(item, "weights");
    double sum = 0;
    merge->sources = json_array_size(sources);
    if (merge->sources < 1 || merge->sources > MERGE_SOURCES)
        return "1 to 16 sources";
    if (weights != NULL && json_array_size(weights) != merge->sources)
        return "a weight for each source";
    for (size_t i = 0; i < merge->sources; i++) {
        const json_t *source = json_array_get(sources, i), *weight = json_array_get(weights, i);
        if (!is_below(source, experts))
            return "experts that are there as sources";
        if (weight != NULL && !json_is_number(weight))
            return "numbers as weights";
        merge->source[i] = (int)json_integer_value(source);
        merge->weight[i] = weight != NULL ? (float)json_number_value(weight) : 0;
        sum += weight != NULL ? json_number_value(weight) : 1;
    }
    return sum == 0 ? "weights whose sum is not 0" : NULL;
}

/* What is wrong with a merge, or NULL. */
static const char *read_merge(struct merge *merge, const json_t *item, const struct merge_view *view)
{
    const json_t *block = json_object_get(item, "block"), *target = json_object_get(item, "target");
    if (!is_below(block, view->blocks))
        return "a block of the tower";
    *merge = (struct merge){.block = (size_t)json_integer_value(block), .target = -1, .skip = MERGE_DECLINED};
    if (json_object_get(item, "skip") != NULL)
        return NULL;
    const char *wrong = read_sources(merge, item, view->experts);
    if (wrong != NULL)
        return wrong;
    if (!is_below(target, view->experts))
        return "an expert that is there as target";
    merge->target = (int)json_integer_value(target);
    merge->skip = MERGE_DONE;
    if (view->frozen[merge->block * view->experts + (size_t)merge->target])
        return "a target that is not frozen";
    for (size_t i = 0; i < merge->sources; i++)
        if (merge->source[i] == merge->target)
            return "a target that is no source";
    return NULL;
}

static status read_merges(const struct merge_view *view, const struct merge_call *call, const json_t *answer,
                          struct merge_list *list, struct error *error)
{
    const json_t *merges = json_object_get(answer, "merges"), *item;
    size_t i;
    if (!json_is_array(merges))
        return error_set(error, ERROR_FORMAT, "%s: expected a list of \"merges\"", name_of(call));
    json_array_foreach((json_t *)merges, i, item)
    {
        struct merge merge;
        const char *wrong = read_merge(&merge, item, view);
        if (wrong != NULL) {
            OWNED char *text = json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY);
            error_set(error, ERROR_FORMAT, "%s: merge %zu of the %s tower: expected %s, found %.200s", name_of(call), i,
                      tower_names[view->tower], wrong, text != NULL ? text : "something else");
            return ERROR_FORMAT;
        }
        merge_list_add(list, &merge);
    }
    return OK;
}

static status read_state(const struct merge_call *call, const json_t *answer, struct error *error)
{
    const json_t *text = json_object_get(answer, "state");
    if (text == NULL || json_is_null(text))
        return OK;
    if (!json_is_string(text) || json_string_length(text) > STATE)
        return error_set(error, ERROR_FORMAT, "%s: expected a \"state\" of text of at most %d bytes, found %zu",
                         name_of(call), STATE, json_string_length(text));
    struct state *state = call->state;
    memset(state, 0, sizeof *state);
    memcpy(state->text, json_string_value(text), json_string_length(text));
    return OK;
}

static status ask(const struct merge_view *view, const struct merge_call *call, struct merge_list *list,
                  struct error *error)
{
    SCOPED(json_decref_at) json_t *answer = NULL;
    double begin = clock_seconds();
    if (*call->program == NULL)
        TRY(start(call, error));
    struct program *program = *call->program;
    TRY(coprocess_send(program->coprocess, question(view, call, program->asks), error));
    TRY(coprocess_receive(program->coprocess, options_real(call->options, "timeout"), &answer, error));
    status result = strcmp(coprocess_text(answer, "type"), "merges") == 0
                        ? read_merges(view, call, answer, list, error)
                        : error_set(error, ERROR_FORMAT, "%s: expected \"merges\", found \"%s\"", name_of(call),
                                    coprocess_text(answer, "type"));
    NEXT(result, read_state(call, answer, error));
    *call->asking += clock_seconds() - begin;
    return result == OK ? OK : coprocess_explain(program->coprocess, error);
}

static status check(const struct merge_call *call, struct error *error)
{
    return options_list_size(call->options, "command") > 0
               ? OK
               : error_set(error, ERROR_ARGUMENT,
                           "merge.command is empty; expected the program's words, as in "
                           "merge.command=\"python3 my_policy.py\"");
}

static const struct option options[] = {COPROCESS_OPTIONS("600", "merge.options.margin=2"), {0}};

const struct merge_policy policy_external = {.name = "external",
                                             .source = "a program of one's own (docs/external.md)",
                                             .formula = "sources, weights and target as merge.command answers",
                                             .offers = NEEDS_PAIR_COUNTS | NEEDS_NEXT_COUNTS | NEEDS_PROBES |
                                                       NEEDS_SIMILARITY | NEEDS_EARLIER_COUNTS,
                                             .options = options,
                                             .state_size = sizeof(struct state),
                                             .check = check,
                                             .ask = ask,
                                             .close = close_program};
