#include "adapters/place.h"
#include "core/scope.h"

#include <stdio.h>
#include <string.h>

enum { BLOCKS_MOST = 64 }; /* of a tower: bits of block_choice.listed */

static const char *const rule_prefixes[] = {
    [BLOCKS_FIRST] = "first_", [BLOCKS_LAST] = "last_", [BLOCKS_EVERY] = "every_", [BLOCKS_BY_SCORE] = "by_score_"};
static const char *const tower_names[TOWERS] = {"image", "text"};

static status unknown_words(const char *word, struct error *error)
{
    return error_set(
        error, ERROR_ARGUMENT,
        "expected all, first_N, last_N, every_N, by_score_N, or numbers of blocks from 0 to %d, each once, "
        "as in [0, 3, 5], or of one tower, as in [image.3, text.5]; found \"%s\"",
        BLOCKS_MOST - 1, word);
}

static bool read_rule(struct block_choice *choice, const char *word)
{
    for (size_t rule = BLOCKS_FIRST; rule <= BLOCKS_BY_SCORE; rule++) {
        size_t size = strlen(rule_prefixes[rule]);
        int64_t n;
        if (strncmp(word, rule_prefixes[rule], size) != 0 || !parse_integer(word + size, &n) || n < 1 ||
            n > BLOCKS_MOST)
            continue;
        *choice = (struct block_choice){.rule = (enum block_rule)rule, .n = (size_t)n};
        return true;
    }
    return false;
}

/* "3", or of one tower "image.3". */
static bool read_block(struct block_choice *choice, const char *word)
{
    bool named[TOWERS] = {true, true};
    int64_t block;
    for (int t = 0; t < TOWERS; t++) {
        size_t size = strlen(tower_names[t]);
        if (strncmp(word, tower_names[t], size) != 0 || word[size] != '.')
            continue;
        named[1 - t] = false;
        word += size + 1;
        break;
    }
    if (!parse_integer(word, &block) || block < 0 || block >= BLOCKS_MOST)
        return false;
    for (int t = 0; t < TOWERS; t++) {
        if (named[t] && choice->listed[t] >> block & 1)
            return false;
        choice->listed[t] |= (uint64_t)named[t] << block;
    }
    return true;
}

status block_choice_read(struct block_choice *choice, const char *const *words, size_t count, struct error *error)
{
    *choice = (struct block_choice){.rule = BLOCKS_ALL};
    if (count == 0)
        return unknown_words("", error);
    if (count == 1 && (strcmp(words[0], "all") == 0 || read_rule(choice, words[0])))
        return OK;
    choice->rule = BLOCKS_LISTED;
    for (size_t i = 0; i < count; i++)
        if (!read_block(choice, words[i]))
            return unknown_words(words[i], error);
    return OK;
}

status block_choice_parse(struct block_choice *choice, const char *text, struct error *error)
{
    static const char separators[] = ", ";
    const char *words[BLOCKS_MOST + 1];
    char copy[512], *rest;
    size_t count = 0;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return unknown_words(text, error);
    for (char *word = strtok_r(copy, separators, &rest); word != NULL && count <= BLOCKS_MOST;
         word = strtok_r(NULL, separators, &rest))
        words[count++] = word;
    return block_choice_read(choice, words, count, error);
}

void block_choice_write(const struct block_choice *choice, struct text *text)
{
    if (choice->rule == BLOCKS_ALL)
        text_add(text, "all");
    else if (choice->rule != BLOCKS_LISTED)
        text_add(text, "%s%zu", rule_prefixes[choice->rule], choice->n);
    const char *comma = "";
    for (int t = 0; choice->rule == BLOCKS_LISTED && t < TOWERS; t++)
        for (size_t block = 0; block < BLOCKS_MOST; block++) {
            bool here = choice->listed[t] >> block & 1, there = choice->listed[1 - t] >> block & 1;
            if (!here || (there && t > 0))
                continue;
            text_add(text, "%s%s%s%zu", comma, there ? "" : tower_names[t], there ? "" : ".", block);
            comma = ", ";
        }
}

static const char *const adapted_names[] = {[ADAPT_BOTH] = "both", [ADAPT_IMAGE] = "image", [ADAPT_TEXT] = "text"};

const char *adapted_towers_name(enum adapted_towers towers)
{
    return adapted_names[towers];
}

static size_t blocks_of(const struct clip_dimensions *dimensions, enum tower tower)
{
    return tower == TOWER_IMAGE ? dimensions->image_blocks : dimensions->text_blocks;
}

static bool is_adapted(const struct adapter_place *place, enum tower tower)
{
    return place->towers == ADAPT_BOTH || place->towers == (tower == TOWER_IMAGE ? ADAPT_IMAGE : ADAPT_TEXT);
}

bool adapter_place_has(const struct adapter_place *place, const struct clip_dimensions *dimensions, enum tower tower,
                       size_t block)
{
    const struct block_choice *c = &place->blocks;
    size_t blocks = blocks_of(dimensions, tower);
    if (!is_adapted(place, tower) || block >= blocks)
        return false;
    switch (c->rule) {
    case BLOCKS_ALL:
        return true;
    case BLOCKS_FIRST:
        return block < c->n;
    case BLOCKS_LAST:
    case BLOCKS_BY_SCORE:
        return block + c->n >= blocks;
    case BLOCKS_EVERY:
        return (block + 1) % c->n == 0;
    case BLOCKS_LISTED:
        return c->listed[tower] >> block & 1;
    }
    return false;
}

