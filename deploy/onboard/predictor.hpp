#pragma once
// What a Predictor is made of.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "card.hpp"
#include "hytas/onboard.hpp"
#include "ort.hpp"
#include "smoother.hpp"

namespace hytas::onboard {

class Predictor::Pass {
  public:
    Pass(const ModelFile& file, const Sensor& sensor, const Settings& settings);

    std::optional<MapLine> push(std::span<const std::byte> values);
    std::optional<MapLine> push_dropped();
    std::optional<MapLine> finish();
    std::int64_t start_at(std::int64_t number);
    bool weights_unchanged();

    [[nodiscard]] const Card& card() const { return card_; }
    [[nodiscard]] const std::string& runtime_version() const { return model_.version(); }
    [[nodiscard]] const std::string& digest() const { return digest_; }  // of the model
    [[nodiscard]] bool is_smoothed() const { return smoother_.has_value(); }
    [[nodiscard]] std::size_t line_bytes() const { return samples_ * pixel_bytes_; }
    [[nodiscard]] std::int64_t delay() const;
    [[nodiscard]] std::size_t memory() const;

  private:
    struct Predictions {
        std::vector<std::int32_t> classes;
        std::vector<float> values;
    };

    [[nodiscard]] std::size_t slot(std::int64_t number) const {
        return static_cast<std::size_t>(number % card_.patch_size);
    }
    [[nodiscard]] char* line(std::int64_t number) { return &ring_[slot(number) * line_bytes()]; }
    [[nodiscard]] unsigned char* valid(std::int64_t number) {
        return &valid_[slot(number) * samples_];
    }
    void check_open() const;
    std::optional<MapLine> next();
    void predict(std::int64_t number);
    void fill_tile(std::int64_t number);
    void remember(std::int64_t number);
    void find_known(std::int64_t number);
    void find_guide(std::int64_t number);
    void choose_classes();
    [[nodiscard]] MapLine line_of_values();
    void mark_missing(char* values) const;
    void fill_missing(char* values, const char* before) const;

    SceneModel model_;
    Card card_;
    std::string digest_;
    std::size_t samples_, pixel_bytes_;
    std::optional<double> nodata_;  // of the sensor
    std::optional<double> limit_;   // the score above which ground is unknown
    std::optional<Smoother> smoother_;
    std::int64_t taken_ = 0, next_ = 0;  // lines pushed, and the next line of the map
    bool ended_ = false;

    std::vector<char> ring_;            // the last patch_size lines
    std::vector<unsigned char> valid_;  // their pixels that hold data
    std::vector<char> tile_;            // input of the model
    Predictions predictions_;           // its output for a line
    std::vector<unsigned char> known_;  // pixels that hold data and are of a class of the model
    std::vector<double> guide_, scores_;
    std::vector<float> chances_;         // smoothed probabilities
    std::vector<std::int32_t> classes_;  // the line of the map
    std::vector<float> confidence_;
    // A tile of the first pixels with data, and the first and the latest predictions on it.
    std::vector<char> reference_;
    std::size_t reference_samples_;
    Predictions first_, latest_;
    bool is_remembered_ = false;
    Call call_, reference_call_;
};

}  // namespace hytas::onboard
