#pragma once
// From lines of a cube to lines of its class map.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "envi.hpp"
#include "model_file.hpp"
#include "ort.hpp"
#include "smoother.hpp"

namespace onboard {

struct Card {
    std::int64_t patch_size = 0, bands = 0;
    const ElementType* type = nullptr;
    std::vector<std::int64_t> ids, palette;
    std::vector<std::string> names;
    std::vector<std::int64_t> kept;   // the bands that the model reads
    std::vector<double> wavelengths;  // of the bands in nm, empty if unknown
    std::optional<double> nodata;     // what the model takes for no data
    std::vector<double> empty;  // without that, what each band of whole numbers has in its place;
                                // empty in older files

    bool smooth = false;         // whether maps are smoothed unless something else is asked for
    std::optional<Guide> guide;  // what they are smoothed by; absent in older files
    std::vector<double> offset, scale;  // of the kept bands, for the guide
    std::optional<double> reach;

    explicit Card(const ModelFile& model);
    std::int64_t margin() const { return patch_size / 2; }
};

// A line of a map: class ids and their probabilities, 0 where there are no data.
struct MapLine {
    std::vector<std::int32_t> classes;
    std::vector<float> confidence;
};

class Classifier {
  public:
    Classifier(const SceneModel& model, const Card& card, EnviCube& cube, bool smooth);

    // Line `number`. Lines must be asked for in order.
    MapLine line(std::int64_t number);

  private:
    MapLine classify(std::int64_t number, const char* values);
    MapLine smoothed(std::int64_t number);
    std::vector<double> guide(std::int64_t number) const;
    void take(std::int64_t number);
    bool holds_data(const char* pixel) const;
    void mark_missing(std::vector<char>& line) const;

    const SceneModel& model_;
    const Card& card_;
    EnviCube& cube_;
    std::vector<std::vector<char>> ring_;   // the last lines, line n at n % ring_.size()
    std::vector<std::vector<bool>> valid_;  // their pixels that hold data
    std::int64_t taken_ = 0;                // lines read so far
    std::vector<char> tile_;
    std::optional<Smoother> smoother_;
};

}  // namespace onboard
