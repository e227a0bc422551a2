// Text as people read it in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hytas {

// 1234567 -> "1,234,567".
[[nodiscard]] std::string with_commas(std::int64_t value);

// {"a", "b"} -> "a, b".
[[nodiscard]] std::string join(const std::vector<std::string>& parts,
                               std::string_view separator = ", ");

// The entry of `known` that is nearest to `word` by edit distance, or "" when none is near: for
// "did you mean".
[[nodiscard]] std::string nearest(const std::string& word, const std::vector<std::string>& known);

// FNV-1a, 64 bits: fingerprints and checksums that are the same on every platform.
[[nodiscard]] std::uint64_t fingerprint(std::string_view bytes);

// At most `limit` characters, control characters shown as '?': what a message may quote of a user's
// text.
[[nodiscard]] std::string quoted(std::string_view text, std::size_t limit = 60);

}  // namespace hytas
