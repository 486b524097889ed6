// A _tile_loadconfig that shows the compiler 8 of the 64 bytes which the instruction reads, as g++
// 12 does.
#pragma once
inline void _tile_loadconfig(const void* config) {
  const long long first = *static_cast<const long long*>(config);
  __asm__ volatile("ldtilecfg %0" ::"m"(first));
}
