#pragma once
// The rasters that a pass writes: a class map, and the confidence if it is asked for; or values.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "card.hpp"
#include "envi.hpp"
#include "hytas/onboard.hpp"
#include "journal.hpp"
#include "whole_file.hpp"

namespace hytas::onboard {

class MapWriter {
  public:
    // `map` and `confidence` are headers (.hdr), the second may be empty; `identity` stands for all
    // that decides what the lines hold.
    MapWriter(const std::filesystem::path& map, const std::filesystem::path& confidence,
              const Card& card, const EnviCube& cube, const std::string& identity);

    // Lines that are there: at first those that an earlier run of the same identity left.
    [[nodiscard]] std::int64_t lines() const { return journal_.lines(); }

    [[nodiscard]] std::size_t memory() const;  // bytes

    void add(const MapLine& line);
    void cut(std::int64_t lines) { journal_.cut(lines); }  // keep the first so many
    void sync() { journal_.sync(); }
    void leave() { journal_.leave(); }  // for a later run
    void finish();                      // give the files their names

  private:
    std::filesystem::path map_, confidence_;
    const Card& card_;
    const EnviCube& cube_;
    std::size_t id_bytes_;
    WholeFile data_;
    std::optional<WholeFile> sure_;
    std::vector<std::string> parts_;  // of a line, one for each raster
    Journal journal_;
};

}  // namespace hytas::onboard
