// SPDX-License-Identifier: Apache-2.0
// What nearly every test uses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/expect_error.h"
#include "support/temp_folder.h"
#include "support/text.h"
#include "support/transcript.h"

namespace mrrope {

using namespace test;
using nlohmann::json;
using nlohmann::ordered_json;

}  // namespace mrrope