size_t adapter_place_count(const struct adapter_place *place, const struct clip_dimensions *dimensions,
                           enum tower tower)
{
    size_t count = 0;
    for (size_t block = 0; block < blocks_of(dimensions, tower); block++)
        count += adapter_place_has(place, dimensions, tower, block);
    return count;
}

size_t adapter_place_count_banks(const struct adapter_place *place, const struct clip_dimensions *dimensions,
                                 enum tower tower)
{
    size_t count = adapter_place_count(place, dimensions, tower);
    return place->banks > 0 && count > 0 ? place->banks : count;
}

bool adapter_place_has_bank(const struct adapter_place *place, const struct clip_dimensions *dimensions,
                            enum tower tower, size_t block)
{
    size_t before = 0, count = adapter_place_count(place, dimensions, tower),
           banks = adapter_place_count_banks(place, dimensions, tower);
    for (size_t i = 0; i < block; i++)
        before += adapter_place_has(place, dimensions, tower, i);
    return adapter_place_has(place, dimensions, tower, block) && before % (count / banks) == 0;
}

/* The number of blocks that the rule requires; 0: none. */
static size_t blocks_named(const struct block_choice *c)
{
    size_t named = c->rule == BLOCKS_ALL ? 0 : c->n;
    for (size_t block = 0; c->rule == BLOCKS_LISTED && block < BLOCKS_MOST; block++)
        if ((c->listed[TOWER_IMAGE] | c->listed[TOWER_TEXT]) >> block & 1)
            named = block + 1;
    return named;
}

/* Whether a block is listed for this tower alone although the tower lacks it or is not adapted. */
static bool is_missing(const struct adapter_place *place, enum tower tower, size_t blocks)
{
    uint64_t alone = place->blocks.listed[tower] & ~place->blocks.listed[1 - tower];
    for (size_t block = is_adapted(place, tower) ? blocks : 0; block < BLOCKS_MOST; block++)
        if (place->blocks.rule == BLOCKS_LISTED && alone >> block & 1)
            return true;
    return false;
}

static status refuse(const char *section, const struct adapter_place *place, const char *reason, size_t blocks,
                     struct error *error)
{
    SCOPED(text_free) struct text words = {0};
    block_choice_write(&place->blocks, &words);
    error_set(error, ERROR_ARGUMENT, "%s.blocks is %s with %s.towers %s, but %s %zu blocks, counted from 0", section,
              words.data != NULL ? words.data : "?", section, adapted_towers_name(place->towers), reason, blocks);
    return ERROR_ARGUMENT;
}

status adapter_place_check_sharing(const struct adapter_place *place, struct error *error)
{
    if (place->decisions > 0 && (place->banks == 0 || place->decisions % place->banks != 0))
        return error_set(error, ERROR_ARGUMENT,
                         "adapter.share_routing is %zu, but blocks that share a decision must have the same experts; "
                         "expected a multiple of adapter.share_across_blocks, which is %zu (0: nothing is shared)",
                         place->decisions, place->banks);
    return OK;
}

static status check_runs(const char *key, size_t runs, const char *tower, size_t count, struct error *error)
{
    if (runs > 0 && count % runs != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "adapter.%s is %zu, but the %zu blocks with adapters of the %s tower cannot be cut into so "
                         "many runs of equal length; choose a divisor, or other adapter.blocks or adapter.towers",
                         key, runs, count, tower);
    return OK;
}

status adapter_place_check(const char *section, const struct adapter_place *place,
                           const struct clip_dimensions *dimensions, struct error *error)
{
    size_t most = 0;
    for (int t = 0; t < TOWERS; t++) {
        size_t blocks = blocks_of(dimensions, (enum tower)t);
        if (blocks > BLOCKS_MOST)
            return error_set(error, ERROR_ARGUMENT, "%s: the %s tower has %zu blocks, expected at most %d", section,
                             tower_names[t], blocks, BLOCKS_MOST);
        if (is_adapted(place, (enum tower)t) && blocks > most)
            most = blocks;
    }
    if (blocks_named(&place->blocks) > most)
        return refuse(section, place, "no adapted tower of this model has more than", most, error);
    for (int t = 0; t < TOWERS; t++)
        if (is_missing(place, (enum tower)t, blocks_of(dimensions, (enum tower)t)))
            return refuse(section, place,
                          t == TOWER_IMAGE ? "the image tower can have adapters in only"
                                           : "the text tower can have adapters in only",
                          is_adapted(place, (enum tower)t) ? blocks_of(dimensions, (enum tower)t) : 0, error);
    for (int t = 0; t < TOWERS; t++)
        if (is_adapted(place, (enum tower)t) && adapter_place_count(place, dimensions, (enum tower)t) == 0)
            return refuse(section, place,
                          t == TOWER_IMAGE ? "that selects none of the image tower's"
                                           : "that selects none of the text tower's",
                          blocks_of(dimensions, (enum tower)t), error);
    TRY(adapter_place_check_sharing(place, error));
    for (int t = 0; t < TOWERS; t++) {
        size_t count = adapter_place_count(place, dimensions, (enum tower)t);
        TRY(check_runs("share_across_blocks", place->banks, tower_names[t], count, error));
        TRY(check_runs("share_routing", place->decisions, tower_names[t], count, error));
    }
    return OK;
}
