#include "models/tokenizer/vocabulary.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/text.h"

enum { BYTES = 256, PRINTABLE_BYTES = 188, MOST_IDS = 1 << 22, PAIRS = 1024 };
static const size_t text_limit = (size_t)64 << 20;

/* ---- bytes ---- */

static bool is_printable(unsigned byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

/* The number of bytes below this one of the same kind, printable or not. */
static unsigned place_among(unsigned byte)
{
    unsigned place = 0;
    for (unsigned b = 0; b < byte; b++)
        place += is_printable(b) == is_printable(byte);
    return place;
}

void vocabulary_byte_name(unsigned byte, char name[BYTE_NAME])
{
    int32_t point = is_printable(byte) ? (int32_t)byte : 0x100 + (int32_t)place_among(byte);
    name[utf8proc_encode_char(point, (uint8_t *)name)] = 0;
}

int32_t vocabulary_byte_id(unsigned byte)
{
    return (int32_t)(place_among(byte) + (is_printable(byte) ? 0 : PRINTABLE_BYTES));
}

/* ---- merges: a hash table with open addressing and linear probing ---- */

struct vocabulary_pair {
    uint32_t left, right;
    uint64_t merge;
    bool used;
};

/* The pair's slot, or the free one where it belongs; the table is never full. */
static struct vocabulary_pair *locate(const struct vocabulary *vocabulary, uint32_t left, uint32_t right)
{
    struct vocabulary_pair *pairs = vocabulary->pairs;
    uint64_t key = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15U; /* Fibonacci hashing */
    size_t mask = vocabulary->capacity - 1, at = (size_t)(key >> 32) & mask;
    while (pairs[at].used && (pairs[at].left != left || pairs[at].right != right))
        at = (at + 1) & mask;
    return &pairs[at];
}

static void grow_pairs(struct vocabulary *vocabulary)
{
    const struct vocabulary old = *vocabulary;
    vocabulary->capacity = 2 * old.capacity;
    vocabulary->pairs = xcalloc(vocabulary->capacity, sizeof *vocabulary->pairs);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.pairs[i].used)
            *locate(vocabulary, old.pairs[i].left, old.pairs[i].right) = old.pairs[i];
    free(old.pairs);
}

static void set_merge(struct vocabulary *vocabulary, uint32_t left, uint32_t right, uint64_t merge)
{
    if (2 * vocabulary->pair_count >= vocabulary->capacity)
        grow_pairs(vocabulary);
    struct vocabulary_pair *pair = locate(vocabulary, left, right);
    vocabulary->pair_count += !pair->used;
    *pair = (struct vocabulary_pair){left, right, merge, true};
}

uint64_t vocabulary_merge(const struct vocabulary *vocabulary, uint32_t left, uint32_t right)
{
    const struct vocabulary_pair *pair = locate(vocabulary, left, right);
    return pair->used ? pair->merge : VOCABULARY_NO_MERGE;
}

/* ---- names of symbols, needed while loading ---- */

struct loader {
    struct vocabulary *vocabulary;
    const char *path;
    struct hsearch_data names; /* name → symbol */
    size_t capacity, count;    /* symbols */
    char *pool;                /* the names' bytes */
    size_t pool_size, pool_used;
};

static status loader_create(struct loader *loader, struct vocabulary *vocabulary, const char *path, size_t capacity,
                            size_t pool_size, struct error *error)
{
    *loader = (struct loader){.vocabulary = vocabulary, .path = path, .capacity = capacity, .pool_size = pool_size};
    *vocabulary = (struct vocabulary){.capacity = PAIRS};
    vocabulary->pairs = xcalloc(PAIRS, sizeof *vocabulary->pairs);
    vocabulary->ids = xmalloc(array_size(capacity, sizeof *vocabulary->ids));
    loader->pool = xmalloc(pool_size);
    if (hcreate_r(2 * capacity, &loader->names) == 0)
        return error_set(error, ERROR_MEMORY, "%s: no memory for %zu symbols", path, capacity);
    return OK;
}

