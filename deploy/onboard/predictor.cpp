#include "predictor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "limits.hpp"
#include "metadata.hpp"
#include "values.hpp"

namespace hytas::onboard {
namespace {

// Pixels whose predictions are repeated, and how far their probabilities may differ, or values
// relative to their size and deviation: cores of one processor may differ in the last digits.
constexpr std::size_t reference_pixels = 64;
constexpr float most_difference = 1e-6F;
// Each thread takes memory, and a typo must not exhaust it.
constexpr int most_threads = 1024;

// Beyond either end the scene is mirrored, the end itself not repeated.
std::int64_t mirror(std::int64_t index, std::int64_t size) {
    return (size - 1) - std::abs((size - 1) - std::abs(index));
}

std::string one_decimal(double value) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.1f", value);
    return text.data();
}

// Refuse a sensor with a band further from the model's than one band spacing.
void check_wavelengths(const std::vector<double>& trained, const std::vector<double>& found) {
    if (trained.size() < 2 || found.empty()) return;
    if (found.size() != trained.size())
        throw Error(Status::sensor_mismatch, "sensor: one wavelength for each band is needed");
    std::vector<double> steps;
    for (std::size_t band = 1; band < trained.size(); ++band)
        steps.push_back(std::abs(trained[band] - trained[band - 1]));
    std::sort(steps.begin(), steps.end());
    // The median.
    const double spacing = (steps[(steps.size() - 1) / 2] + steps[steps.size() / 2]) / 2;
    std::size_t farthest_band = 0;
    const auto distance = [&](std::size_t band) { return std::abs(found[band] - trained[band]); };
    for (std::size_t band = 0; band < trained.size(); ++band)
        if (distance(band) > distance(farthest_band)) farthest_band = band;
    if (distance(farthest_band) > spacing)
        throw Error(Status::sensor_mismatch,
                    "cube: band " + std::to_string(farthest_band + 1) + " lies at " +
                        one_decimal(found[farthest_band]) + " nm and that of the model at " +
                        one_decimal(trained[farthest_band]) + " nm: at most one band spacing (" +
                        one_decimal(spacing) + " nm) apart allowed");
}

const Sensor& checked(const Sensor& sensor, const Settings& settings, const Card& card) {
    if (sensor.bands != 0 && sensor.bands != card.bands)
        throw Error(Status::sensor_mismatch, "cube: has " + std::to_string(sensor.bands) +
                                                 " bands and the model takes " +
                                                 std::to_string(card.bands));
    if (!sensor.type.empty() && sensor.type != card.type->name)
        throw Error(Status::sensor_mismatch, "cube: its values are " + sensor.type +
                                                 " and the model takes " + card.type->name);
    check_wavelengths(card.wavelengths, sensor.wavelengths);
    if (sensor.samples < card.patch_size)
        throw Error(Status::too_small, "cube: lines of " + std::to_string(sensor.samples) +
                                           " pixels are less than the model's patch of " +
                                           std::to_string(card.patch_size));
    if (settings.smooth.value_or(false) && !card.guide)
        throw Error(Status::bad_argument,
                    "--smooth: the model holds no guide to smooth by; only none is possible");
    if (settings.unknown && (!card.unknown || !card.guide))
        throw Error(Status::bad_argument, "--unknown: the model holds no score for unknown ground");
    return sensor;
}

// The model's value for missing data in a band; none if it has none.
template <typename Value>
std::optional<Value> missing(const Card& card, std::size_t band) {
    if (card.nodata) return static_cast<Value>(*card.nodata);
    if constexpr (std::is_floating_point_v<Value>)
        return std::numeric_limits<Value>::quiet_NaN();
    else
        return card.empty.empty() ? std::nullopt
                                  : std::optional(static_cast<Value>(card.empty[band]));
}

int checked_threads(int threads) {
    if (threads < 1 || threads > most_threads)
        throw Error(Status::bad_argument, "--threads: " + std::to_string(threads) +
                                              " must be 1 to " + std::to_string(most_threads));
    return threads;
}

}  // namespace

