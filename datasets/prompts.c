/* Class names of the datasets whose files hold none, by position, and the templates of the MTIL benchmark ("{}" stands for the class
 * name; the first is trained with, all are evaluated with), as the reference's dataset classes have them. */
#include "datasets/prompts.h"

#include <string.h>

static const char *const aircraft_templates[] = {
    "a photo of a {}, a type of aircraft.", "a photo of the {}, a type of aircraft.", NULL};

static const char *const caltech101_templates[] = {
    "a photo of a {}.", "a painting of a {}.", "a plastic {}.", "a sculpture of a {}.", "a sketch of a {}.",
    "a tattoo of a {}.", "a toy {}.", "a rendition of a {}.", "a embroidered {}.", "a cartoon {}.",
    "a {} in a video game.", "a plushie {}.", "a origami {}.", "art of a {}.", "graffiti of a {}.",
    "a drawing of a {}.", "a doodle of a {}.", "a photo of the {}.", "a painting of the {}.", "the plastic {}.",
    "a sculpture of the {}.", "a sketch of the {}.", "a tattoo of the {}.", "the toy {}.", "a rendition of the {}.",
    "the embroidered {}.", "the cartoon {}.", "the {} in a video game.", "the plushie {}.", "the origami {}.",
    "art of the {}.", "graffiti of the {}.", "a drawing of the {}.", "a doodle of the {}.", NULL};

static const char *const cifar100_templates[] = {
    "a photo of a {}.", "a blurry photo of a {}.", "a black and white photo of a {}.", "a low contrast photo of a {}.",
    "a high contrast photo of a {}.", "a bad photo of a {}.", "a good photo of a {}.", "a photo of a small {}.",
    "a photo of a big {}.", "a photo of the {}.", "a blurry photo of the {}.", "a black and white photo of the {}.",
    "a low contrast photo of the {}.", "a high contrast photo of the {}.", "a bad photo of the {}.",
    "a good photo of the {}.", "a photo of the small {}.", "a photo of the big {}.", NULL};

static const char *const dtd_templates[] = {
    "a photo of a {} texture.", "a photo of a {} pattern.", "a photo of a {} thing.", "a photo of a {} object.",
    "a photo of the {} texture.", "a photo of the {} pattern.", "a photo of the {} thing.",
    "a photo of the {} object.", NULL};

static const char *const eurosat_templates[] = {
    "a centered satellite photo of {}.", "a centered satellite photo of a {}.",
    "a centered satellite photo of the {}.", NULL};

static const char *const flowers_templates[] = {
    "a photo of a {}, a type of flower.", NULL};

static const char *const food_templates[] = {
    "a photo of a {}, a type of food.", NULL};

static const char *const mnist_templates[] = {
    "a photo of the number: \"{}\".", NULL};

static const char *const oxford_pet_templates[] = {
    "a photo of a {}, a type of pet.", NULL};

static const char *const stanford_cars_templates[] = {
    "a photo of a {}, a type of car.", "a photo of a {}.", "a photo of the {}.", "a photo of my {}.", "i love my {}!",
    "a photo of my dirty {}.", "a photo of my clean {}.", "a photo of my new {}.", "a photo of my old {}.", NULL};

static const char *const sun397_templates[] = {
    "a photo of a {}.", "a photo of the {}.", NULL};

static const char *const folder_templates[] = {"a photo of a {}.", NULL};

