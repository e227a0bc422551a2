#pragma once

#include <string_view>

namespace hytas::onboard {

// Whether a text is UTF-8, as Python has it: no overlong forms, no surrogates, nothing above
// 10FFFF.
bool is_utf8(std::string_view text);

}  // namespace hytas::onboard
