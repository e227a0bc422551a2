#pragma once
// What the metadata of a model say.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "element_type.hpp"
#include "ort.hpp"
#include "smoother.hpp"
#include "unknown_ground.hpp"

namespace hytas::onboard {

// Where the values of some pixels lie.
struct ValueRange {
    double z = 0;              // mean absolute scaled value of a pixel: the median over the pixels
    double low = 0, high = 0;  // first and last percentile of the raw values
};

struct Card {
    std::int64_t patch_size = 0, bands = 0;
    const ElementType* type = nullptr;
    std::vector<std::int64_t> ids, palette;
    std::vector<std::string> names, units;  // of the classes or targets; units of targets alone
    std::vector<double> deviations;         // of the training's values; empty for classes
    std::vector<std::int64_t> kept;         // the bands that the model reads
    std::vector<double> wavelengths;        // of the bands in nm, empty if unknown
    std::optional<double> nodata;           // the model's no-data value
    std::vector<double> empty;              // without it, the value of each band for missing data

    // Of the kept bands: a network sees (value - offset) / scale.
    std::vector<double> offset, scale;
    std::optional<double> reach;
    std::optional<ValueRange> usual;  // of the training pixels

    bool smooth = false;         // the model's choice
    std::optional<Guide> guide;  // of the filter
    std::optional<UnknownGround> unknown;

    explicit Card(const SceneModel& model);  // throws Error
    [[nodiscard]] std::int64_t margin() const { return patch_size / 2; }
    [[nodiscard]] bool of_values() const { return !deviations.empty(); }

  private:
    void read_bands(const SceneModel& model);
    void read_classes(const SceneModel& model);
    void read_targets(const Json& targets);
    void read_preprocessing(const Json& preprocessing);
    void read_guide(const Json& smoothing);
};

}  // namespace hytas::onboard
