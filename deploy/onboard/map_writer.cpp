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

// Bytes of a class id in the map: the smallest type that holds them all.
std::size_t id_bytes_of(const Card& card) {
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

void write_confidence_header(std::ostream& file, const EnviCube& cube) {
    file << "ENVI\nsamples = " << cube.samples() << "\nlines = " << cube.lines()
         << "\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\ndata type = 4\ninterleave "
            "= bsq\nbyte order = 0\ndata ignore value = 0\n";
    write_place(file, cube);
}

void write_header(std::ostream& file, const Card& card, const EnviCube& cube) {
    const std::size_t width = id_bytes_of(card);
    const std::int64_t highest = *std::max_element(card.ids.begin(), card.ids.end()),
                       lowest = *std::min_element(card.ids.begin(), card.ids.end());
    file << "ENVI\nsamples = " << cube.samples() << "\nlines = " << cube.lines()
         << "\nbands = 1\nheader offset = 0\nfile type = ENVI Classification\ndata type = "
         << (width == 1   ? 1
             : width == 2 ? 12
             : lowest < 0 ? 3
                          : 13)
         << "\ninterleave = bsq\nbyte order = 0\ndata ignore value = 0\n";
    if (lowest >= 0 && highest < largest_table) {
        std::vector<std::string> names(static_cast<std::size_t>(highest) + 1);
        std::vector<std::int64_t> colours(3 * names.size());
        for (std::size_t number = 0; number < names.size(); ++number)
            names[number] = number == 0 ? "none" : "unused " + std::to_string(number);
        for (std::size_t index = 0; index < card.ids.size(); ++index) {
            const auto id = static_cast<std::size_t>(card.ids[index]);
            if (id == 0) continue;
            names[id] = card.names[index];
            for (const auto& [sign, instead] :
                 {std::pair(',', ';'), std::pair('{', '('), std::pair('}', ')')})
                std::replace(names[id].begin(), names[id].end(), sign, instead);
            std::copy_n(&card.palette[3 * index], 3, &colours[3 * id]);
        }
        file << "classes = " << names.size() << "\nclass names = {";
        for (std::size_t number = 0; number < names.size(); ++number)
            file << (number == 0 ? "" : ", ") << names[number];
        file << "}\nclass lookup = {";
        for (std::size_t at = 0; at < colours.size(); ++at)
            file << (at == 0 ? "" : ", ") << colours[at];
        file << "}\n";
    }
    write_place(file, cube);
}

std::filesystem::path data_of(const std::filesystem::path& header) {
    return std::filesystem::path(header).replace_extension(".img");
}

// Little endian, whatever the machine.
void append(std::string& bytes, std::uint32_t value, std::size_t count) {
    for (std::size_t byte = 0; byte < count; ++byte)
        bytes += static_cast<char>(value >> 8 * byte & 0xFF);
}

std::vector<WholeFile*> rasters_of(WholeFile& classes, std::optional<WholeFile>& sure) {
    return sure ? std::vector{&classes, &*sure} : std::vector{&classes};
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
      classes_(data_of(map)),
      sure_(confidence.empty() ? std::nullopt
                               : std::optional<WholeFile>(std::in_place, data_of(confidence))),
      parts_(sure_ ? 2 : 1),
      journal_(data_of(map), identity, rasters_of(classes_, sure_),
               {static_cast<std::size_t>(cube.samples()) * id_bytes_,
                static_cast<std::size_t>(cube.samples()) * sizeof(float)}) {
    for (std::string& part : parts_)
        part.reserve(static_cast<std::size_t>(cube.samples()) * sizeof(float));
}

std::size_t MapWriter::memory() const {
    std::size_t bytes = 0;
    for (const std::string& part : parts_) bytes += part.capacity();
    return bytes;
}

void MapWriter::add(const ClassifiedLine& line) {
    for (std::string& part : parts_) part.clear();
    for (const std::int32_t id : line.classes)
        append(parts_[0], static_cast<std::uint32_t>(id), id_bytes_);
    if (sure_)
        for (const float value : line.confidence)
            append(parts_[1], std::bit_cast<std::uint32_t>(value), sizeof(float));
    journal_.add(parts_);
}

void MapWriter::finish() {
    if (sure_)
        finish_raster(confidence_, *sure_,
                      [&](std::ostream& text) { write_confidence_header(text, cube_); });
    journal_.discard();  // before the folder is synced for the last time
    finish_raster(map_, classes_, [&](std::ostream& text) { write_header(text, card_, cube_); });
}

}  // namespace hytas::onboard