static void loader_destroy(struct loader *loader)
{
    if (loader->names.table != NULL)
        hdestroy_r(&loader->names);
    free(loader->pool);
}

static bool find_symbol(struct loader *loader, const char *name, uint32_t *symbol)
{
    ENTRY *entry;
    if (hsearch_r((ENTRY){.key = (char *)name}, FIND, &entry, &loader->names) == 0)
        return false;
    *symbol = (uint32_t)(uintptr_t)entry->data;
    return true;
}

/* Gives the symbol left+right this id and creates it where it is missing. Of equal names the last one counts, as in the
 * reference's dictionary. The caller has allocated symbols and pool. */
static uint32_t set_symbol(struct loader *loader, const char *left, const char *right, int32_t id)
{
    char *name = loader->pool + loader->pool_used;
    size_t length = (size_t)snprintf(name, loader->pool_size - loader->pool_used, "%s%s", left, right);
    uint32_t symbol;
    if (!find_symbol(loader, name, &symbol)) {
        ENTRY *entry;
        symbol = (uint32_t)loader->count++;
        loader->pool_used += length + 1;
        hsearch_r((ENTRY){name, (void *)(uintptr_t)symbol}, ENTER, &entry, &loader->names);
    }
    loader->vocabulary->ids[symbol] = id;
    return symbol;
}

/* ---- lists of merges ---- */

/* Cuts "left right" in place at its space; false when it is anything else. */
static bool cut_merge(char *line, char **right)
{
    char *space = strchr(line, ' ');
    if (space == NULL || space == line || space[1] == 0 || strchr(space + 1, ' ') != NULL)
        return false;
    *space = 0;
    *right = space + 1;
    return true;
}

static char *next_line(char **rest)
{
    char *line = strsep(rest, "\n");
    size_t length = line != NULL ? strlen(line) : 0;
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = 0;
    return line;
}

/* The symbol that left and right merge into: a known one when the ids are given, else one with the id of this rank. */
static status merged_symbol(struct loader *loader, const char *left, const char *right, size_t rank, bool ids_given,
                            uint32_t *symbol, struct error *error)
{
    if (!ids_given) {
        *symbol = set_symbol(loader, left, right, (int32_t)(2 * BYTES + rank));
        return OK;
    }
    char *name = loader->pool + loader->pool_used;
    snprintf(name, loader->pool_size - loader->pool_used, "%s%s", left, right);
    if (!find_symbol(loader, name, symbol))
        return error_set(error, ERROR_FORMAT, "%s has no id for '%.128s'", loader->path, name);
    return OK;
}

static status read_merge(struct loader *loader, char *line, size_t rank, bool ids_given, struct error *error)
{
    char *right;
    uint32_t parts[2], merged;
    if (!cut_merge(line, &right))
        return error_set(error, ERROR_FORMAT, "expected two symbols with a space between them");
    const char *names[] = {line, right};
    for (size_t i = 0; i < 2; i++)
        if (!find_symbol(loader, names[i], &parts[i]))
            return error_set(error, ERROR_FORMAT, "'%.64s' is no known symbol; the file is damaged", names[i]);
    TRY(merged_symbol(loader, line, right, rank, ids_given, &merged, error));
    set_merge(loader->vocabulary, parts[0], parts[1], (uint64_t)rank << 32 | merged);
    return OK;
}

/* Reads at most most merges from text, whose first line is a header. text is changed. */
static status read_merges(struct loader *loader, const char *path, char *text, size_t most, bool ids_given,
                          size_t *merges, struct error *error)
{
    *merges = 0;
    next_line(&text);
    for (size_t number = 2; *merges < most; number++) {
        char *line = next_line(&text);
        if (line == NULL)
            break;
        if (*line == 0)
            continue;
        if (read_merge(loader, line, *merges, ids_given, error) != OK)
            return error_context(error, "%s:%zu", path, number);
        ++*merges;
    }
    return OK;
}

