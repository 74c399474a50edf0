/* Things of the house and the street, flat and coloured. */
#include "harness/pretrain/captions/sketch.h"

static const struct part anchor[] = {
    LINE(ROLE_BODY, 0.2f, {0, -0.6f}, {0, 0.85f}),
    LINE(ROLE_BODY, 0.16f, {-0.4f, -0.35f}, {0.4f, -0.35f}),
    LINE(ROLE_BODY, 0.2f, {-0.75f, 0.25f}, {-0.55f, 0.7f}, {0, 0.9f}, {0.55f, 0.7f}, {0.75f, 0.25f}),
    LINE(ROLE_BODY, 0.14f, {0, -0.95f}, {0.2f, -0.78f}, {0, -0.6f}, {-0.2f, -0.78f}, {0, -0.95f}),
};
static const struct part umbrella[] = {
    FILL(ROLE_BODY, {-0.95f, 0}, {-0.8f, -0.5f}, {-0.4f, -0.85f}, {0, -0.95f}, {0.4f, -0.85f}, {0.8f, -0.5f},
         {0.95f, 0}, {0.48f, -0.12f}, {0, 0}, {-0.48f, -0.12f}),
    LINE(ROLE_DARK, 0.1f, {0, -0.1f}, {0, 0.8f}, {0.15f, 0.95f}, {0.32f, 0.8f}),
};
static const struct part cup[] = {
    FILL(ROLE_BODY, {-0.7f, -0.6f}, {0.45f, -0.6f}, {0.35f, 0.75f}, {-0.6f, 0.75f}),
    LINE(ROLE_BODY, 0.14f, {0.45f, -0.35f}, {0.85f, -0.25f}, {0.8f, 0.3f}, {0.4f, 0.4f}),
    OVAL(ROLE_DARK, -0.125f, -0.6f, 0.57f, 0.14f),
};
static const struct part chair[] = {
    FILL(ROLE_BODY, {-0.55f, -0.95f}, {-0.35f, -0.95f}, {-0.35f, 0.05f}, {0.6f, 0.05f}, {0.6f, 0.25f}, {-0.55f, 0.25f}),
    LINE(ROLE_BODY, 0.15f, {-0.45f, 0.2f}, {-0.5f, 0.95f}),
    LINE(ROLE_BODY, 0.15f, {0.5f, 0.2f}, {0.55f, 0.95f}),
};
static const struct part table[] = {
    FILL(ROLE_BODY, {-0.95f, -0.4f}, {0.95f, -0.4f}, {0.95f, -0.15f}, {-0.95f, -0.15f}),
    LINE(ROLE_BODY, 0.16f, {-0.75f, -0.2f}, {-0.75f, 0.8f}),
    LINE(ROLE_BODY, 0.16f, {0.75f, -0.2f}, {0.75f, 0.8f}),
};
static const struct part lamp[] = {
    FILL(ROLE_BODY, {-0.35f, -0.9f}, {0.35f, -0.9f}, {0.7f, -0.1f}, {-0.7f, -0.1f}),
    LINE(ROLE_DARK, 0.12f, {0, -0.1f}, {0, 0.8f}),
    FILL(ROLE_DARK, {-0.4f, 0.75f}, {0.4f, 0.75f}, {0.5f, 0.95f}, {-0.5f, 0.95f}),
};
static const struct part scissors[] = {
    LINE(ROLE_LIGHT, 0.15f, {-0.4f, -0.95f}, {0.25f, 0.35f}),
    LINE(ROLE_LIGHT, 0.15f, {0.4f, -0.95f}, {-0.25f, 0.35f}),
    LINE(ROLE_BODY, 0.15f, {-0.25f, 0.35f}, {-0.1f, 0.65f}, {-0.35f, 0.95f}, {-0.6f, 0.65f}, {-0.25f, 0.35f}),
    LINE(ROLE_BODY, 0.15f, {0.25f, 0.35f}, {0.1f, 0.65f}, {0.35f, 0.95f}, {0.6f, 0.65f}, {0.25f, 0.35f}),
};
static const struct part pyramid[] = {
    FILL(ROLE_BODY, {0, -0.85f}, {0.95f, 0.65f}, {0.2f, 0.85f}),
    FILL(ROLE_DETAIL, {0, -0.85f}, {0.2f, 0.85f}, {-0.95f, 0.65f}),
};
static const struct part butterfly[] = {
    FILL(ROLE_BODY, {0, -0.1f}, {-0.5f, -0.85f}, {-0.95f, -0.7f}, {-0.85f, -0.1f}, {-0.4f, 0.05f}, {-0.75f, 0.35f},
         {-0.6f, 0.85f}, {-0.25f, 0.75f}, {0, 0.2f}, {0.25f, 0.75f}, {0.6f, 0.85f}, {0.75f, 0.35f}, {0.4f, 0.05f},
         {0.85f, -0.1f}, {0.95f, -0.7f}, {0.5f, -0.85f}),
    OVAL(ROLE_DETAIL, -0.6f, -0.45f, 0.17f, 0.17f),
    OVAL(ROLE_DETAIL, 0.6f, -0.45f, 0.17f, 0.17f),
    LINE(ROLE_DARK, 0.14f, {0, -0.4f}, {0, 0.6f}),
    LINE(ROLE_DARK, 0.05f, {-0.25f, -0.9f}, {0, -0.4f}, {0.25f, -0.9f}),
};
static const struct part fish[] = {
    FILL(ROLE_BODY, {0.4f, 0}, {0.9f, -0.5f}, {0.85f, 0}, {0.9f, 0.5f}),
    OVAL(ROLE_BODY, -0.2f, 0, 0.72f, 0.45f),
    FILL(ROLE_DETAIL, {-0.3f, -0.4f}, {0.2f, -0.7f}, {0.2f, -0.3f}),
    OVAL(ROLE_LIGHT, -0.6f, -0.1f, 0.12f, 0.12f),
    OVAL(ROLE_DARK, -0.62f, -0.1f, 0.06f, 0.06f),
};
static const struct part sailboat[] = {
    FILL(ROLE_BODY, {-0.85f, 0.4f}, {0.85f, 0.4f}, {0.55f, 0.85f}, {-0.55f, 0.85f}),
    LINE(ROLE_DARK, 0.08f, {0, -0.95f}, {0, 0.4f}),
    FILL(ROLE_LIGHT, {0.08f, -0.9f}, {0.75f, 0.25f}, {0.08f, 0.25f}),
    FILL(ROLE_DETAIL, {-0.08f, -0.7f}, {-0.08f, 0.25f}, {-0.65f, 0.25f}),
};
static const struct part apple[] = {
    FILL(ROLE_BODY, {0, -0.4f}, {-0.4f, -0.55f}, {-0.8f, -0.25f}, {-0.8f, 0.3f}, {-0.45f, 0.85f}, {0, 0.8f},
         {0.45f, 0.85f}, {0.8f, 0.3f}, {0.8f, -0.25f}, {0.4f, -0.55f}),
    LINE(ROLE_DARK, 0.1f, {0, -0.4f}, {0.08f, -0.85f}),
    OVAL(ROLE_DETAIL, 0.3f, -0.75f, 0.22f, 0.1f),
};
static const struct part pear[] = {
    OVAL(ROLE_BODY, 0, 0.4f, 0.6f, 0.5f),
    FILL(ROLE_BODY, {-0.25f, -0.6f}, {0.25f, -0.6f}, {0.52f, 0.3f}, {-0.52f, 0.3f}),
    OVAL(ROLE_BODY, 0, -0.5f, 0.26f, 0.25f),
    LINE(ROLE_DARK, 0.09f, {0, -0.7f}, {0.1f, -0.95f}),
};
static const struct part bird[] = {
    OVAL(ROLE_BODY, 0.05f, 0.1f, 0.55f, 0.4f),
    OVAL(ROLE_BODY, -0.45f, -0.4f, 0.3f, 0.28f),
    FILL(ROLE_DETAIL, {-0.72f, -0.48f}, {-0.98f, -0.35f}, {-0.7f, -0.28f}),
    FILL(ROLE_BODY, {0.45f, 0}, {0.95f, -0.25f}, {0.9f, 0.15f}),
    FILL(ROLE_DETAIL, {-0.1f, -0.05f}, {0.5f, 0}, {0.15f, 0.35f}),
    LINE(ROLE_DARK, 0.06f, {-0.05f, 0.5f}, {-0.05f, 0.9f}),
    LINE(ROLE_DARK, 0.06f, {0.15f, 0.5f}, {0.15f, 0.9f}),
    OVAL(ROLE_DARK, -0.5f, -0.45f, 0.06f, 0.06f),
};
static const struct part mushroom[] = {
    FILL(ROLE_LIGHT, {-0.22f, 0}, {0.22f, 0}, {0.32f, 0.9f}, {-0.32f, 0.9f}),
    FILL(ROLE_BODY, {-0.9f, 0.1f}, {-0.75f, -0.45f}, {-0.35f, -0.8f}, {0, -0.88f}, {0.35f, -0.8f}, {0.75f, -0.45f},
         {0.9f, 0.1f}),
    OVAL(ROLE_LIGHT, -0.35f, -0.35f, 0.13f, 0.11f),
    OVAL(ROLE_LIGHT, 0.3f, -0.45f, 0.12f, 0.1f),
    OVAL(ROLE_LIGHT, 0.05f, -0.1f, 0.1f, 0.08f),
};
static const struct part house[] = {
    FILL(ROLE_BODY, {-0.7f, -0.1f}, {0.7f, -0.1f}, {0.7f, 0.85f}, {-0.7f, 0.85f}),
    FILL(ROLE_DETAIL, {-0.9f, -0.05f}, {0, -0.9f}, {0.9f, -0.05f}),
    FILL(ROLE_DARK, {-0.15f, 0.3f}, {0.2f, 0.3f}, {0.2f, 0.85f}, {-0.15f, 0.85f}),
    FILL(ROLE_LIGHT, {-0.55f, 0.1f}, {-0.28f, 0.1f}, {-0.28f, 0.4f}, {-0.55f, 0.4f}),
    FILL(ROLE_LIGHT, {0.32f, 0.1f}, {0.58f, 0.1f}, {0.58f, 0.4f}, {0.32f, 0.4f}),
};
static const struct part tree[] = {
    FILL(ROLE_DARK, {-0.14f, 0.1f}, {0.14f, 0.1f}, {0.18f, 0.95f}, {-0.18f, 0.95f}),
    OVAL(ROLE_BODY, 0, -0.35f, 0.6f, 0.58f),
    OVAL(ROLE_BODY, -0.4f, -0.05f, 0.4f, 0.35f),
    OVAL(ROLE_BODY, 0.4f, -0.05f, 0.4f, 0.35f),
};
static const struct part pine[] = {
    FILL(ROLE_DARK, {-0.1f, 0.6f}, {0.1f, 0.6f}, {0.1f, 0.95f}, {-0.1f, 0.95f}),
    FILL(ROLE_BODY, {0, -0.95f}, {0.4f, -0.3f}, {-0.4f, -0.3f}),
    FILL(ROLE_BODY, {0, -0.6f}, {0.55f, 0.2f}, {-0.55f, 0.2f}),
    FILL(ROLE_BODY, {0, -0.2f}, {0.7f, 0.7f}, {-0.7f, 0.7f}),
};
static const struct part key[] = {
    LINE(ROLE_BODY, 0.2f, {-0.3f, 0}, {0.9f, 0}),
    LINE(ROLE_BODY, 0.16f, {0.85f, 0}, {0.85f, 0.35f}),
    LINE(ROLE_BODY, 0.16f, {0.55f, 0}, {0.55f, 0.3f}),
    LINE(ROLE_BODY, 0.2f, {-0.3f, 0}, {-0.45f, -0.3f}, {-0.75f, -0.3f}, {-0.88f, 0}, {-0.75f, 0.3f}, {-0.45f, 0.3f},
         {-0.3f, 0}),
};
static const struct part bottle[] = {
    FILL(ROLE_BODY, {-0.13f, -0.9f}, {0.13f, -0.9f}, {0.15f, -0.4f}, {0.36f, -0.1f}, {0.36f, 0.95f}, {-0.36f, 0.95f},
         {-0.36f, -0.1f}, {-0.15f, -0.4f}),
    FILL(ROLE_LIGHT, {-0.36f, 0.15f}, {0.36f, 0.15f}, {0.36f, 0.6f}, {-0.36f, 0.6f}),
};
static const struct part watch[] = {
    OVAL(ROLE_BODY, 0, 0, 0.9f, 0.9f),
    OVAL(ROLE_LIGHT, 0, 0, 0.72f, 0.72f),
    LINE(ROLE_DARK, 0.1f, {0, -0.55f}, {0, 0}, {0.35f, 0.2f}),
};
static const struct part hat[] = {
    OVAL(ROLE_BODY, 0, 0.45f, 0.95f, 0.2f),
    FILL(ROLE_BODY, {-0.5f, 0.45f}, {-0.45f, -0.55f}, {0.45f, -0.55f}, {0.5f, 0.45f}),
    FILL(ROLE_DETAIL, {-0.5f, 0.35f}, {-0.49f, 0.1f}, {0.49f, 0.1f}, {0.5f, 0.35f}),
};
static const struct part ladder[] = {
    LINE(ROLE_BODY, 0.12f, {-0.4f, -0.95f}, {-0.4f, 0.95f}), LINE(ROLE_BODY, 0.12f, {0.4f, -0.95f}, {0.4f, 0.95f}),
    LINE(ROLE_BODY, 0.1f, {-0.4f, -0.65f}, {0.4f, -0.65f}),  LINE(ROLE_BODY, 0.1f, {-0.4f, -0.2f}, {0.4f, -0.2f}),
    LINE(ROLE_BODY, 0.1f, {-0.4f, 0.25f}, {0.4f, 0.25f}),    LINE(ROLE_BODY, 0.1f, {-0.4f, 0.7f}, {0.4f, 0.7f}),
};
static const struct part hammer[] = {
    LINE(ROLE_DETAIL, 0.18f, {0, -0.4f}, {0, 0.9f}),
    FILL(ROLE_BODY, {-0.6f, -0.85f}, {0.45f, -0.85f}, {0.75f, -0.6f}, {0.45f, -0.4f}, {-0.6f, -0.4f}),
};
static const struct part bell[] = {
    FILL(ROLE_BODY, {-0.8f, 0.6f}, {-0.5f, 0.2f}, {-0.45f, -0.4f}, {0, -0.8f}, {0.45f, -0.4f}, {0.5f, 0.2f},
         {0.8f, 0.6f}),
    OVAL(ROLE_DARK, 0, 0.72f, 0.16f, 0.16f),
};
static const struct part candle[] = {
    FILL(ROLE_BODY, {-0.25f, -0.2f}, {0.25f, -0.2f}, {0.25f, 0.9f}, {-0.25f, 0.9f}),
    FILL(ROLE_DETAIL, {0, -0.95f}, {0.16f, -0.5f}, {0, -0.3f}, {-0.16f, -0.5f}),
};
static const struct part envelope[] = {
    FILL(ROLE_BODY, {-0.9f, -0.6f}, {0.9f, -0.6f}, {0.9f, 0.6f}, {-0.9f, 0.6f}),
    LINE(ROLE_DARK, 0.08f, {-0.88f, -0.58f}, {0, 0.1f}, {0.88f, -0.58f}),
};
static const struct part pencil[] = {
    FILL(ROLE_BODY, {-0.9f, -0.18f}, {0.5f, -0.18f}, {0.5f, 0.18f}, {-0.9f, 0.18f}),
    FILL(ROLE_LIGHT, {0.5f, -0.18f}, {0.92f, 0}, {0.5f, 0.18f}),
    FILL(ROLE_DARK, {0.78f, -0.06f}, {0.95f, 0}, {0.78f, 0.06f}),
};
static const struct part book[] = {
    FILL(ROLE_LIGHT, {0, -0.45f}, {0.9f, -0.65f}, {0.9f, 0.5f}, {0, 0.7f}),
    FILL(ROLE_BODY, {0, -0.45f}, {-0.9f, -0.65f}, {-0.9f, 0.5f}, {0, 0.7f}),
    LINE(ROLE_DARK, 0.06f, {0, -0.45f}, {0, 0.7f}),
};
static const struct part leaf[] = {
    FILL(ROLE_BODY, {0, -0.95f}, {0.45f, -0.45f}, {0.5f, 0.1f}, {0, 0.7f}, {-0.5f, 0.1f}, {-0.45f, -0.45f}),
    LINE(ROLE_DARK, 0.06f, {0, -0.7f}, {0, 0.95f}),
};
static const struct part cactus[] = {
    LINE(ROLE_BODY, 0.4f, {0, -0.7f}, {0, 0.9f}),
    LINE(ROLE_BODY, 0.25f, {0, 0.3f}, {-0.6f, 0.2f}, {-0.6f, -0.3f}),
    LINE(ROLE_BODY, 0.25f, {0, 0.1f}, {0.6f, 0}, {0.6f, -0.5f}),
};
static const struct part snake[] = {
    LINE(ROLE_BODY, 0.26f, {-0.8f, 0.7f}, {-0.3f, 0.8f}, {0.2f, 0.5f}, {-0.1f, 0.1f}, {-0.6f, -0.1f}, {-0.4f, -0.6f},
         {0.2f, -0.6f}, {0.6f, -0.4f}),
    OVAL(ROLE_BODY, 0.65f, -0.38f, 0.24f, 0.17f),
    OVAL(ROLE_LIGHT, 0.7f, -0.42f, 0.06f, 0.06f),
};
static const struct part snail[] = {
    LINE(ROLE_DETAIL, 0.26f, {-0.8f, 0.6f}, {0.7f, 0.6f}, {0.8f, 0.1f}),
    OVAL(ROLE_BODY, -0.1f, 0.05f, 0.55f, 0.55f),
    LINE(ROLE_DARK, 0.06f, {-0.1f, 0.05f}, {0.05f, -0.05f}, {0.05f, 0.2f}, {-0.25f, 0.25f}, {-0.35f, -0.1f},
         {0, -0.3f}),
};
static const struct part bicycle[] = {
    LINE(ROLE_DARK, 0.08f, {-0.55f, 0}, {-0.28f, 0.12f}, {-0.17f, 0.4f}, {-0.28f, 0.68f}, {-0.55f, 0.8f},
         {-0.82f, 0.68f}, {-0.93f, 0.4f}, {-0.82f, 0.12f}, {-0.55f, 0}),
    LINE(ROLE_DARK, 0.08f, {0.55f, 0}, {0.82f, 0.12f}, {0.93f, 0.4f}, {0.82f, 0.68f}, {0.55f, 0.8f}, {0.28f, 0.68f},
         {0.17f, 0.4f}, {0.28f, 0.12f}, {0.55f, 0}),
    LINE(ROLE_BODY, 0.1f, {-0.55f, 0.4f}, {-0.25f, -0.25f}, {0.4f, -0.25f}, {0, 0.4f}, {-0.55f, 0.4f}),
    LINE(ROLE_BODY, 0.1f, {0.55f, 0.4f}, {0.35f, -0.55f}, {0.6f, -0.6f}),
    LINE(ROLE_BODY, 0.1f, {0, 0.4f}, {-0.3f, -0.45f}),
};
static const struct part rocket[] = {
    FILL(ROLE_BODY, {0, -0.95f}, {0.3f, -0.4f}, {0.3f, 0.5f}, {-0.3f, 0.5f}, {-0.3f, -0.4f}),
    FILL(ROLE_DETAIL, {0.3f, 0}, {0.65f, 0.65f}, {0.3f, 0.5f}),
    FILL(ROLE_DETAIL, {-0.3f, 0}, {-0.65f, 0.65f}, {-0.3f, 0.5f}),
    OVAL(ROLE_LIGHT, 0, -0.25f, 0.14f, 0.14f),
    FILL(ROLE_DETAIL, {-0.15f, 0.5f}, {0.15f, 0.5f}, {0, 0.95f}),
};
static const struct part tent[] = {
    FILL(ROLE_BODY, {0, -0.75f}, {0.95f, 0.7f}, {-0.95f, 0.7f}),
    FILL(ROLE_DARK, {0, -0.2f}, {0.3f, 0.7f}, {-0.3f, 0.7f}),
};
static const struct part lighthouse[] = {
    FILL(ROLE_LIGHT, {-0.25f, -0.5f}, {0.25f, -0.5f}, {0.4f, 0.95f}, {-0.4f, 0.95f}),
    FILL(ROLE_BODY, {-0.28f, -0.2f}, {0.28f, -0.2f}, {0.32f, 0.2f}, {-0.32f, 0.2f}),
    FILL(ROLE_BODY, {-0.36f, 0.6f}, {0.36f, 0.6f}, {0.4f, 0.95f}, {-0.4f, 0.95f}),
    FILL(ROLE_DARK, {-0.3f, -0.5f}, {-0.2f, -0.75f}, {0, -0.95f}, {0.2f, -0.75f}, {0.3f, -0.5f}),
};
static const struct part glasses[] = {
    LINE(ROLE_BODY, 0.12f, {-0.15f, 0}, {-0.3f, 0.3f}, {-0.65f, 0.3f}, {-0.8f, 0}, {-0.65f, -0.25f}, {-0.3f, -0.25f},
         {-0.15f, 0}),
    LINE(ROLE_BODY, 0.12f, {0.15f, 0}, {0.3f, 0.3f}, {0.65f, 0.3f}, {0.8f, 0}, {0.65f, -0.25f}, {0.3f, -0.25f},
         {0.15f, 0}, {-0.15f, 0}),
};
static const struct part shirt[] = {
    FILL(ROLE_BODY, {-0.3f, -0.8f}, {0, -0.65f}, {0.3f, -0.8f}, {0.95f, -0.4f}, {0.75f, -0.05f}, {0.5f, -0.2f},
         {0.5f, 0.85f}, {-0.5f, 0.85f}, {-0.5f, -0.2f}, {-0.75f, -0.05f}, {-0.95f, -0.4f}),
};
static const struct part shoe[] = {
    FILL(ROLE_BODY, {-0.85f, -0.4f}, {-0.3f, -0.4f}, {0.1f, 0.05f}, {0.8f, 0.15f}, {0.9f, 0.45f}, {-0.85f, 0.45f}),
    FILL(ROLE_DARK, {-0.88f, 0.42f}, {0.92f, 0.42f}, {0.92f, 0.6f}, {-0.88f, 0.6f}),
};
static const struct part crown[] = {
    FILL(ROLE_BODY, {-0.8f, 0.6f}, {-0.95f, -0.5f}, {-0.45f, 0}, {0, -0.75f}, {0.45f, 0}, {0.95f, -0.5f}, {0.8f, 0.6f}),
    OVAL(ROLE_DETAIL, 0, 0.35f, 0.13f, 0.13f),
};
static const struct part balloon[] = {
    OVAL(ROLE_BODY, 0, -0.3f, 0.55f, 0.63f),
    LINE(ROLE_DARK, 0.05f, {0, 0.32f}, {0.1f, 0.6f}, {-0.05f, 0.95f}),
};
static const struct part drum[] = {
    FILL(ROLE_BODY, {-0.75f, -0.35f}, {0.75f, -0.35f}, {0.75f, 0.55f}, {-0.75f, 0.55f}),
    OVAL(ROLE_BODY, 0, 0.55f, 0.75f, 0.22f),
    OVAL(ROLE_LIGHT, 0, -0.35f, 0.75f, 0.22f),
    LINE(ROLE_DARK, 0.06f, {-0.7f, -0.2f}, {-0.35f, 0.6f}, {0, -0.1f}, {0.35f, 0.6f}, {0.7f, -0.2f}),
};
static const struct part guitar[] = {
    OVAL(ROLE_BODY, 0, 0.55f, 0.48f, 0.4f),
    OVAL(ROLE_BODY, 0, 0.1f, 0.36f, 0.3f),
    OVAL(ROLE_DARK, 0, 0.3f, 0.15f, 0.14f),
    LINE(ROLE_DARK, 0.13f, {0, 0.1f}, {0, -0.95f}),
};
static const struct part flag[] = {
    LINE(ROLE_DARK, 0.1f, {-0.6f, -0.95f}, {-0.6f, 0.95f}),
    FILL(ROLE_BODY, {-0.55f, -0.9f}, {0, -0.75f}, {0.8f, -0.9f}, {0.8f, -0.05f}, {0, 0.1f}, {-0.55f, -0.05f}),
};
static const struct part windmill[] = {
    FILL(ROLE_BODY, {-0.2f, -0.3f}, {0.2f, -0.3f}, {0.4f, 0.95f}, {-0.4f, 0.95f}),
    LINE(ROLE_DETAIL, 0.14f, {-0.6f, -0.85f}, {0.6f, 0.35f}),
    LINE(ROLE_DETAIL, 0.14f, {0.6f, -0.85f}, {-0.6f, 0.35f}),
};
static const struct part spoon[] = {
    OVAL(ROLE_BODY, 0, -0.6f, 0.27f, 0.35f),
    LINE(ROLE_BODY, 0.13f, {0, -0.3f}, {0, 0.92f}),
};
static const struct part bed[] = {
    FILL(ROLE_DETAIL, {-0.95f, -0.5f}, {-0.8f, -0.5f}, {-0.8f, 0.7f}, {-0.95f, 0.7f}),
    FILL(ROLE_BODY, {-0.8f, 0.05f}, {0.9f, 0.05f}, {0.9f, 0.45f}, {-0.8f, 0.45f}),
    FILL(ROLE_LIGHT, {-0.78f, -0.2f}, {-0.3f, -0.2f}, {-0.3f, 0.05f}, {-0.78f, 0.05f}),
    FILL(ROLE_DETAIL, {0.8f, -0.1f}, {0.95f, -0.1f}, {0.95f, 0.7f}, {0.8f, 0.7f}),
};

