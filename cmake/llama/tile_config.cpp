// Configures a tile as ggml-cpu/amx/mmq.cpp does. amx.cmake compiles it twice, with different ROWS:
// if both give the same code, the compiler has dropped the stores that ldtilecfg reads.
#include <immintrin.h>

struct TileConfig {
  unsigned char palette, start_row, reserved[14];
  unsigned short bytes_per_row[16];
  unsigned char rows[16];
};

void configure() {
  alignas(64) TileConfig config = {};
  config.palette = 1;
  config.rows[7] = ROWS;
  config.bytes_per_row[7] = 64;
  _tile_loadconfig(&config);
}