/* ---- OpenAI's format ---- */

static status read_openai(struct loader *loader, char *text, struct error *error)
{
    struct vocabulary *vocabulary = loader->vocabulary;
    size_t merges;
    for (unsigned byte = 0; byte < BYTES; byte++) {
        char name[BYTE_NAME];
        vocabulary_byte_name(byte, name);
        vocabulary->bytes[byte] = set_symbol(loader, name, "", vocabulary_byte_id(byte));
        vocabulary->last_bytes[byte] = set_symbol(loader, name, "</w>", BYTES + vocabulary_byte_id(byte));
    }
    TRY(read_merges(loader, loader->path, text, VOCABULARY_MERGES, false, &merges, error));
    if (merges == 0)
        return error_set(error, ERROR_FORMAT, "%s: expected a header and then one merge a line, found no merge",
                         loader->path);
    vocabulary->start = (int32_t)(2 * BYTES + merges);
    vocabulary->end = vocabulary->start + 1;
    vocabulary->size = (size_t)vocabulary->end + 1;
    return OK;
}

/* text is changed. */
static status load_openai(struct vocabulary *vocabulary, const char *path, char *text, size_t size, struct error *error)
{
    SCOPED(loader_destroy) struct loader loader = {0};
    size_t lines = 1;
    for (const char *p = text; lines < VOCABULARY_MERGES && (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    TRY(loader_create(&loader, vocabulary, path, 2 * BYTES + lines, size + (size_t)4 * BYTES * BYTE_NAME, error));
    return read_openai(&loader, text, error);
}

static status inflate_all(z_stream *stream, const char *name, struct bytes *text, struct error *error)
{
    size_t capacity = (size_t)4 << 20;
    int result = Z_OK;
    while (result == Z_OK) {
        text->data = xrealloc(text->data, capacity + 1);
        stream->next_out = text->data + text->size;
        stream->avail_out = (uInt)(capacity - text->size);
        result = inflate(stream, Z_NO_FLUSH);
        text->size = capacity - stream->avail_out;
        if (result == Z_OK && capacity >= text_limit)
            return error_set(error, ERROR_FORMAT, "%s: unpacks to more than the %zu bytes a vocabulary may have", name,
                             text_limit);
        capacity *= 2;
    }
    if (result != Z_STREAM_END)
        return error_set(error, ERROR_FORMAT, "%s: expected a whole gzip file, found damage after %zu unpacked bytes",
                         name, text->size);
    text->data[text->size] = 0;
    return OK;
}

/* A copy of bytes as text, unpacked when they are gzip. The caller frees, also on failure. */
static status unpack(struct bytes *text, const char *name, const struct bytes *bytes, struct error *error)
{
    enum { GZIP = 16, WINDOW = 15 };
    *text = (struct bytes){0};
    if (bytes->size >= 2 && memcmp(bytes->data, "\x1f\x8b", 2) == 0) {
        z_stream stream = {.next_in = bytes->data, .avail_in = (uInt)bytes->size};
        if (inflateInit2(&stream, GZIP + WINDOW) != Z_OK)
            return error_set(error, ERROR_MEMORY, "%s: no memory to unpack it", name);
        errno = 0;
        status result = memory_blame(inflate_all(&stream, name, text, error), name, error);
        inflateEnd(&stream);
        return result;
    }
    text->data = xcalloc(bytes->size + 1, 1);
    if (bytes->size > 0)
        memcpy(text->data, bytes->data, bytes->size);
    text->size = bytes->size;
    return OK;
}

/* ---- Hugging Face's format ---- */

static status read_ids(struct loader *loader, json_t *names, struct error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach(names, name, value)
    {
        json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0 || id >= MOST_IDS)
            return error_set(error, ERROR_FORMAT, "%s: '%.64s': expected an id in [0, %d)", loader->path, name,
                             MOST_IDS);
        set_symbol(loader, name, "", (int32_t)id);
        if ((size_t)id >= loader->vocabulary->size)
            loader->vocabulary->size = (size_t)id + 1;
    }
    return OK;
}

static status find_byte(struct loader *loader, unsigned byte, const char *ending, uint32_t *symbol, struct error *error)
{
    char name[BYTE_NAME], whole[2 * BYTE_NAME];
    vocabulary_byte_name(byte, name);
    snprintf(whole, sizeof whole, "%s%s", name, ending);
    if (!find_symbol(loader, whole, symbol))
        return error_set(error, ERROR_FORMAT, "%s: expected a symbol for every byte, found none for '%s' (byte %u)",
                         loader->path, whole, byte);
    return OK;
}

static status find_special(struct loader *loader, const char *bars, const char *plain, int32_t *id, struct error *error)
{
    uint32_t symbol;
    if (!find_symbol(loader, bars, &symbol) && !find_symbol(loader, plain, &symbol))
        return error_set(error, ERROR_FORMAT, "%s: expected an id for '%s' or '%s', found neither", loader->path, bars,
                         plain);
    *id = loader->vocabulary->ids[symbol];
    return OK;
}

static status read_huggingface(struct loader *loader, json_t *names, const char *merges_path, char *merges_text,
                               struct error *error)
{
    struct vocabulary *vocabulary = loader->vocabulary;
    size_t merges;
    TRY(read_ids(loader, names, error));
    for (unsigned byte = 0; byte < BYTES; byte++) {
        TRY(find_byte(loader, byte, "", &vocabulary->bytes[byte], error));
        TRY(find_byte(loader, byte, "</w>", &vocabulary->last_bytes[byte], error));
    }
    TRY(find_special(loader, "<|startoftext|>", "<start_of_text>", &vocabulary->start, error));
    TRY(find_special(loader, "<|endoftext|>", "<end_of_text>", &vocabulary->end, error));
    if ((size_t)vocabulary->end + 1 != vocabulary->size)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected the end token to have the highest id, %zu (CLIP looks for it by that), found %d",
                         loader->path, vocabulary->size - 1, vocabulary->end);
    return read_merges(loader, merges_path, merges_text, SIZE_MAX, true, &merges, error);
}

