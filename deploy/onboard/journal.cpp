#include "journal.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace hytas::onboard {
namespace {

constexpr std::size_t checksum_bytes = 8;

// FNV-1a of the parts of line `number`.
std::array<char, checksum_bytes> checksum_of(std::int64_t number,
                                             const std::vector<std::string>& parts) {
    std::uint64_t hash = 0xcbf29ce484222325 ^ static_cast<std::uint64_t>(number);
    for (const std::string& part : parts)
        for (const char byte : part)
            hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    std::array<char, checksum_bytes> bytes{};
    for (std::size_t at = 0; at < checksum_bytes; ++at)
        bytes[at] = static_cast<char>(hash >> 8 * at & 0xFF);
    return bytes;
}

std::filesystem::path journal_of(const std::filesystem::path& map) {
    return map.string() + ".lines";
}

}  // namespace

Journal::Journal(const std::filesystem::path& map, const std::string& identity,
                 std::vector<WholeFile*> rasters, std::vector<std::size_t> line_bytes)
    : file_(journal_of(map)),
      head_(identity + "\n"),
      rasters_(std::move(rasters)),
      line_bytes_(std::move(line_bytes)) {
    const bool same = file_.size() >= head_.size() && file_.read(0, head_.size()) == head_;
    const std::int64_t lines = same ? whole_lines() : 0;
    if (!same) {
        file_.resize(0);
        file_.write(head_);
    }
    cut(lines);
    for (const WholeFile* raster : rasters_) sync_folder_of(raster->part());
    sync_folder_of(file_.part());
}

std::int64_t Journal::whole_lines() const {
    std::uint64_t most = (file_.size() - head_.size()) / checksum_bytes;
    for (std::size_t at = 0; at < rasters_.size(); ++at)
        most = std::min(most, rasters_[at]->size() / line_bytes_[at]);
    for (std::uint64_t line = 0; line < most; ++line) {
        std::vector<std::string> parts;
        for (std::size_t at = 0; at < rasters_.size(); ++at)
            parts.push_back(rasters_[at]->read(line * line_bytes_[at], line_bytes_[at]));
        const auto checksum = checksum_of(static_cast<std::int64_t>(line), parts);
        if (file_.read(head_.size() + line * checksum_bytes, checksum_bytes) !=
            std::string_view(checksum.data(), checksum.size()))
            return static_cast<std::int64_t>(line);
    }
    return static_cast<std::int64_t>(most);
}

void Journal::add(const std::vector<std::string>& parts) {
    for (std::size_t at = 0; at < rasters_.size(); ++at) rasters_[at]->write(parts[at]);
    const auto checksum = checksum_of(lines_, parts);
    file_.write({checksum.data(), checksum.size()});
    ++lines_;
}

void Journal::cut(std::int64_t lines) {
    const auto kept = static_cast<std::uint64_t>(lines);
    for (std::size_t at = 0; at < rasters_.size(); ++at)
        rasters_[at]->resize(kept * line_bytes_[at]);
    file_.resize(head_.size() + kept * checksum_bytes);
    lines_ = lines;
}

void Journal::sync() {
    for (WholeFile* raster : rasters_) raster->sync();
    file_.sync();
}

void Journal::discard() { file_.discard(); }

void Journal::leave() {
    for (WholeFile* raster : rasters_) raster->leave();
    file_.leave();
}

}  // namespace hytas::onboard
