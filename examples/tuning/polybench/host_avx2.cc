#define VARIANT avx2
#define DOUBLES 4
#define TILE_ROWS 4
#define TILE_VECTORS 3
#include "host_variant.inc"
