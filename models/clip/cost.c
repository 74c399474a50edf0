#include "models/clip/cost.h"

static double block(double rows, double positions, double width, double hidden)
{
    return rows * (2.0 * width * (4.0 * width + 2.0 * hidden) + 4.0 * positions * width);
}

/* Per image, after the blocks: the projection; or keys and values of all patches, and a query through attention and MLP. */
static double image_head(const struct clip_dimensions *n)
{
    double positions = (double)clip_image_positions(n), width = (double)n->image_width;
    return n->pool_hidden == 0 ? 2.0 * width * (double)n->embed
                               : 4.0 * width * (positions * (width + 1) + width + (double)n->pool_hidden);
}

double cost_images(const struct clip_dimensions *n, size_t images)
{
    size_t patches = clip_image_positions(n) - (n->pool_hidden == 0);
    double positions = (double)clip_image_positions(n), width = (double)n->image_width, count = (double)images;
    return (double)n->image_blocks * block(count * positions, positions, width, (double)n->image_hidden) +
           count * (2.0 * width * (double)(patches * 3 * n->patch * n->patch) + image_head(n));
}

double cost_texts(const struct clip_dimensions *n, size_t texts, size_t positions)
{
    double width = (double)n->text_width, count = (double)texts;
    return (double)n->text_blocks * block(count * (double)positions, (double)positions, width, (double)n->text_hidden) +
           count * 2.0 * width * (double)n->embed;
}

static double units(double rows, double width, double hidden)
{
    return rows * 4.0 * width * hidden;
}

/* Operations of a block. */
static double image_units(const struct clip_dimensions *n, size_t images, double hidden)
{
    return units((double)(images * clip_image_positions(n)), (double)n->image_width, hidden);
}

static double text_units(const struct clip_dimensions *n, size_t texts, size_t positions, double hidden)
{
    return units((double)(texts * positions), (double)n->text_width, hidden);
}

static double used_units(const struct cost_experts *e, enum tower tower)
{
    return (double)(e->top_k * e->hidden[tower]);
}

static double replaced_units(const struct clip_dimensions *n, const struct cost_experts *e, enum tower tower)
{
    return e->replace_mlp ? (double)(tower == TOWER_IMAGE ? n->image_hidden : n->text_hidden) : 0;
}

double cost_image_experts(const struct clip_dimensions *n, size_t images, const struct cost_experts *e)
{
    return (double)e->blocks[TOWER_IMAGE] *
           image_units(n, images, used_units(e, TOWER_IMAGE) - replaced_units(n, e, TOWER_IMAGE));
}

/* The share of a tower's blocks that are above its first block with experts. */
static double above_first(size_t blocks, const struct cost_experts *e, enum tower tower)
{
    return e->blocks[tower] > 0 ? (double)(blocks - e->below[tower] - 1) / (double)blocks : 0;
}

/* Nothing below the first experts is trained, so the attention and MLP of their block need no gradient. Where experts replace
 * the MLP, neither its output nor the gradient of its input is computed. */
double cost_adapter_step(const struct clip_dimensions *n, size_t images, size_t texts, size_t positions,
                         const struct cost_experts *e)
{
    double image = cost_images(n, images), text = cost_texts(n, texts, positions);
    double backward =
        image * above_first(n->image_blocks, e, TOWER_IMAGE) + text * above_first(n->text_blocks, e, TOWER_TEXT);
    return image + text + backward +
           (double)e->blocks[TOWER_IMAGE] *
               image_units(n, images, 3.0 * used_units(e, TOWER_IMAGE) - 2.0 * replaced_units(n, e, TOWER_IMAGE)) +
           (double)e->blocks[TOWER_TEXT] *
               text_units(n, texts, positions,
                          3.0 * used_units(e, TOWER_TEXT) - 2.0 * replaced_units(n, e, TOWER_TEXT));
}

static size_t block_weights(size_t width, size_t hidden)
{
    return width * (4 * width + 2 * hidden) + 9 * width + hidden;
}