/* merges is changed; size: at least of all names together */
static status read_names(struct vocabulary *vocabulary, const char *path, json_t *names, size_t size,
                         const char *merges_path, char *merges, struct error *error)
{
    SCOPED(loader_destroy) struct loader loader = {0};
    TRY(loader_create(&loader, vocabulary, path, json_object_size(names) + 1, size + (size_t)2 * BYTE_NAME, error));
    return read_huggingface(&loader, names, merges_path, merges, error);
}

static status parse_vocabulary(struct vocabulary *vocabulary, const char *path, const struct bytes *json,
                               const char *merges_path, struct bytes *merges, struct error *error)
{
    SCOPED(json_decref_at) json_t *names = NULL;
    TRY(json_parse(&names, json->data, json->size, path, error));
    if (!json_is_object(names))
        return error_set(error, ERROR_FORMAT, "%s: expected a JSON object of ids, found another value", path);
    return read_names(vocabulary, path, names, json->size + merges->size, merges_path, (char *)merges->data, error);
}

/* merges: "a b" or, in newer files, ["a", "b"] each */
static void add_merges(struct text *text, const json_t *merges)
{
    size_t i;
    json_t *merge;
    text_add(text, "\n"); /* of a header */
    json_array_foreach(merges, i, merge)
    {
        const char *left = json_string_value(json_is_array(merge) ? json_array_get(merge, 0) : merge),
                   *right = json_string_value(json_array_get(merge, 1));
        text_add(text, "%s%s%s\n", left != NULL ? left : "?", right != NULL ? " " : "", right != NULL ? right : "");
    }
}

/* Tokens beside the vocabulary, such as its start and end. */
static void add_tokens(json_t *names, const json_t *tokens)
{
    size_t i;
    json_t *token;
    json_array_foreach(tokens, i, token)
    {
        const char *name = json_string_value(json_object_get(token, "content"));
        if (name != NULL && json_object_get(names, name) == NULL)
            json_object_set(names, name, json_object_get(token, "id"));
    }
}

