#pragma once
// Which lines of an unfinished map are whole, so that a later run goes on behind them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "whole_file.hpp"

namespace hytas::onboard {

// Lies in MAP.img.lines.part: what the map is made from, and a checksum of each line.
class Journal {
  public:
    // `identity` stands for all that decides what the lines hold. A line's bytes are those of
    // `rasters`, `line_bytes` in each.
    Journal(const std::filesystem::path& map, const std::string& identity,
            std::vector<WholeFile*> rasters, std::vector<std::size_t> line_bytes);

    // Lines that are whole: of the run before, until some are added.
    [[nodiscard]] std::int64_t lines() const { return lines_; }

    // Add a line to the rasters, `parts` in the same order, and to the journal.
    void add(const std::vector<std::string>& parts);

    // Keep only the first `lines`.
    void cut(std::int64_t lines);

    void sync();
    void discard();  // the map needs none any more
    void leave();    // for a later run

  private:
    [[nodiscard]] std::int64_t whole_lines() const;

    WholeFile file_;
    std::string head_;
    std::vector<WholeFile*> rasters_;
    std::vector<std::size_t> line_bytes_;
    std::int64_t lines_ = 0;
};

}  // namespace hytas::onboard