Predictor::Pass::Pass(const ModelFile& file, const Sensor& sensor, const Settings& settings)
    : model_(settings.library, file, checked_threads(settings.threads)),
      card_(model_),
      digest_(file.digest),
      samples_(static_cast<std::size_t>(checked(sensor, settings, card_).samples)),
      pixel_bytes_(static_cast<std::size_t>(card_.bands) * card_.type->size),
      nodata_(sensor.nodata) {
    if (settings.unknown) limit_ = card_.unknown->threshold(*settings.unknown);
    const std::size_t classes = card_.ids.size();
    if (settings.smooth.value_or(card_.smooth)) {
        if (!card_.guide) broken("smoothing: a guide is needed");
        smoother_.emplace(*card_.guide, samples_, classes);
        guide_.resize(3 * samples_);
        chances_.resize(samples_ * classes);
    }
    const bool all_classes = smoother_ || limit_, of_values = card_.of_values();
    const std::size_t values = all_classes || of_values ? classes : 1;
    const char* name = of_values ? "values" : all_classes ? "probabilities" : "confidence";
    const auto rows = static_cast<std::size_t>(card_.patch_size);
    const std::size_t columns = samples_ + rows - 1;
    ring_.resize(rows * line_bytes());
    valid_.resize(rows * samples_);
    known_.resize(samples_);
    scores_.resize(limit_ ? 2 * classes : 0);
    classes_.resize(of_values ? 0 : samples_);
    confidence_.resize(classes_.size());
    tile_.resize(rows * columns * pixel_bytes_);
    predictions_ = {std::vector<std::int32_t>(classes_.size()),
                    std::vector<float>(samples_ * values)};
    call_ = model_.prepare(
        {tile_, card_.type, card_.patch_size, static_cast<std::int64_t>(columns), card_.bands},
        predictions_.classes, predictions_.values, name);
    reference_samples_ = std::min(samples_, reference_pixels);
    const std::size_t reference_columns = reference_samples_ + rows - 1;
    reference_.resize(rows * reference_columns * pixel_bytes_);
    first_ = {std::vector<std::int32_t>(of_values ? 0 : reference_samples_),
              std::vector<float>(reference_samples_ * values)};
    latest_ = first_;
    reference_call_ = model_.prepare({reference_, card_.type, card_.patch_size,
                                      static_cast<std::int64_t>(reference_columns), card_.bands},
                                     latest_.classes, latest_.values, name);
}

std::size_t Predictor::Pass::memory() const {
    const auto bytes = [](const auto&... vectors) {
        return (... + (vectors.size() * sizeof(vectors[0])));
    };
    return bytes(ring_, valid_, tile_, known_, guide_, scores_, chances_, classes_, confidence_,
                 predictions_.classes, predictions_.values, reference_, first_.classes,
                 first_.values, latest_.classes, latest_.values) +
           (smoother_ ? smoother_->memory() : 0);
}

std::int64_t Predictor::Pass::delay() const {
    return card_.margin() + (smoother_ ? smoother_->needed(0) - 1 : 0);
}

std::int64_t Predictor::Pass::start_at(std::int64_t number) {
    if (number < 0 || taken_ != 0)
        throw Error(Status::bad_argument, "start_at: a line from 0, before the first push");
    next_ = number;
    const std::int64_t first = smoother_ ? smoother_->begin(number) : number;
    return taken_ = std::max<std::int64_t>(0, first - card_.margin());
}

std::optional<MapLine> Predictor::Pass::push(std::span<const std::byte> values) {
    check_open();
    if (values.size() != line_bytes())
        throw Error(Status::line_size, "line: has " + std::to_string(values.size()) +
                                           " bytes and the sensor's lines have " +
                                           std::to_string(line_bytes()));
    char* into = line(taken_);
    std::memcpy(into, values.data(), values.size());
    unsigned char* holds_data = valid(taken_);
    with_type(*card_.type, [&](auto value) {
        for (std::size_t sample = 0; sample < samples_; ++sample)
            holds_data[sample] = any_data<decltype(value)>(into + sample * pixel_bytes_, card_.kept,
                                                           nodata_ ? nodata_ : card_.nodata);
    });
    mark_missing(into);
    ++taken_;
    return next();
}

std::optional<MapLine> Predictor::Pass::push_dropped() {
    check_open();
    fill_missing(line(taken_), taken_ > 0 ? line(taken_ - 1) : nullptr);
    std::fill_n(valid(taken_), samples_, static_cast<unsigned char>(0));
    ++taken_;
    return next();
}

void Predictor::Pass::check_open() const {
    if (ended_) throw Error(Status::bad_argument, "line: pushed after the end of the scene");
}

std::optional<MapLine> Predictor::Pass::finish() {
    if (!ended_ && taken_ < card_.patch_size)
        throw Error(Status::too_small, "cube: " + std::to_string(taken_) +
                                           " lines are less than the model's patch of " +
                                           std::to_string(card_.patch_size));
    ended_ = true;
    return next_ < taken_ ? next() : std::nullopt;
}

