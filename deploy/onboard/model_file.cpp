#include "model_file.hpp"

#include <filesystem>
#include <fstream>
#include <string_view>

#include "hytas/onboard.hpp"
#include "limits.hpp"
#include "sha256.hpp"

namespace hytas::onboard {

std::string read_bytes(const std::string& path, const std::string& kind) {
    const std::filesystem::path place(path);
    std::error_code failed;
    const bool is_model = kind == "model";
    const auto refuse = [&](const std::string& rule) {
        throw Error(is_model ? Status::model_unreadable : Status::delta_unreadable,
                    kind + ": " + rule);
    };
    if (!std::filesystem::exists(place, failed)) refuse("no such file: " + path);
    if (!std::filesystem::is_regular_file(place, failed))
        refuse(path + " is no plain file; " +
               (is_model ? "an exported .onnx file" : "a file of `hytas update make`") +
               " is needed");
    if (std::filesystem::file_size(place, failed) > most_bytes)
        refuse(path + " is larger than any model: at most 512 MiB allowed");
    std::ifstream file(path, std::ios::binary);
    std::string bytes(static_cast<std::size_t>(std::filesystem::file_size(place, failed)), '\0');
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
        refuse("cannot read " + path);
    return bytes;
}

ModelFile::ModelFile(const std::string& place) : path(place), bytes(read_bytes(place, "model")) {
    const std::string_view content = bytes;
    const auto first = content.find(checksum_entry);
    if (first == std::string_view::npos)
        throw Error(
            Status::model_damaged,
            "model: " + path +
                " is not an ONNX file of `hytas export`, or is damaged: it has no checksum");
    constexpr std::size_t digits = 64;
    digest = content.substr(first + checksum_entry.size(), digits);
    const std::size_t behind = first + checksum_entry.size() + digest.size();
    if (digest != sha256({content.substr(0, first), content.substr(behind)}))
        throw Error(Status::model_damaged,
                    "model: " + path +
                        " is damaged or was changed: its SHA-256 is not that of its metadata; "
                        "write it again with `hytas export`");
}

}  // namespace hytas::onboard
