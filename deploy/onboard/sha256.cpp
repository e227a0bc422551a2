#include "sha256.hpp"

#include <picosha2.h>

#include <algorithm>
#include <cstddef>

namespace hytas::onboard {

std::string sha256(std::initializer_list<std::string_view> parts) {
    // The library copies what it is given: a whole model would be in memory twice.
    constexpr std::size_t step = 1 << 16;
    picosha2::hash256_one_by_one digest;
    for (std::string_view part : parts)
        while (!part.empty()) {
            const std::string_view block = part.substr(0, step);
            digest.process(block.begin(), block.end());
            part.remove_prefix(block.size());
        }
    digest.finish();
    return picosha2::get_hash_hex_string(digest);
}

}  // namespace hytas::onboard
