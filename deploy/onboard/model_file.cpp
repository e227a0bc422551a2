#include "model_file.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "hytas/onboard.hpp"
#include "limits.hpp"
#include "protobuf.hpp"
#include "sha256.hpp"

namespace hytas::onboard {
namespace {

constexpr const char* format_key = "hytas.format";
enum TopLevel : std::uint64_t {
    graph_field = 7,
    opset_field = 8,
    metadata_field = 14,
    training_field = 20,
    function_field = 25
};

std::pair<std::string, std::string> property(std::string_view message, std::uint64_t& left) {
    std::string key, text;
    Fields fields(message, left);
    while (const auto field = fields.next()) {
        if (field->number == 1) key = field->bytes;
        if (field->number == 2) text = field->bytes;
    }
    if (!is_utf8(key) || !is_utf8(text))
        throw Error(Status::model_damaged, "its metadata are not UTF-8");
    return {key, text};
}

void check_opset(std::string_view message, std::uint64_t& left) {
    std::string_view domain;
    std::uint64_t version = 0;
    Fields fields(message, left);
    while (const auto field = fields.next()) {
        if (field->number == 1) domain = field->bytes;
        if (field->number == 2) version = field->value;
    }
    if (!domain.empty() && domain != "ai.onnx")
        throw Error(Status::model_unsupported, "needs operators of another domain than ONNX's");
    if (version < lowest_opset || version >= next_opset)
        throw Error(Status::model_unsupported,
                    "is of operator set " + std::to_string(version) + ", must be 18 to 24");
}

}  // namespace

bool is_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto lead = static_cast<unsigned char>(text[at++]);
        if (lead < 0x80) continue;
        const int more = lead >= 0xC2 && lead < 0xE0   ? 1
                         : lead >= 0xE0 && lead < 0xF0 ? 2
                         : lead >= 0xF0 && lead < 0xF5 ? 3
                                                       : 0;
        if (more == 0 || text.size() - at < static_cast<std::size_t>(more)) return false;
        unsigned code = lead & (0x3Fu >> more);
        for (int step = 0; step < more; ++step) {
            const auto next = static_cast<unsigned char>(text[at++]);
            if ((next & 0xC0) != 0x80) return false;
            code = code << 6 | (next & 0x3Fu);
        }
        if ((more == 2 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) ||
            (more == 3 && (code < 0x10000 || code > 0x10FFFF)))
            return false;
    }
    return true;
}

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
    std::uint64_t left = most_fields;
    std::size_t first = bytes.size(), behind = bytes.size();  // of the checksum's entry
    std::string_view graph;
    int graphs = 0, opsets = 0;
    std::string foreign;
    try {
        Fields fields(bytes, left);
        while (const auto field = fields.next()) {
            if (field->number == graph_field) graph = field->bytes, ++graphs;
            if (field->number == training_field || field->number == function_field)
                foreign = "has functions or training, which hytas never writes";
            if (field->number == opset_field) ++opsets;
            if (field->number != metadata_field) continue;
            const auto [key, text] = property(field->bytes, left);
            if (!properties.emplace(key, text).second)
                throw Error(Status::model_damaged, "its metadata have an entry twice");
            if (key == checksum_key) first = field->first, behind = field->behind;
        }
    } catch (const Error& error) {
        throw Error(Status::model_damaged,
                    "model: " + path + " is not an ONNX file (" + error.what() + ")");
    }
    const auto told = metadata(std::string(checksum_key));
    if (!told && !metadata(format_key))
        throw Error(
            Status::model_unsupported,
            "model: has no hytas metadata (hytas.format): it was not written by `hytas export`");
    const std::string_view content = bytes;
    if (!told)
        throw Error(Status::model_damaged,
                    "model: " + path + " is damaged or was changed: it has lost its checksum");
    if (*told != sha256({content.substr(0, first), content.substr(behind)}))
        throw Error(Status::model_damaged,
                    "model: " + path +
                        " is damaged or was changed: its SHA-256 is not that of its metadata; "
                        "write it again with `hytas export`");
    if (foreign.empty() && graphs != 1)
        foreign = "has " + std::to_string(graphs) + " graphs; one is needed";
    if (foreign.empty() && opsets == 0) foreign = "names no operator set";
    try {
        if (!foreign.empty()) throw Error(Status::model_unsupported, foreign);
        Fields fields(bytes, left);
        while (const auto field = fields.next())
            if (field->number == opset_field) check_opset(field->bytes, left);
        ends = check_graph(graph, left);
    } catch (const Error& error) {
        throw Error(error.status, "model: " + path + " " + error.what());
    }
}

std::optional<std::string> ModelFile::metadata(const std::string& key) const {
    const auto found = properties.find(key);
    return found == properties.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace hytas::onboard
