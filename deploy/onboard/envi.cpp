#include "envi.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "hytas/onboard.hpp"
#include "limits.hpp"

namespace hytas::onboard {
namespace {

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
    return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return text;
}

// The words of a text with one space between them.
std::string words(const std::string& text) {
    std::istringstream stream(text);
    std::string joined, word;
    while (stream >> word) joined.append(joined.empty() ? "" : " ").append(word);
    return joined;
}

// The items of a list: braces or brackets around it, commas or blanks between them.
std::vector<std::string> items_of(const std::string& text) {
    const auto first = text.find_first_not_of(" \t{[("), last = text.find_last_not_of(" \t)]}");
    std::istringstream stream(first == std::string::npos ? ""
                                                         : text.substr(first, last - first + 1));
    std::vector<std::string> items;
    std::string item;
    if (stream.str().find(',') == std::string::npos)
        while (stream >> item) items.push_back(item);
    else
        while (std::getline(stream, item, ',')) items.push_back(trimmed(item));
    while (!items.empty() && items.back().empty()) items.pop_back();
    return items;
}

std::optional<double> number(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return text.empty() || *end != '\0' ? std::nullopt : std::optional(value);
}

// A unit in the form of the tables of limits.hpp.
std::string plain_unit(const std::string& text) {
    const auto first = text.find_first_not_of(" \t[]()"), last = text.find_last_not_of(" \t[]()");
    if (first == std::string::npos) return "";
    std::string unit = words(lower(text.substr(first, last - first + 1)));
    for (const std::string_view letter : {"\u00c5", "\u212b"})  // not in the letters of `lower`
        for (auto at = unit.find(letter); at != std::string::npos; at = unit.find(letter))
            unit.replace(at, letter.size(), "\u00e5");
    if (unit.size() > 2 && unit.ends_with('s')) unit.pop_back();
    return unit;
}

std::optional<double> factor_of(const std::string& unit) {
    for (const auto& [name, factor] : length_units)
        if (unit == name) return factor;
    return std::nullopt;
}

template <typename Table>
bool contains(const Table& table, const std::string& unit) {
    return std::find(table.begin(), table.end(), unit) != table.end();
}

// Brings wavelengths to nm, as `nanometres` of hytas/data/interpret/wavelengths.py does. Returns a
// note on a guess; or why they cannot be used, and then leaves none.
std::string to_nanometres(std::vector<double>& values, const std::string& unit) {
    const auto [low, high] = [&] {
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        return std::pair(*least, *most);
    }();
    const auto refuse = [&](const std::string& reason) {
        values.clear();
        return "are not used: " + reason;
    };
    const auto scale = [&](double factor) {
        for (double& value : values) value *= factor;
    };
    const std::string name = plain_unit(unit);
    if (values.size() > 1 && low == high) return refuse("they are all equal");
    if (contains(wavenumber_units, name)) {
        for (double& value : values) value = 1e7 / value;
        return "";
    }
    if (const std::optional<double> factor = factor_of(name)) {
        const bool is_micro = *factor == 1 && high < 100;
        const bool is_nano = *factor == 1e3 && low >= safe_nm.front();
        scale(is_micro ? 1e3 : is_nano ? 1 : *factor);
        return is_micro || is_nano
                   ? "are read as " + std::string(is_micro ? "um" : "nm") + ", and not as " + unit
                   : "";
    }
    if (!contains(no_units, name)) return refuse("their unit is " + unit);
    bool are_counted = true;
    for (std::size_t at = 0; at < values.size(); ++at)
        are_counted &= values[at] == static_cast<double>(at) + 1;
    if (are_counted) return refuse("they name no unit, and may be numbers of bands");
    for (const auto& [range, factor] :
         {std::pair(safe_nm, 1.0), std::pair(safe_um, 1e3), std::pair(safe_m, 1e9)})
        if (range[0] <= low && high <= range[1]) {
            scale(factor);
            return "";
        }
    return refuse("they name no unit, and may be several");
}

std::map<std::string, std::string> parse(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw Error(Status::cube_unreadable, "cube: no such file: " + path);
    std::string line;
    std::getline(file, line);
    if (line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);  // some editors mark a text as UTF-8
    if (!trimmed(line).starts_with("ENVI"))
        throw Error(Status::cube_unreadable,
                    "cube: " + path + " is not an ENVI header: its first line must be ENVI");
    std::map<std::string, std::string> fields;
    while (std::getline(file, line)) {
        const auto equals = line.find('=');
        if (equals == std::string::npos || line.starts_with(';')) continue;
        const std::string name = words(lower(line.substr(0, equals)));
        std::string value = trimmed(line.substr(equals + 1)), more;
        if (value.starts_with('{')) {
            while (value.find('}') == std::string::npos) {
                if (!std::getline(file, more))
                    throw Error(Status::cube_unreadable,
                                "cube: " + path + ": the brace of '" + name + "' is never closed");
                if (!more.starts_with(';')) value.append(" ").append(trimmed(more));
            }
            value.resize(value.rfind('}') + 1);
        }
        fields[name] = value;
    }
    return fields;
}

std::string data_beside(const std::string& header) {
    const std::string stem = std::filesystem::path(header).replace_extension().string();
    for (std::string suffix :
         {"", ".img", ".dat", ".raw", ".bsq", ".bil", ".bip", ".bin", ".lan", ".envi"}) {
        if (std::filesystem::is_regular_file(stem + suffix)) return stem + suffix;
        std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char letter) {
            return static_cast<char>(std::toupper(letter));
        });
        if (std::filesystem::is_regular_file(stem + suffix)) return stem + suffix;
    }
    throw Error(Status::cube_unreadable,
                "cube: " + header + " is an ENVI header without its data file: looked for " + stem +
                    ", " + stem + ".img, " + stem + ".dat ...");
}

}  // namespace

