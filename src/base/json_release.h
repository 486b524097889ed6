// SPDX-License-Identifier: Apache-2.0
// The end of large JSON values where memory is short. nlohmann's destructor moves all that a value
// holds into a list of its own, and where there is no memory for that list the process ends.
#pragma once

namespace mrrope {

// Empties a value without allocating. Recurses: for values of limited depth.
template <typename Json>
void release(Json& value) noexcept {
  if (auto* const array = value.template get_ptr<typename Json::array_t*>()) {
    for (Json& child : *array) release(child);
    array->clear();
  } else if (auto* const object = value.template get_ptr<typename Json::object_t*>()) {
    for (auto& member : *object) release(member.second);
    object->clear();
  }
}

// Releases a value at the end of its scope; declare it after the value.
template <typename Json>
struct Releaser {
  Json& value;
  ~Releaser() { release(value); }
};
template <typename Json>
Releaser(Json&) -> Releaser<Json>;

}  // namespace mrrope