static const struct figure figures[] = {
    {"anchor", PARTS(anchor)},
    {"umbrella", PARTS(umbrella)},
    {"cup", PARTS(cup)},
    {"chair", PARTS(chair)},
    {"table", PARTS(table)},
    {"lamp", PARTS(lamp)},
    {"scissors", PARTS(scissors)},
    {"pyramid", PARTS(pyramid)},
    {"butterfly", PARTS(butterfly)},
    {"fish", PARTS(fish)},
    {"sailboat", PARTS(sailboat)},
    {"apple", PARTS(apple)},
    {"pear", PARTS(pear)},
    {"bird", PARTS(bird)},
    {"mushroom", PARTS(mushroom)},
    {"house", PARTS(house)},
    {"tree", PARTS(tree)},
    {"pine tree", PARTS(pine)},
    {"key", PARTS(key)},
    {"bottle", PARTS(bottle)},
    {"clock", PARTS(watch)},
    {"hat", PARTS(hat)},
    {"ladder", PARTS(ladder)},
    {"hammer", PARTS(hammer)},
    {"bell", PARTS(bell)},
    {"candle", PARTS(candle)},
    {"envelope", PARTS(envelope)},
    {"pencil", PARTS(pencil)},
    {"book", PARTS(book)},
    {"leaf", PARTS(leaf)},
    {"cactus", PARTS(cactus)},
    {"snake", PARTS(snake)},
    {"snail", PARTS(snail)},
    {"bicycle", PARTS(bicycle)},
    {"rocket", PARTS(rocket)},
    {"tent", PARTS(tent)},
    {"lighthouse", PARTS(lighthouse)},
    {"glasses", PARTS(glasses)},
    {"shirt", PARTS(shirt)},
    {"shoe", PARTS(shoe)},
    {"crown", PARTS(crown)},
    {"balloon", PARTS(balloon)},
    {"drum", PARTS(drum)},
    {"guitar", PARTS(guitar)},
    {"flag", PARTS(flag)},
    {"windmill", PARTS(windmill)},
    {"spoon", PARTS(spoon)},
    {"bed", PARTS(bed)},
};

void draw_object(struct sketch *sketch)
{
    struct dice *dice = &sketch->dice;
    const struct tint *tint = sketch_tint(sketch);
    const struct figure *figure = &figures[dice_below(dice, sizeof figures / sizeof figures[0])];
    struct paint paints[ROLES];
    sketch_background(sketch, tint->colour);
    sketch_paints(sketch, tint->colour, sketch_other_tint(sketch, tint)->colour, paints);
    struct placement placement = sketch_placement(sketch);
    if (dice_chance(dice, sketch->harder ? 0.3f : 0.1f))
        figure_outline(&sketch->canvas, &placement.frame, figure, &paints[ROLE_BODY], dice_between(dice, 0.08f, 0.16f),
                       0.03f, dice);
    else
        figure_draw(&sketch->canvas, &placement.frame, figure, paints, 0.04f, dice);
    sketch_say(sketch, placement.size);
    sketch_say_sometimes(sketch, 0.6f, tint->name);
    sketch_say(sketch, figure->name);
    sketch_say(sketch, placement.where);
}