EnviCube::EnviCube(const std::string& header) : header_(header), fields_(parse(header)) {
    lines_ = integer("lines", 0, 1);
    samples_ = integer("samples", 0, 1);
    bands_ = integer("bands", 1, 1);
    offset_ = integer("header offset", 0, 0);
    type_ = &element_type_of_envi(static_cast<int>(integer("data type", 0, 1)));
    const std::int64_t order = integer("byte order", 0, 0);
    if (order > 1)
        throw Error(Status::cube_unreadable, "cube: " + header + ": 'byte order' is " +
                                                 std::to_string(order) +
                                                 ", must be 0 (little endian) or 1 (big endian)");
    swap_ = (order == 1) == (std::endian::native == std::endian::little);
    interleave_ = fields_.contains("interleave") ? lower(fields_["interleave"]) : "bsq";
    if (interleave_ != "bsq" && interleave_ != "bil" && interleave_ != "bip")
        throw Error(Status::cube_unreadable, "cube: " + header + ": interleave is " + interleave_ +
                                                 ", must be bsq, bil or bip");
    if (const auto found = fields_.find("data ignore value"); found != fields_.end()) {
        ignore_ = number(found->second);
        if (!ignore_)
            throw Error(Status::cube_unreadable, "cube: " + header + ": 'data ignore value' is " +
                                                     found->second + "; a number is needed");
    }
    if (bands_ > (std::int64_t{1} << 59) / (lines_ * samples_))
        throw Error(Status::cube_unreadable,
                    "cube: " + header + ": no file holds that many lines, samples and bands");
    read_wavelengths();
    open_data();
    if (interleave_ != "bip") raw_.resize(line_bytes());
}

void EnviCube::open_data() {
    path_ = data_beside(header_);
    const auto wanted = static_cast<std::uint64_t>(offset_) +
                        static_cast<std::uint64_t>(lines_ * samples_ * bands_) * type_->size;
    const auto size = std::filesystem::file_size(path_);
    if (size != wanted)
        throw Error(Status::cube_size,
                    "cube: " + path_ + (size < wanted ? " is truncated" : " is too long") +
                        " or does not belong to " + header_ + ": it holds " + std::to_string(size) +
                        " bytes, the header needs " + std::to_string(wanted) +
                        (size < wanted ? "" : "; correct the header, or cut the file to its size"));
    data_.open(path_, std::ios::binary);
    if (!data_) throw Error(Status::cube_unreadable, "cube: cannot read " + path_);
}