size_t cost_weights(const struct clip_dimensions *n)
{
    bool siglip = n->pool_hidden > 0;
    size_t image = n->image_blocks * block_weights(n->image_width, n->image_hidden) +
                   n->image_width * (clip_image_positions(n) + 3 * n->patch * n->patch);
    if (siglip) /* bias of the patches, final norm, query; the pool has one norm; bias of the text's projection and logits */
        image += n->image_width * (3 + 1 - 2) + block_weights(n->image_width, n->pool_hidden) + n->embed + 1;
    else
        image += n->image_width * (5 + n->embed);
    size_t text = n->text_blocks * block_weights(n->text_width, n->text_hidden) +
                  n->text_width * (n->context + 2 + n->vocabulary + n->embed);
    return image + text + 1;
}

/* Hidden units that all blocks keep, per row. */
static size_t kept_units(const struct clip_dimensions *n, const struct cost_experts *e, enum tower tower)
{
    size_t mlp = tower == TOWER_IMAGE ? n->image_hidden : n->text_hidden,
           blocks = tower == TOWER_IMAGE ? n->image_blocks : n->text_blocks,
           dense = e->replace_mlp ? blocks - e->blocks[tower] : blocks;
    return dense * mlp + e->blocks[tower] * e->hidden[tower] * e->top_k;
}

/* Bytes per row: in f32 the residual stream twice, two norms' mean and rstd and each head's sum of the softmax; query, key
 * and value, the attention and the hidden units before their activation as operands of products (block.h). */
static size_t row_bytes(size_t blocks, size_t width, size_t heads, size_t units, enum precision precision)
{
    size_t operand = precision == PRECISION_BF16 ? 2 : 4;
    return blocks * (4 * (2 * width + 4 + heads) + 4 * operand * width) + operand * units;
}

size_t cost_step_bytes(const struct clip_dimensions *n, size_t images, size_t texts, size_t positions,
                       const struct cost_experts *e, enum precision precision)
{
    return images * clip_image_positions(n) *
               row_bytes(n->image_blocks, n->image_width, n->image_heads, kept_units(n, e, TOWER_IMAGE), precision) +
           texts * positions *
               row_bytes(n->text_blocks, n->text_width, n->text_heads, kept_units(n, e, TOWER_TEXT), precision);
}

/* Bytes in bf16 of the weights of blocks' products, `mlps` of them with an MLP. */
static size_t bf16_bytes(const struct clip_dimensions *n, enum tower tower, size_t blocks, size_t mlps)
{
    size_t width = tower == TOWER_IMAGE ? n->image_width : n->text_width,
           hidden = tower == TOWER_IMAGE ? n->image_hidden : n->text_hidden;
    return 2 * (blocks * 4 * width * width + mlps * 2 * width * hidden);
}

static size_t bf16_projection(const struct clip_dimensions *n, enum tower tower)
{
    return 2 * (tower == TOWER_IMAGE ? n->image_width : n->text_width) * n->embed;
}

size_t cost_rounded_bytes(const struct clip_dimensions *n, enum tower tower, const struct cost_experts *e)
{
    size_t blocks = tower == TOWER_IMAGE ? n->image_blocks : n->text_blocks,
           replaced = e != NULL && e->replace_mlp ? e->blocks[tower] : 0;
    size_t patches = tower == TOWER_IMAGE ? 2 * 3 * n->patch * n->patch * n->image_width : 0;
    return patches + bf16_bytes(n, tower, blocks, blocks - replaced) + bf16_projection(n, tower);
}

size_t cost_packed_bytes(const struct clip_dimensions *n, enum tower tower, const struct cost_experts *e)
{
    size_t blocks = tower == TOWER_IMAGE ? n->image_blocks : n->text_blocks,
           back = e != NULL && e->blocks[tower] > 0 ? blocks - e->below[tower] - 1 : 0,
           replaced = back > 0 && e->replace_mlp ? e->blocks[tower] - 1 : 0;
    return cost_rounded_bytes(n, tower, e) + bf16_bytes(n, tower, back, back - replaced) +
           (e != NULL && e->blocks[tower] > 0 ? bf16_projection(n, tower) : 0);
}

/* Per row: the patches, their embeddings, the residual stream in and out, and a block's temporary memory. */
size_t cost_evaluation_bytes(const struct clip_dimensions *n, size_t images, const struct cost_experts *e)
{
    size_t units = (e->replace_mlp ? 0 : n->image_hidden) + e->hidden[TOWER_IMAGE] * e->top_k,
           row = 3 * n->patch * n->patch + 12 * n->image_width + e->top_k * n->image_width + units;
    return 4 * images * clip_image_positions(n) * row;
}
