#define VARIANT avx512
#define DOUBLES 8
#define TILE_ROWS 8
#define TILE_VECTORS 3
#include "host_variant.inc"
