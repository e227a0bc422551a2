#pragma once
// What an ONNX file says, read and checked before onnxruntime sees a byte of it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "graph.hpp"

namespace hytas::onboard {

// Whether a text is UTF-8, as Python has it: no overlong forms, no surrogates, nothing above
// 10FFFF.
bool is_utf8(std::string_view text);

// The content of a plain file; `kind` ("model" or "delta") is what messages call it.
std::string read_bytes(const std::string& path, const std::string& kind);

struct ModelFile {
    std::string path, bytes;
    std::map<std::string, std::string> properties;
    Ends ends;

    // Read the file, compare its checksum, and refuse what no model of hytas has.
    explicit ModelFile(const std::string& path);

    [[nodiscard]] std::optional<std::string> metadata(const std::string& key) const;
};

}  // namespace hytas::onboard
