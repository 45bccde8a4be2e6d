#define VARIANT plain
#define DOUBLES 2
#define TILE_ROWS 4
#define TILE_VECTORS 2
#include "host_variant.inc"
