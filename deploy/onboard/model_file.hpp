#pragma once
// Files that the program reads whole.

#include <string>

namespace hytas::onboard {

// The content of a plain file; `kind` ("model" or "delta") is what messages call it.
std::string read_bytes(const std::string& path, const std::string& kind);

// A model file whose content is that of its checksum. Throws Error.
struct ModelFile {
    std::string path, bytes, digest;

    explicit ModelFile(const std::string& path);
};

}  // namespace hytas::onboard
