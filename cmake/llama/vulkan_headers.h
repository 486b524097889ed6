// What ggml-vulkan.cpp names of VK_EXT_layer_settings, for headers that are older, as those of
// Debian 12.
#include <vulkan/vulkan_core.h>

#include <vector>
#ifndef VK_EXT_layer_settings
namespace vk {
enum class LayerSettingTypeEXT : int { eBool32 };
struct LayerSettingEXT {
  const char *layer, *name;
  LayerSettingTypeEXT type;
  uint32_t count;
  const void* values;
};
struct LayerSettingsCreateInfoEXT {
  VkStructureType type =
      VkStructureType(1000496000);  // VK_STRUCTURE_TYPE_LAYER_SETTINGS_CREATE_INFO_EXT
  const void* next = nullptr;
  uint32_t count;
  const LayerSettingEXT* settings;
  explicit LayerSettingsCreateInfoEXT(const std::vector<LayerSettingEXT>& all)
      : count(uint32_t(all.size())), settings(all.data()) {}
};
}  // namespace vk
#endif
