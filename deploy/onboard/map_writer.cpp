#include "map_writer.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "limits.hpp"

namespace hytas::onboard {
namespace {

// Bytes of a class id in the map: the smallest type that holds them all; or of a value.
std::size_t id_bytes_of(const Card& card) {
    if (card.of_values()) return sizeof(float);
    const auto [lowest, highest] = std::minmax_element(card.ids.begin(), card.ids.end());
    if (*lowest < 0 || *highest > std::numeric_limits<std::uint16_t>::max()) return 4;
    return *highest <= std::numeric_limits<std::uint8_t>::max() ? 1 : 2;
}

void write_place(std::ostream& file, const EnviCube& cube) {
    for (const char* place : {"map info", "coordinate system string", "projection info"})
        if (const auto found = cube.fields().find(place); found != cube.fields().end())
            file << place << " = "
                 << (found->second.starts_with('{') ? found->second : "{" + found->second + "}")
                 << "\n";
}

struct Form {
    const char* kind = "Standard";
    int type = 4;  // float32
    std::size_t bands = 1;
    const char* interleave = "bsq";
    const char* nodata = "0";
};

void write_form(std::ostream& file, const EnviCube& cube, const Form& form) {
    file << "ENVI\nsamples = " << cube.samples() << "\nlines = " << cube.lines()
         << "\nbands = " << form.bands << "\nheader offset = 0\nfile type = ENVI " << form.kind
         << "\ndata type = " << form.type << "\ninterleave = " << form.interleave
         << "\nbyte order = 0\ndata ignore value = " << form.nodata << "\n";
    write_place(file, cube);
}

std::string plain_name(std::string name) {
    for (const auto& [sign, instead] :
         {std::pair(',', ';'), std::pair('{', '('), std::pair('}', ')')})
        std::replace(name.begin(), name.end(), sign, instead);
    return name;
}

void write_list(std::ostream& file, const char* field, const std::vector<std::string>& names) {
    for (std::size_t at = 0; at < names.size(); ++at)
        file << (at == 0 ? std::string(field) + " = {" : ", ") << plain_name(names[at]);
    file << "}\n";
}

void write_values_header(std::ostream& file, const Card& card, const EnviCube& cube) {
    write_form(file, cube, {.bands = card.ids.size(), .interleave = "bil", .nodata = "nan"});
    write_list(file, "band names", card.names);
    write_list(file, "band units", card.units);
}

void write_header(std::ostream& file, const Card& card, const EnviCube& cube) {
    const std::size_t width = id_bytes_of(card);
    const std::int64_t highest = *std::max_element(card.ids.begin(), card.ids.end()),
                       lowest = *std::min_element(card.ids.begin(), card.ids.end());
    const int type = width == 1 ? 1 : width == 2 ? 12 : lowest < 0 ? 3 : 13;
    write_form(file, cube, {.kind = "Classification", .type = type});
    if (lowest >= 0 && highest < largest_table) {
        std::vector<std::string> names(static_cast<std::size_t>(highest) + 1);
        std::vector<std::int64_t> colours(3 * names.size());
        for (std::size_t number = 0; number < names.size(); ++number)
            names[number] = number == 0 ? "none" : "unused " + std::to_string(number);
        for (std::size_t index = 0; index < card.ids.size(); ++index) {
            const auto id = static_cast<std::size_t>(card.ids[index]);
            if (id == 0) continue;
            names[id] = card.names[index];
            std::copy_n(&card.palette[3 * index], 3, &colours[3 * id]);
        }
        file << "classes = " << names.size() << "\n";
        write_list(file, "class names", names);
        file << "class lookup = {";
        for (std::size_t at = 0; at < colours.size(); ++at)
            file << (at == 0 ? "" : ", ") << colours[at];
        file << "}\n";
    }
}

std::filesystem::path data_of(const std::filesystem::path& header) {
    return std::filesystem::path(header).replace_extension(".img");
}

// Little endian, whatever the machine.
void append(std::string& bytes, std::uint32_t value, std::size_t count) {
    for (std::size_t byte = 0; byte < count; ++byte)
        bytes += static_cast<char>(value >> 8 * byte & 0xFF);
}

std::vector<WholeFile*> rasters_of(WholeFile& data, std::optional<WholeFile>& sure) {
    return sure ? std::vector{&data, &*sure} : std::vector{&data};
}

std::size_t line_bytes_of(const Card& card, const EnviCube& cube) {
    const std::size_t numbers = card.of_values() ? card.ids.size() : 1;
    return static_cast<std::size_t>(cube.samples()) * numbers * id_bytes_of(card);
}

// The header comes after its data: where there is one, the data next to it are whole.
template <typename Write>
void finish_raster(const std::filesystem::path& header, WholeFile& data, const Write& write) {
    std::filesystem::remove(header);  // an earlier one would describe these data
    sync_folder_of(header);
    data.keep();
    std::ostringstream text;
    write(text);
    WholeFile described(header);
    described.resize(0);
    described.write(text.str());
    described.keep();
}

}  // namespace

MapWriter::MapWriter(const std::filesystem::path& map, const std::filesystem::path& confidence,
                     const Card& card, const EnviCube& cube, const std::string& identity)
    : map_(map),
      confidence_(confidence),
      card_(card),
      cube_(cube),
      id_bytes_(id_bytes_of(card)),
      data_(data_of(map)),
      sure_(confidence.empty() ? std::nullopt
                               : std::optional<WholeFile>(std::in_place, data_of(confidence))),
      parts_(sure_ ? 2 : 1),
      journal_(
          data_of(map), identity, rasters_of(data_, sure_),
          {line_bytes_of(card, cube), static_cast<std::size_t>(cube.samples()) * sizeof(float)}) {
    parts_[0].reserve(line_bytes_of(card, cube));
    if (sure_) parts_[1].reserve(static_cast<std::size_t>(cube.samples()) * sizeof(float));
}

std::size_t MapWriter::memory() const {
    std::size_t bytes = 0;
    for (const std::string& part : parts_) bytes += part.capacity();
    return bytes;
}

void MapWriter::add(const MapLine& line) {
    for (std::string& part : parts_) part.clear();
    for (const std::int32_t id : line.classes)
        append(parts_[0], static_cast<std::uint32_t>(id), id_bytes_);
    const std::size_t targets = card_.ids.size();
    for (std::size_t target = 0; target < targets; ++target)
        for (std::size_t at = target; at < line.values.size(); at += targets)
            append(parts_[0], std::bit_cast<std::uint32_t>(line.values[at]), sizeof(float));
    if (sure_)
        for (const float value : line.confidence)
            append(parts_[1], std::bit_cast<std::uint32_t>(value), sizeof(float));
    journal_.add(parts_);
}

void MapWriter::finish() {
    if (sure_)
        finish_raster(confidence_, *sure_,
                      [&](std::ostream& text) { write_form(text, cube_, {}); });
    journal_.discard();  // before the folder is synced for the last time
    const auto write = card_.of_values() ? write_values_header : write_header;
    finish_raster(map_, data_, [&](std::ostream& text) { write(text, card_, cube_); });
}

}  // namespace hytas::onboard