// The next line of the map, if the lines that it needs are there.
std::optional<MapLine> Predictor::Pass::next() {
    const auto is_ready = [&](std::int64_t number) {
        return ended_ ? number < taken_ : number + card_.margin() < taken_;
    };
    if (smoother_) {
        while (smoother_->pushed() < smoother_->needed(next_) && is_ready(smoother_->pushed())) {
            const std::int64_t number = smoother_->pushed();
            predict(number);
            find_known(number);
            find_guide(number);
            smoother_->push(predictions_.values, guide_, known_);
        }
        if (ended_ && smoother_->pushed() == taken_)
            smoother_->end();
        else if (smoother_->pushed() < smoother_->needed(next_))
            return std::nullopt;
        smoother_->line(next_, chances_);
        choose_classes();
    } else {
        if (!is_ready(next_)) return std::nullopt;
        predict(next_);
        find_known(next_);
        if (card_.of_values()) return line_of_values();
        if (limit_) {
            choose_classes();
        } else {
            classes_ = predictions_.classes;
            confidence_ = predictions_.values;
        }
        for (std::size_t sample = 0; sample < samples_; ++sample)
            if (known_[sample] == 0) classes_[sample] = 0, confidence_[sample] = 0;
    }
    return MapLine{next_++, classes_, confidence_};
}

// The model's predictions for a line; zeros if no pixel of it holds data.
void Predictor::Pass::predict(std::int64_t number) {
    const unsigned char* holds_data = valid(number);
    if (std::find(holds_data, holds_data + samples_, 1) == holds_data + samples_) {
        std::fill(predictions_.classes.begin(), predictions_.classes.end(), 0);
        std::fill(predictions_.values.begin(), predictions_.values.end(), 0.0F);
        return;
    }
    fill_tile(number);
    model_.run(call_);
    for (const std::int32_t id : predictions_.classes)
        if (std::find(card_.ids.begin(), card_.ids.end(), id) == card_.ids.end())
            throw Error(Status::model_unsupported,
                        "model: gives classes that its metadata do not name");
    if (!is_remembered_) remember(number);
}

void Predictor::Pass::fill_tile(std::int64_t number) {
    const std::int64_t margin = card_.margin(), samples = static_cast<std::int64_t>(samples_);
    const std::int64_t lines = ended_ ? taken_ : std::numeric_limits<std::int64_t>::max();
    char* into = tile_.data();
    for (std::int64_t row = number - margin; row <= number + margin; ++row) {
        const char* source = line(ended_ ? mirror(row, lines) : std::abs(row));
        for (std::int64_t column = -margin; column < samples + margin; ++column) {
            const auto place = static_cast<std::size_t>(mirror(column, samples));
            std::memcpy(into, source + place * pixel_bytes_, pixel_bytes_);
            into += pixel_bytes_;
        }
    }
}

// Keep a part of the tile, from the first pixel with data on, and the predictions on it.
void Predictor::Pass::remember(std::int64_t number) {
    const auto rows = static_cast<std::size_t>(card_.patch_size);
    const std::size_t row = (samples_ + rows - 1) * pixel_bytes_,
                      part = (reference_samples_ + rows - 1) * pixel_bytes_;
    const unsigned char* holds_data = valid(number);
    const auto first = std::min<std::size_t>(
        static_cast<std::size_t>(std::find(holds_data, holds_data + samples_, 1) - holds_data),
        samples_ - reference_samples_);
    for (std::size_t at = 0; at < rows; ++at)
        std::memcpy(&reference_[at * part], &tile_[at * row + first * pixel_bytes_], part);
    model_.run(reference_call_);
    first_.classes = latest_.classes;
    first_.values = latest_.values;
    is_remembered_ = true;
}

MapLine Predictor::Pass::line_of_values() {
    const std::size_t targets = card_.ids.size();
    for (std::size_t sample = 0; sample < samples_; ++sample)
        if (known_[sample] == 0)
            std::fill_n(&predictions_.values[sample * targets], targets,
                        std::numeric_limits<float>::quiet_NaN());
    return {next_++, {}, {}, predictions_.values};
}

bool Predictor::Pass::weights_unchanged() {
    if (!is_remembered_) return true;
    model_.run(reference_call_);
    for (std::size_t at = 0; at < first_.values.size(); ++at) {
        const float first = first_.values[at];
        const float unit =
            card_.of_values()
                ? std::abs(first) + static_cast<float>(card_.deviations[at % card_.ids.size()])
                : 1;
        if (!(std::abs(latest_.values[at] - first) <= most_difference * unit)) return false;
    }
    return latest_.classes == first_.classes;
}

// The pixels of a predicted line that hold data, and are of a class of the model.
void Predictor::Pass::find_known(std::int64_t number) {
    std::copy_n(valid(number), samples_, known_.begin());
    if (!limit_) return;
    const std::size_t classes = card_.ids.size();
    for (std::size_t pixel = 0; pixel < samples_; ++pixel) {
        if (known_[pixel] == 0) continue;
        const double score = card_.unknown->score(&predictions_.values[pixel * classes], scores_);
        known_[pixel] = score > *limit_ ? 0 : 1;
    }
}