static const char *const caltech101_classes[] = {
    "off-center face", "centered face", "leopard", "motorbike", "accordion", "airplane", "anchor", "ant", "barrel",
    "bass", "beaver", "binocular", "bonsai", "brain", "brontosaurus", "buddha", "butterfly", "camera", "cannon",
    "side of a car", "ceiling fan", "cellphone", "chair", "chandelier", "body of a cougar cat", "face of a cougar cat",
    "crab", "crayfish", "crocodile", "head of a  crocodile", "cup", "dalmatian", "dollar bill", "dolphin", "dragonfly",
    "electric guitar", "elephant", "emu", "euphonium", "ewer", "ferry", "flamingo", "head of a flamingo", "garfield",
    "gerenuk", "gramophone", "grand piano", "hawksbill", "headphone", "hedgehog", "helicopter", "ibis", "inline skate",
    "joshua tree", "kangaroo", "ketch", "lamp", "laptop", "llama", "lobster", "lotus", "mandolin", "mayfly", "menorah",
    "metronome", "minaret", "nautilus", "octopus", "okapi", "pagoda", "panda", "pigeon", "pizza", "platypus",
    "pyramid", "revolver", "rhino", "rooster", "saxophone", "schooner", "scissors", "scorpion", "sea horse",
    "snoopy (cartoon beagle)", "soccer ball", "stapler", "starfish", "stegosaurus", "stop sign", "strawberry",
    "sunflower", "tick", "trilobite", "umbrella", "watch", "water lilly", "wheelchair", "wild cat", "windsor chair",
    "wrench", "yin and yang symbol", NULL};

static const char *const eurosat_classes[] = {
    "annual crop land", "forest", "brushland or shrubland", "highway or road",
    "industrial buildings or commercial buildings", "pasture land", "permanent crop land",
    "residential buildings or homes or apartments", "river", "lake or sea", NULL};

static const char *const flowers_classes[] = {
    "pink primrose", "hard-leaved pocket orchid", "canterbury bells", "sweet pea", "english marigold", "tiger lily",
    "moon orchid", "bird of paradise", "monkshood", "globe thistle", "snapdragon", "colt's foot", "king protea",
    "spear thistle", "yellow iris", "globe-flower", "purple coneflower", "peruvian lily", "balloon flower",
    "giant white arum lily", "fire lily", "pincushion flower", "fritillary", "red ginger", "grape hyacinth",
    "corn poppy", "prince of wales feathers", "stemless gentian", "artichoke", "sweet william", "carnation",
    "garden phlox", "love in the mist", "mexican aster", "alpine sea holly", "ruby-lipped cattleya", "cape flower",
    "great masterwort", "siam tulip", "lenten rose", "barbeton daisy", "daffodil", "sword lily", "poinsettia",
    "bolero deep blue", "wallflower", "marigold", "buttercup", "oxeye daisy", "common dandelion", "petunia",
    "wild pansy", "primula", "sunflower", "pelargonium", "bishop of llandaff", "gaura", "geranium", "orange dahlia",
    "pink-yellow dahlia", "cautleya spicata", "japanese anemone", "black-eyed susan", "silverbush",
    "californian poppy", "osteospermum", "spring crocus", "bearded iris", "windflower", "tree poppy", "gazania",
    "azalea", "water lily", "rose", "thorn apple", "morning glory", "passion flower", "lotus", "toad lily",
    "anthurium", "frangipani", "clematis", "hibiscus", "columbine", "desert-rose", "tree mallow", "magnolia",
    "cyclamen", "watercress", "canna lily", "hippeastrum", "bee balm", "ball moss", "foxglove", "bougainvillea",
    "camellia", "mallow", "mexican petunia", "bromelia", "blanket flower", "trumpet creeper", "blackberry lily", NULL};

static const char *const mnist_classes[] = {
    "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven", "8 - eight",
    "9 - nine", NULL};

static const struct prompts known[] = {
    {"aircraft", aircraft_templates, NULL},
    {"caltech101", caltech101_templates, caltech101_classes},
    {"cifar100", cifar100_templates, NULL},
    {"cifar10", cifar100_templates, NULL},
    {"dtd", dtd_templates, NULL},
    {"eurosat", eurosat_templates, eurosat_classes},
    {"flowers", flowers_templates, flowers_classes},
    {"food", food_templates, NULL},
    {"mnist", mnist_templates, mnist_classes},
    {"oxford_pet", oxford_pet_templates, NULL},
    {"stanford_cars", stanford_cars_templates, NULL},
    {"sun397", sun397_templates, NULL},
};

const struct prompts *prompts_find(const char *dataset)
{
    static const struct prompts fallback = {"folder", folder_templates, NULL};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].dataset, dataset) == 0)
            return &known[i];
    return &fallback;
}
