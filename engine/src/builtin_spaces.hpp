// The space files of engine/spaces, embedded so that an installed engine needs no data files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hytas {

struct BuiltinSpace {
    std::string name;
    std::string_view text;
};

[[nodiscard]] const std::vector<BuiltinSpace>& embedded_spaces();

}  // namespace hytas