// The most probable classes of a line; 0 where all probabilities are 0.
void Predictor::Pass::choose_classes() {
    const std::size_t classes = card_.ids.size();
    const float* pixel = smoother_ ? chances_.data() : predictions_.values.data();
    for (std::size_t sample = 0; sample < samples_; ++sample, pixel += classes) {
        const float* best = std::max_element(pixel, pixel + classes);
        confidence_[sample] = *best;
        classes_[sample] =
            *best == 0
                ? 0
                : static_cast<std::int32_t>(card_.ids[static_cast<std::size_t>(best - pixel)]);
    }
}

// The guide (3, samples) of a line: directions times scaled values, scaled as
// hytas/data/preprocessing.py does.
void Predictor::Pass::find_guide(std::int64_t number) {
    const Guide& filter = *card_.guide;
    const std::size_t kept = card_.kept.size();
    with_type(*card_.type, [&](auto value) {
        const char* pixel = line(number);
        for (std::size_t sample = 0; sample < samples_; ++sample, pixel += pixel_bytes_) {
            std::array<double, 3> sums{};
            for (std::size_t at = 0; at < kept; ++at) {
                std::memcpy(&value,
                            pixel + static_cast<std::size_t>(card_.kept[at]) * sizeof(value),
                            sizeof(value));
                const auto raw = static_cast<float>(value);
                float scaled = (raw - static_cast<float>(card_.offset[at])) /
                               static_cast<float>(card_.scale[at]);
                if (!std::isfinite(scaled) ||
                    (card_.nodata && raw == static_cast<float>(*card_.nodata)))
                    scaled = 0;
                if (card_.reach)
                    scaled = std::clamp(scaled, -static_cast<float>(*card_.reach),
                                        static_cast<float>(*card_.reach));
                for (std::size_t axis = 0; axis < 3; ++axis)
                    sums[axis] += filter.directions[axis * kept + at] * static_cast<double>(scaled);
            }
            for (std::size_t axis = 0; axis < 3; ++axis)
                guide_[axis * samples_ + sample] = sums[axis] - filter.offset[axis];
        }
    });
}

// Replace the sensor's no-data value by the model's.
void Predictor::Pass::mark_missing(char* values) const {
    if (!nodata_ || (card_.nodata && *nodata_ == *card_.nodata)) return;
    with_type(*card_.type, [&](auto value) {
        using Value = decltype(value);
        const auto bands = static_cast<std::size_t>(card_.bands);
        for (std::size_t at = 0; at < samples_ * bands; ++at) {
            std::memcpy(&value, values + at * sizeof(value), sizeof(value));
            if (!equals(value, *nodata_)) continue;
            value = missing<Value>(card_, at % bands).value_or(value);
            std::memcpy(values + at * sizeof(value), &value, sizeof(value));
        }
    });
}

// A line without data; a model that has no value for missing data sees the line before.
void Predictor::Pass::fill_missing(char* values, const char* before) const {
    if (before == nullptr)
        std::memset(values, 0, line_bytes());
    else
        std::memcpy(values, before, line_bytes());
    with_type(*card_.type, [&](auto value) {
        using Value = decltype(value);
        const auto bands = static_cast<std::size_t>(card_.bands);
        for (std::size_t at = 0; at < samples_ * bands; ++at) {
            const std::optional<Value> mark = missing<Value>(card_, at % bands);
            if (!mark) return;
            std::memcpy(values + at * sizeof(value), &*mark, sizeof(value));
        }
    });
}

Predictor::Predictor(const std::string& model, const Sensor& sensor, const Settings& settings)
    : pass_(std::make_unique<Pass>(ModelFile(model), sensor, settings)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;

std::optional<MapLine> Predictor::push(std::span<const std::byte> values) {
    return pass_->push(values);
}
std::optional<MapLine> Predictor::push_dropped() { return pass_->push_dropped(); }
std::optional<MapLine> Predictor::finish() { return pass_->finish(); }
std::int64_t Predictor::start_at(std::int64_t number) { return pass_->start_at(number); }
bool Predictor::weights_unchanged() { return pass_->weights_unchanged(); }
std::size_t Predictor::line_bytes() const { return pass_->line_bytes(); }
std::int64_t Predictor::delay() const { return pass_->delay(); }
std::size_t Predictor::memory() const { return pass_->memory(); }
const std::vector<std::int64_t>& Predictor::class_ids() const { return pass_->card().ids; }
const std::vector<std::string>& Predictor::names() const { return pass_->card().names; }
const std::vector<std::string>& Predictor::units() const { return pass_->card().units; }

}  // namespace hytas::onboard