void EnviCube::read_wavelengths() {
    const auto listed = fields_.find("wavelength"), units = fields_.find("wavelength units");
    if (listed == fields_.end()) return;
    std::vector<double> values;
    std::string unit;  // that the numbers themselves name
    bool are_sound = true;
    const std::vector<std::string> texts = items_of(listed->second);
    for (const std::string& text : texts) {
        char* end = nullptr;
        values.push_back(std::strtod(text.c_str(), &end));
        const std::string own = plain_unit(end);
        if (values.size() == 1) unit = own;
        are_sound &= end != text.c_str() && std::isfinite(values.back()) && values.back() > 0 &&
                     own == unit && (own.empty() || factor_of(own));
    }
    std::string reason;
    if (texts.size() != static_cast<std::size_t>(bands_))
        reason = "are not used: " + std::to_string(texts.size()) + " values for " +
                 std::to_string(bands_) + " bands";
    else if (!are_sound)
        reason = "are not used: positive finite numbers are needed";
    else
        reason = to_nanometres(values, !unit.empty()            ? unit
                                       : units == fields_.end() ? ""
                                                                : units->second);
    if (!reason.empty() && bands_ > 1) note_ = header_ + ": its wavelengths " + reason;
    if (!reason.starts_with("are not used")) wavelengths_ = values;
}

std::int64_t EnviCube::integer(const std::string& name, std::int64_t missing,
                               std::int64_t lowest) const {
    const auto found = fields_.find(name);
    std::int64_t value = missing;
    if (found != fields_.end()) {
        const std::string& text = found->second;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size()) value = lowest - 1;
    }
    if (value < lowest || value > (std::int64_t{1} << 31))
        throw Error(Status::cube_unreadable,
                    "cube: " + header_ + ": '" + name + "' is " +
                        (found == fields_.end() ? std::to_string(missing) : found->second) +
                        ", must be an integer of at least " + std::to_string(lowest));
    return value;
}

void EnviCube::read_at(std::uint64_t place, char* into, std::size_t bytes) {
    data_.seekg(static_cast<std::streamoff>(place));
    data_.read(into, static_cast<std::streamsize>(bytes));
    if (data_.gcount() != static_cast<std::streamsize>(bytes))
        throw Error(Status::cube_unreadable, "cube: " + header_ + ": its data end too early");
}

std::size_t EnviCube::line_bytes() const {
    return static_cast<std::size_t>(samples_ * bands_) * type_->size;
}

void EnviCube::read(std::int64_t number, std::vector<char>& pixels) {
    const std::size_t size = type_->size, samples = static_cast<std::size_t>(samples_),
                      bands = static_cast<std::size_t>(bands_), line = line_bytes();
    pixels.resize(line);
    const auto start = static_cast<std::uint64_t>(offset_);
    if (interleave_ == "bip") {
        read_at(start + static_cast<std::uint64_t>(number) * line, pixels.data(), line);
    } else {
        if (interleave_ == "bil") {
            read_at(start + static_cast<std::uint64_t>(number) * line, raw_.data(), line);
        } else {
            for (std::size_t band = 0; band < bands; ++band)
                read_at(start + (band * static_cast<std::uint64_t>(lines_) +
                                 static_cast<std::uint64_t>(number)) *
                                    samples * size,
                        raw_.data() + band * samples * size, samples * size);
        }
        for (std::size_t band = 0; band < bands; ++band)
            for (std::size_t sample = 0; sample < samples; ++sample)
                std::memcpy(&pixels[(sample * bands + band) * size],
                            &raw_[(band * samples + sample) * size], size);
    }
    if (swap_ && size > 1)
        for (std::size_t at = 0; at < line; at += size)
            std::reverse(&pixels[at], &pixels[at] + size);
}

}  // namespace hytas::onboard
