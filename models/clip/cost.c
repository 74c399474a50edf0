#include "models/clip/cost.h"

/* A tower's blocks. */
struct shape {
    size_t blocks, width, heads, hidden;
};

static struct shape shape_of(const struct clip_dimensions *n, enum tower tower)
{
    return tower == TOWER_IMAGE ? (struct shape){n->image_blocks, n->image_width, n->image_heads, n->image_hidden}
                                : (struct shape){n->text_blocks, n->text_width, n->text_heads, n->text_hidden};
}

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

/* Of `units` hidden units in each block of a tower with experts, beside those of what they replace. */
static double units(const struct clip_dimensions *n, enum tower tower, double rows, const struct cost_experts *e,
                    double used, double replaced)
{
    const struct shape s = shape_of(n, tower);
    double hidden = used * (double)(e->top_k * e->hidden[tower]) - (e->replace_mlp ? replaced * (double)s.hidden : 0);
    return (double)e->blocks[tower] * (rows * 4.0 * (double)s.width * hidden);
}

double cost_image_experts(const struct clip_dimensions *n, size_t images, const struct cost_experts *e)
{
    return units(n, TOWER_IMAGE, (double)(images * clip_image_positions(n)), e, 1.0, 1.0);
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
    return image + text + backward + units(n, TOWER_IMAGE, (double)(images * clip_image_positions(n)), e, 3.0, 2.0) +
           units(n, TOWER_TEXT, (double)(texts * positions), e, 3.0, 2.0);
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

/* Bytes per row: in f32 the residual stream twice, two norms' mean and rstd and each head's sum of the softmax; query, key
 * and value, the attention and the hidden units before their activation as operands of products (block.h). */
static size_t row_bytes(const struct clip_dimensions *n, enum tower tower, const struct cost_experts *e,
                        enum precision precision)
{
    const struct shape s = shape_of(n, tower);
    size_t operand = precision == PRECISION_BF16 ? 2 : 4, dense = s.blocks - (e->replace_mlp ? e->blocks[tower] : 0),
           kept = dense * s.hidden + e->blocks[tower] * e->hidden[tower] * e->top_k;
    return s.blocks * (4 * (2 * s.width + 4 + s.heads) + 4 * operand * s.width) + operand * kept;
}

size_t cost_step_bytes(const struct clip_dimensions *n, size_t images, size_t texts, size_t positions,
                       const struct cost_experts *e, enum precision precision)
{
    return images * clip_image_positions(n) * row_bytes(n, TOWER_IMAGE, e, precision) +
           texts * positions * row_bytes(n, TOWER_TEXT, e, precision);
}

/* Of the hidden units, of what comes into the block and of what leaves it. */
size_t cost_backward_bytes(const struct clip_dimensions *n, size_t images, size_t texts, size_t positions)
{
    return 4 * (images * clip_image_positions(n) * (n->image_hidden + 2 * n->image_width) +
                texts * positions * (n->text_hidden + 2 * n->text_width));
}

/* Partial sums of the experts' gradients, for fours of slots; or the widest rows in f32. */
static size_t scratch(const struct shape *s, size_t samples, size_t positions, size_t top_k, size_t hidden)
{
    size_t weights = hidden > 0 ? (samples * top_k / 2 + 1) * (2 * s->width * hidden + s->width + hidden) : 0,
           rows = samples * positions * (s->hidden > 3 * s->width ? s->hidden : 3 * s->width);
    return 4 * (weights > rows ? weights : rows);
}

size_t cost_scratch_bytes(const struct clip_dimensions *n, size_t images, size_t texts, size_t positions,
                          const struct cost_experts *e)
{
    const struct shape image = shape_of(n, TOWER_IMAGE), text = shape_of(n, TOWER_TEXT);
    return scratch(&image, images, clip_image_positions(n), e->top_k, e->hidden[TOWER_IMAGE]) +
           scratch(&text, texts, positions, e->top_k, e->hidden[TOWER_TEXT]);
}

/* Bytes in bf16 of the weights of blocks' products, `mlps` of them with an MLP. */
static size_t bf16_bytes(const struct shape *s, size_t blocks, size_t mlps)
{
    return 2 * (blocks * 4 * s->width * s->width + mlps * 2 * s->width * s->hidden);
}

size_t cost_rounded_bytes(const struct clip_dimensions *n, enum tower tower, const struct cost_experts *e)
{
    const struct shape s = shape_of(n, tower);
    size_t replaced = e != NULL && e->replace_mlp ? e->blocks[tower] : 0,
           patches = tower == TOWER_IMAGE ? 2 * 3 * n->patch * n->patch * s.width : 0;
    return patches + bf16_bytes(&s, s.blocks, s.blocks - replaced) + 2 * s.width * n->embed;
}

size_t cost_packed_bytes(const struct clip_dimensions *n, enum tower tower, const struct cost_experts *e)
{
    const struct shape s = shape_of(n, tower);
    if (e == NULL || e->blocks[tower] == 0)
        return cost_rounded_bytes(n, tower, e);
    size_t back = s.blocks - e->below[tower] - 1, replaced = back > 0 && e->replace_mlp ? e->blocks[tower] - 1 : 0;
    return cost_rounded_bytes(n, tower, e) + bf16_bytes(&s, back, back - replaced) + 2 * s.width * n->embed;
}

/* Per row: the patches, their embeddings, the residual stream in and out, and a block's temporary memory. */
size_t cost_evaluation_bytes(const struct clip_dimensions *n, size_t images, const struct cost_experts *e)
{
    size_t units = (e->replace_mlp ? 0 : n->image_hidden) + e->hidden[TOWER_IMAGE] * e->top_k,
           row = 3 * n->patch * n->patch + 12 * n->image_width + e->top_k * n->image_width + units;
    return 4 * images * clip_image_positions(n) * row;
}
