#include "models/clip/cost.h"

static double block(double rows, double positions, double width, double hidden)
{
    return rows * (2.0 * width * (4.0 * width + 2.0 * hidden) + 4.0 * positions * width);
}

static size_t image_positions(const struct clip_dimensions *n)
{
    size_t grid = n->resolution / n->patch;
    return grid * grid + 1;
}

double cost_images(const struct clip_dimensions *n, size_t images)
{
    double positions = (double)image_positions(n), width = (double)n->image_width, count = (double)images;
    return (double)n->image_blocks * block(count * positions, positions, width, (double)n->image_hidden) +
           count * 2.0 * width * ((positions - 1) * 3.0 * (double)(n->patch * n->patch) + (double)n->embed);
}

double cost_texts(const struct clip_dimensions *n, size_t texts, size_t positions)
{
    double width = (double)n->text_width, count = (double)texts;
    return (double)n->text_blocks * block(count * (double)positions, (double)positions, width, (double)n->text_hidden) +
           count * 2.0 * width * (double)n->embed;
}

static double experts(double rows, double width, size_t top_k, size_t bottleneck)
{
    return rows * (double)top_k * 4.0 * width * (double)bottleneck;
}

double cost_image_experts(const struct clip_dimensions *n, size_t images, size_t top_k, size_t bottleneck)
{
    return (double)n->image_blocks *
           experts((double)(images * image_positions(n)), (double)n->image_width, top_k, bottleneck);
}

double cost_text_experts(const struct clip_dimensions *n, size_t texts, size_t positions, size_t top_k,
                         size_t bottleneck)
{
    return (double)n->text_blocks * experts((double)(texts * positions), (double)n->text_width, top_k, bottleneck);
}

/* Nothing below the first block's experts is trained: its attention and MLP need no gradient. */
double cost_adapter_step(const struct clip_dimensions *n, size_t images, size_t texts, size_t positions, size_t top_k,
                         size_t bottleneck)
{
    double image = cost_images(n, images), text = cost_texts(n, texts, positions);
    double backward = image * (double)(n->image_blocks - 1) / (double)n->image_blocks +
                      text * (double)(n->text_blocks - 1) / (double)n->text_blocks;
    return image + text + backward +
           3.0 * (cost_image_experts(n, images, top_k, bottleneck) +
                  cost_text_experts(n, texts, positions, top_k, bottleneck));
}

static size_t block_weights(size_t width, size_t hidden)
{
    return width * (4 * width + 2 * hidden) + 9 * width + hidden;
}

size_t cost_weights(const struct clip_dimensions *n)
{
    size_t image = n->image_blocks * block_weights(n->image_width, n->image_hidden) +
                   n->image_width * (image_positions(n) + 5 + 3 * n->patch * n->patch + n->embed);
    size_t text = n->text_blocks * block_weights(n->text_width, n->text_hidden) +
                  n->text_width * (n->context + 2 + n->vocabulary + n->embed);
    return image + text + 1;
}

/* Per row: the stream twice, query, key and value, the attention, the hidden units before their activation
 * (block.h). */
size_t cost_step_bytes(const struct clip_dimensions *n, size_t images, size_t texts, size_t positions, size_t top_k,
                       size_t bottleneck)
{
    size_t image =
        n->image_blocks * images * image_positions(n) * (6 * n->image_width + n->image_hidden + bottleneck * top_k);
    size_t text = n->text_blocks * texts * positions * (6 * n->text_width + n->text_hidden + bottleneck * top_k);
    return 4 * (image + text);
}

/* Per row: the patches, their embeddings, the stream in and out, and what a block takes on the way. */
size_t cost_evaluation_bytes(const struct clip_dimensions *n, size_t images, size_t top_k, size_t bottleneck)
{
    size_t row =
        3 * n->patch * n->patch + 12 * n->image_width + n->image_hidden + top_k * (n->image_width + bottleneck);
    return 4 * images * image_positions(n) * row;
}
