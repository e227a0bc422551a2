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
#include "unknown_ground.hpp"

namespace onboard {

// Where the values of some pixels lie, as in hytas/data/preprocessing.py.
struct ValueRange {
    double z = 0;              // mean absolute scaled value of a pixel: the median over the pixels
    double low = 0, high = 0;  // first and last percentile of the raw values
};

struct Card {
    std::int64_t patch_size = 0, bands = 0;
    const ElementType* type = nullptr;
    std::vector<std::int64_t> ids, palette;
    std::vector<std::string> names;
    std::vector<std::int64_t> kept;   // the bands that the model reads
    std::vector<double> wavelengths;  // of the bands in nm, empty if unknown
    std::optional<double> nodata;     // what the model takes for no data
    std::vector<double> empty;  // without that, what each band of whole numbers has in its place

    std::vector<double> offset,
        scale;  // of the kept bands: a network sees (value - offset) / scale
    std::optional<double> reach;
    std::optional<ValueRange> usual;  // of the training pixels

    bool smooth = false;         // whether maps are smoothed unless something else is asked for
    std::optional<Guide> guide;  // what they are smoothed by
    std::optional<UnknownGround> unknown;

    explicit Card(const ModelFile& model);
    [[nodiscard]] std::int64_t margin() const { return patch_size / 2; }
};

// A line of a map: class ids and their probabilities, 0 where there are no data or the ground is
// unknown.
struct MapLine {
    std::vector<std::int32_t> classes;
    std::vector<float> confidence;
};

class Classifier {
  public:
    // `unknown` is the share of held-out pixels with a score that gives a pixel class 0.
    Classifier(const SceneModel& model, const Card& card, EnviCube& cube, bool smooth,
               std::optional<double> unknown);

    // Begin with line `number` instead of the first one.
    void begin(std::int64_t number);

    // Line `number`. Lines must be asked for in order.
    MapLine line(std::int64_t number);

    // Whether the model still says of some pixels what it said at first. A bit of its weights that
    // flips in memory changes that.
    [[nodiscard]] bool unchanged() const;

  private:
    MapLine classify(std::int64_t number, const char* values);
    MapLine smoothed(std::int64_t number);
    [[nodiscard]] MapLine most_probable(const std::vector<float>& chances) const;
    [[nodiscard]] std::vector<bool> known(std::int64_t number,
                                          const std::vector<float>& chances) const;
    [[nodiscard]] std::vector<double> guide(std::int64_t number) const;
    void remember(const std::vector<bool>& valid, const char* values);
    [[nodiscard]] Answers ask_again() const;
    void take(std::int64_t number);
    [[nodiscard]] bool holds_data(const char* pixel) const;
    void mark_missing(std::vector<char>& line) const;

    const SceneModel& model_;
    const Card& card_;
    EnviCube& cube_;
    std::optional<double> limit_;           // the score above which ground is unknown
    std::vector<std::vector<char>> ring_;   // the last lines, line n at n % ring_.size()
    std::vector<std::vector<bool>> valid_;  // their pixels that hold data
    std::int64_t taken_ = 0;                // lines read so far
    std::vector<char> tile_;
    std::vector<char> reference_;  // a tile of the first pixels with data
    std::int64_t reference_columns_ = 0;
    const char* reference_values_ = nullptr;
    Answers reference_answers_;
    std::optional<Smoother> smoother_;
};

}  // namespace onboard
