#include "envi.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "error.hpp"

namespace onboard {
namespace {

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
    return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return text;
}

std::map<std::string, std::string> parse(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw Error("cube: no such file: " + path);
    std::string line;
    if (!std::getline(file, line) || !trimmed(line).starts_with("ENVI")) throw Error("cube: " + path + " is not an ENVI header: its first line must be ENVI");
    std::map<std::string, std::string> fields;
    while (std::getline(file, line)) {
        const auto equals = line.find('=');
        if (equals == std::string::npos) continue;
        std::string value = trimmed(line.substr(equals + 1)), more;
        if (value.starts_with('{'))
            while (value.find('}') == std::string::npos) {
                if (!std::getline(file, more)) throw Error("cube: " + path + ": a brace is never closed");
                value += " " + trimmed(more);
            }
        fields[lower(trimmed(line.substr(0, equals)))] = value;
    }
    return fields;
}

std::string data_beside(const std::string& header) {
    std::filesystem::path path(header);
    for (const char* suffix : {".img", ".dat", ".raw", ".bsq", ".bil", ".bip", ""}) {
        path.replace_extension(suffix);
        if (std::filesystem::is_regular_file(path)) return path.string();
    }
    throw Error("cube: " + header + " is an ENVI header without its data file");
}

}  // namespace

EnviCube::EnviCube(const std::string& header) : header_(header), fields_(parse(header)) {
    lines_ = integer("lines", 0, 1);
    samples_ = integer("samples", 0, 1);
    bands_ = integer("bands", 0, 1);
    offset_ = integer("header offset", 0, 0);
    type_ = &element_type_of_envi(static_cast<int>(integer("data type", 0, 1)));
    const std::int64_t order = integer("byte order", 0, 0);
    if (order > 1) throw Error("cube: " + header + ": 'byte order' is " + std::to_string(order) + ", must be 0 (little endian) or 1 (big endian)");
    swap_ = (order == 1) == (std::endian::native == std::endian::little);
    interleave_ = fields_.contains("interleave") ? lower(fields_["interleave"]) : "bsq";
    if (interleave_ != "bsq" && interleave_ != "bil" && interleave_ != "bip")
        throw Error("cube: " + header + ": interleave is " + interleave_ + ", must be bsq, bil or bip");
    if (const auto found = fields_.find("data ignore value"); found != fields_.end()) {
        char* end = nullptr;
        ignore_ = std::strtod(found->second.c_str(), &end);
        if (found->second.empty() || *end != '\0') throw Error("cube: " + header + ": 'data ignore value' is " + found->second + ", a number needed");
    }
    if (bands_ > (std::int64_t{1} << 59) / (lines_ * samples_)) throw Error("cube: " + header + ": no file holds that many lines, samples and bands");
    const std::string path = data_beside(header);
    const auto wanted = static_cast<std::uint64_t>(offset_) + static_cast<std::uint64_t>(lines_ * samples_ * bands_) * type_->size;
    const auto size = std::filesystem::file_size(path);
    if (size < wanted) throw Error("cube: " + path + " is truncated: it holds " + std::to_string(size) + " bytes, its header needs " + std::to_string(wanted));
    data_.open(path, std::ios::binary);
    if (!data_) throw Error("cube: cannot read " + path);
}

std::int64_t EnviCube::integer(const std::string& name, std::int64_t missing, std::int64_t lowest) const {
    const auto found = fields_.find(name);
    std::int64_t value = missing;
    if (found != fields_.end()) {
        const std::string& text = found->second;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size()) value = lowest - 1;
    }
    if (value < lowest || value > (std::int64_t{1} << 31))
        throw Error("cube: " + header_ + ": '" + name + "' must be an integer of at least " + std::to_string(lowest));
    return value;
}

void EnviCube::read_at(std::uint64_t place, char* into, std::size_t bytes) {
    data_.seekg(static_cast<std::streamoff>(place));
    data_.read(into, static_cast<std::streamsize>(bytes));
    if (data_.gcount() != static_cast<std::streamsize>(bytes)) throw Error("cube: " + header_ + ": its data end too early");
}

void EnviCube::read(std::int64_t number, std::vector<char>& pixels) {
    const std::size_t size = type_->size, samples = static_cast<std::size_t>(samples_), bands = static_cast<std::size_t>(bands_);
    const std::size_t line = samples * bands * size;
    pixels.resize(line);
    const auto start = static_cast<std::uint64_t>(offset_);
    if (interleave_ == "bip") {
        read_at(start + static_cast<std::uint64_t>(number) * line, pixels.data(), line);
    } else {
        raw_.resize(line);
        if (interleave_ == "bil") {
            read_at(start + static_cast<std::uint64_t>(number) * line, raw_.data(), line);
        } else {
            for (std::size_t band = 0; band < bands; ++band)
                read_at(start + (band * static_cast<std::uint64_t>(lines_) + static_cast<std::uint64_t>(number)) * samples * size,
                        raw_.data() + band * samples * size, samples * size);
        }
        for (std::size_t band = 0; band < bands; ++band)
            for (std::size_t sample = 0; sample < samples; ++sample)
                std::memcpy(&pixels[(sample * bands + band) * size], &raw_[(band * samples + sample) * size], size);
    }
    if (swap_ && size > 1)
        for (std::size_t at = 0; at < line; at += size) std::reverse(&pixels[at], &pixels[at] + size);
}

}  // namespace onboard