/* tokenizer.json, which has both. */
static status load_tokenizer_json(struct vocabulary *vocabulary, const char *path, const struct bytes *json,
                                  struct error *error)
{
    SCOPED(json_decref_at) json_t *root = NULL;
    TRY(json_parse(&root, json->data, json->size, path, error));
    json_t *model = json_object_get(root, "model"), *names = json_object_get(model, "vocab"),
           *merges = json_object_get(model, "merges");
    const char *type = json_string_value(json_object_get(model, "type"));
    SCOPED(text_free) struct text text = {0};
    OWNED char *merges_path = path_format("%s: model.merges", path);
    if (!json_is_object(names) || !json_is_array(merges))
        return error_set(error, ERROR_FORMAT,
                         "%s: expected CLIP's pairs of bytes, an object model.vocab and a list model.merges, found "
                         "%s%s; of SigLIP, name its SentencePiece model (spiece.model)",
                         path, type != NULL ? "model.type " : "another file", type != NULL ? type : "");
    add_tokens(names, json_object_get(root, "added_tokens"));
    add_merges(&text, merges);
    return read_names(vocabulary, path, names, json->size + text.size, merges_path, text.data, error);
}

static status load_huggingface(struct vocabulary *vocabulary, const char *folder, struct error *error)
{
    SCOPED(bytes_free) struct bytes json = {0}, merges = {0};
    OWNED char *json_path = path_format("%s/vocab.json", folder), *merges_path = path_format("%s/merges.txt", folder);
    TRY(file_read(json_path, text_limit, &json, error));
    TRY(file_read(merges_path, text_limit, &merges, error));
    return parse_vocabulary(vocabulary, json_path, &json, merges_path, &merges, error);
}

/* ---- any ---- */

static bool is_json(const struct bytes *text)
{
    const char *start = (const char *)text->data;
    size_t size = text->size;
    text_skip_mark(&start, &size);
    return start[strspn(start, " \t\r\n")] == '{';
}

static status load_file(struct vocabulary *vocabulary, const char *path, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0}, text = {0};
    TRY(file_check_meant(path, true, error));
    TRY(file_read_any(path, text_limit, &bytes, error));
    TRY(unpack(&text, path, &bytes, error));
    return is_json(&text) ? load_tokenizer_json(vocabulary, path, &text, error)
                          : load_openai(vocabulary, path, (char *)text.data, text.size, error);
}

static status load_folder(struct vocabulary *vocabulary, const char *folder, struct error *error)
{
    OWNED char *pair = path_format("%s/vocab.json", folder), *one = path_format("%s/tokenizer.json", folder);
    bool single = !file_exists(pair) && file_exists(one);
    return single ? load_file(vocabulary, one, error) : load_huggingface(vocabulary, folder, error);
}

/* "folder" of "folder/vocab.json" and "folder/merges.txt", when both are there; else NULL. The caller frees. */
static char *folder_of_pair(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    bool json = strcmp(name, "vocab.json") == 0;
    if (!json && strcmp(name, "merges.txt") != 0)
        return NULL;
    OWNED char *other = path_beside(path, "vocab.json");
    return json || file_exists(other) ? path_parent(path) : NULL;
}

status vocabulary_load(struct vocabulary *vocabulary, const char *path, struct error *error)
{
    *vocabulary = (struct vocabulary){0};
    if (file_is_directory(path))
        return load_folder(vocabulary, path, error);
    OWNED char *folder = folder_of_pair(path);
    return folder != NULL ? load_huggingface(vocabulary, folder, error) : load_file(vocabulary, path, error);
}

void vocabulary_free(struct vocabulary *vocabulary)
{
    free(vocabulary->ids);
    free(vocabulary->pairs);
    *vocabulary = (struct vocabulary){0};
}
