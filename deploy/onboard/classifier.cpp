#include "classifier.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>

#include "error.hpp"
#include "metadata.hpp"
#include "values.hpp"

namespace onboard {
namespace {

// Pixels whose answers are repeated, and how far their probabilities may lie apart: cores of one
// processor may differ in the last digits.
constexpr std::int64_t reference_pixels = 64;
constexpr float most_difference = 1e-6F;

std::string property(const ModelFile& model, const std::string& key) {
    const auto found = model.metadata("hytas." + key);
    if (!found)
        throw Error("model: has no hytas metadata (hytas." + key +
                    "): it was not written by `hytas export`");
    return *found;
}

// Beyond either end the scene is mirrored, the end itself not repeated.
std::int64_t mirror(std::int64_t index, std::int64_t size) {
    return (size - 1) - std::abs((size - 1) - std::abs(index));
}

std::string one_decimal(double value) {
    char text[64];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

// Refuse a cube of another sensor: a band further from the model's than one band spacing.
void check_wavelengths(const Card& card, const EnviCube& cube) {
    const std::vector<double>&trained = card.wavelengths, &found = cube.wavelengths();
    if (trained.size() < 2 || found.empty()) return;
    std::vector<double> steps;
    for (std::size_t band = 1; band < trained.size(); ++band)
        steps.push_back(std::abs(trained[band] - trained[band - 1]));
    std::sort(steps.begin(), steps.end());
    // The median.
    const double spacing = (steps[(steps.size() - 1) / 2] + steps[steps.size() / 2]) / 2;
    std::size_t worst = 0;
    for (std::size_t band = 0; band < trained.size(); ++band)
        if (std::abs(found[band] - trained[band]) > std::abs(found[worst] - trained[worst]))
            worst = band;
    if (std::abs(found[worst] - trained[worst]) > spacing)
        throw Error("cube: band " + std::to_string(worst + 1) + " of " + cube.header() +
                    " lies at " + one_decimal(found[worst]) + " nm and that of the model at " +
                    one_decimal(trained[worst]) + " nm: at most one band spacing (" +
                    one_decimal(spacing) + " nm) apart allowed");
}

// Refuse a graph that does not take and give what its metadata say.
void check_ends(const ModelFile& model, const Card& card) {
    constexpr std::uint64_t int32_element = 6, float_element = 1;
    const auto is = [](const End& end, const char* name, std::uint64_t element,
                       const std::vector<std::int64_t>& sizes) {
        return end.name == name && end.element == element && end.sizes == sizes;
    };
    const std::vector<End>&inputs = model.ends.inputs, &outputs = model.ends.outputs;
    if (outputs.size() >= 2 && outputs[0].element != int32_element)
        throw Error(
            "model: its class ids are not of type int32: it was not written by `hytas export`");
    if (inputs.size() != 1 ||
        !is(inputs[0], "tile", static_cast<std::uint64_t>(card.type->onnx), {-1, -1, card.bands}) ||
        outputs.size() != (card.guide ? 3 : 2) ||
        !is(outputs[0], "classes", int32_element, {-1, -1}) ||
        !is(outputs[1], "confidence", float_element, {-1, -1}) ||
        (card.guide && !is(outputs[2], "probabilities", float_element,
                           {-1, -1, static_cast<std::int64_t>(card.ids.size())})))
        throw Error(
            "model: its graph does not take and give what its metadata say: it was not written by "
            "`hytas export`");
}

// How the network scales values, and where those of its training lay.
void read_preprocessing(const ModelFile& model, Card& card) {
    const std::string key = "preprocessing", text = property(model, key);
    card.offset = parse_numbers(parse_member(text, "offset", key), key);
    card.scale = parse_numbers(parse_member(text, "scale", key), key);
    if (card.offset.size() != card.kept.size() || card.scale.size() != card.kept.size())
        throw Error(
            "model: its metadata are broken: preprocessing: one offset and scale needed for each "
            "band");
    const auto finite = [](double value) { return std::isfinite(value); };
    if (!std::all_of(card.offset.begin(), card.offset.end(), finite) ||
        !std::all_of(card.scale.begin(), card.scale.end(),
                     [&](double value) { return finite(value) && value > 0; }))
        throw Error("model: its metadata are broken: preprocessing: offset and scale must be finite, "
                    "and scale above 0");
    if (const std::string reach = parse_member(text, "reach", key); reach != "null")
        card.reach = parse_number(reach, key);
    const std::string usual = parse_member(text, "usual", key);
    if (usual == "null") return;
    card.usual = ValueRange{.z = parse_number(parse_member(usual, "z", key), key),
                            .low = parse_number(parse_member(usual, "low", key), key),
                            .high = parse_number(parse_member(usual, "high", key), key)};
}

// What the filter needs, where the model has one.
void read_guide(const ModelFile& model, Card& card) {
    const std::string smoothing = model.metadata("hytas.smoothing").value_or("null"),
                      key = "smoothing";
    if (smoothing == "null") return;
    const std::vector<std::string> method =
        parse_strings(parse_member(smoothing, "method", key), key);
    if (method.size() != 1 || (method[0] != "guided" && method[0] != "none"))
        throw Error("model: its metadata are broken: smoothing must be guided or none");
    card.smooth = method[0] == "guided";
    Guide guide;
    guide.radius = parse_integer(parse_member(smoothing, "radius", key), key);
    guide.eps = parse_number(parse_member(smoothing, "eps", key), key);
    if (smoothing.find("\"temperature\"") != std::string::npos)
        guide.temperature = parse_number(parse_member(smoothing, "temperature", key), key);
    guide.directions = parse_numbers(parse_member(smoothing, "directions", key), key);
    guide.offset = parse_numbers(parse_member(smoothing, "offset", key), key);
    // This and the radius as in hytas/deploy/smoothing.py.
    constexpr double least_temperature = 0.01;
    constexpr std::int64_t most_radius = 64;
    if (!(guide.temperature >= least_temperature && std::isfinite(guide.temperature)))
        throw Error(
            "model: its metadata are broken: smoothing: the temperature must be finite and at "
            "least 0.01");
    if (guide.radius < 1 || guide.radius > most_radius)
        throw Error("model: its metadata are broken: smoothing: radius " +
                    std::to_string(guide.radius) + " must be 1 to " + std::to_string(most_radius));
    const auto finite = [](const std::vector<double>& values) {
        return std::all_of(values.begin(), values.end(),
                           [](double value) { return std::isfinite(value); });
    };
    const std::size_t kept = card.kept.size();
    if (guide.directions.size() != 3 * kept || guide.offset.size() != 3 ||
        !finite(guide.directions) || !finite(guide.offset) || !std::isfinite(guide.eps) ||
        guide.eps <= 0)
        throw Error(
            "model: its metadata are broken: smoothing: three directions, one number for each "
            "band, and a positive eps needed");
    card.guide = guide;
}

}  // namespace

Card::Card(const ModelFile& model) {
    if (const std::string format = property(model, "format"); format != "2")
        throw Error("model: is of hytas format " + format + ", this program reads format 2");
    if (property(model, "graph") != "scene")
        throw Error(
            "model: is a " + property(model, "graph") +
            " graph; this program takes the scene graph (hytas export --formats onnx-scene)");
    patch_size = parse_integer(property(model, "patch_size"), "patch_size");
    bands = parse_integer(property(model, "bands"), "bands");
    // The tile and the ring of lines are as large as this says: what is even or negative would be
    // written past their ends.
    if (patch_size < 1 || patch_size % 2 == 0)
        throw Error("model: its metadata are broken: patch_size is " + std::to_string(patch_size) +
                    ", must be a positive odd number");
    if (bands < 1)
        throw Error("model: its metadata are broken: bands is " + std::to_string(bands) +
                    ", must be at least 1");
    type = &element_type_of_name(property(model, "dtype"));
    constexpr std::int64_t most_patch_values = 1 << 24;  // as in hytas/model_card.py
    if (patch_size > most_patch_values || bands > most_patch_values ||
        patch_size * patch_size > most_patch_values / bands)
        throw Error("model: its metadata are broken: a patch has more than " +
                    std::to_string(most_patch_values) + " values");
    ids = parse_integers(property(model, "class_ids"), "class_ids");
    palette = parse_integers(property(model, "palette"), "palette");
    names = parse_strings(property(model, "class_names"), "class_names");
    if (model.metadata("hytas.scale_by").value_or("training") == "scene")
        throw Error(
            "model: needs a scene that was scaled by its own pixels (--scale-by scene), which a "
            "line-by-line program cannot do");
    if (const auto value = model.metadata("hytas.nodata"); value && *value != "null")
        nodata = parse_number(*value, "nodata");
    if (nodata && !with_type(*type, [&](auto value) { return holds<decltype(value)>(*nodata); }))
        throw Error("model: its metadata are broken: nodata is a number that no " +
                    std::string(type->name) + " can be");
    kept.resize(static_cast<std::size_t>(bands));
    std::iota(kept.begin(), kept.end(), 0);
    if (const auto value = model.metadata("hytas.kept_bands"))
        kept = parse_integers(*value, "kept_bands");
    if (std::any_of(kept.begin(), kept.end(),
                    [&](std::int64_t band) { return band < 0 || band >= bands; }))
        throw Error("model: its metadata are broken: kept_bands must be 0 to " +
                    std::to_string(bands - 1));
    if (const auto value = model.metadata("hytas.empty_values"); value && *value != "null") {
        empty = parse_numbers(*value, "empty_values");
        const auto held = [&](double number) {
            return with_type(*type, [&](auto kind) { return holds<decltype(kind)>(number); });
        };
        if (empty.size() != static_cast<std::size_t>(bands) ||
            !std::all_of(empty.begin(), empty.end(), held))
            throw Error("model: its metadata are broken: empty_values must be one number of type " +
                        std::string(type->name) + " for each band");
    }
    if (ids.empty() || names.size() != ids.size() || palette.size() != 3 * ids.size())
        throw Error(
            "model: its metadata are broken: class names, ids and colours differ in number");
    if (std::any_of(palette.begin(), palette.end(),
                    [](std::int64_t level) { return level < 0 || level > 255; }))
        throw Error("model: its metadata are broken: a colour is not three numbers from 0 to 255");
    if (const auto value = model.metadata("hytas.wavelengths"); value && *value != "null") {
        wavelengths = parse_numbers(*value, "wavelengths");
        if (wavelengths.size() != static_cast<std::size_t>(bands))
            throw Error("model: its metadata are broken: " + std::to_string(wavelengths.size()) +
                        " wavelengths for " + std::to_string(bands) + " bands");
    }
    read_preprocessing(model, *this);
    read_guide(model, *this);
    if (const std::string json = model.metadata("hytas.unknown").value_or("null"); json != "null")
        unknown.emplace(json, ids.size());
    check_ends(model, *this);
}

Classifier::Classifier(const SceneModel& model, const Card& card, EnviCube& cube, bool smooth,
                       std::optional<double> unknown)
    : model_(model), card_(card), cube_(cube) {
    if (cube.bands() != card.bands)
        throw Error("cube: has " + std::to_string(cube.bands()) + " bands and the model takes " +
                    std::to_string(card.bands));
    if (&cube.type() != card.type)
        throw Error("cube: its values are " + std::string(cube.type().name) +
                    " and the model takes " + card.type->name);
    check_wavelengths(card, cube);
    if (std::min(cube.lines(), cube.samples()) < card.patch_size)
        throw Error("cube: " + std::to_string(cube.lines()) + " x " +
                    std::to_string(cube.samples()) + " pixels are less than the model's patch of " +
                    std::to_string(card.patch_size));
    if (smooth && !card.guide)
        throw Error("--smooth: the model holds no guide to smooth by; only none is possible");
    if (unknown && (!card.unknown || !card.guide))
        throw Error("--unknown: the model holds no score for unknown ground");
    if (unknown) limit_ = card.unknown->threshold(*unknown);
    if (smooth)
        smoother_.emplace(*card.guide, cube.lines(), cube.samples(),
                          static_cast<std::int64_t>(card.ids.size()));
    ring_.resize(static_cast<std::size_t>(card.patch_size));
    valid_.resize(ring_.size(), std::vector<bool>(static_cast<std::size_t>(cube.samples())));
    tile_.resize(ring_.size() *
                 static_cast<std::size_t>((cube.samples() + 2 * card.margin()) * card.bands) *
                 card.type->size);
}

bool Classifier::holds_data(const char* pixel) const {
    return with_type(*card_.type, [&](auto value) {
        return any_data<decltype(value)>(pixel, card_.kept,
                                         cube_.ignore() ? cube_.ignore() : card_.nodata);
    });
}

// The cube's value for no data, in the model's terms.
void Classifier::mark_missing(std::vector<char>& line) const {
    if (!cube_.ignore() || (card_.nodata && *cube_.ignore() == *card_.nodata)) return;
    with_type(*card_.type, [&](auto value) {
        using Value = decltype(value);
        const bool whole = std::numeric_limits<Value>::is_integer;
        if (!card_.nodata && whole && card_.empty.empty()) return;
        std::size_t band = 0;
        for (std::size_t at = 0; at < line.size();
             at += sizeof(value), band = (band + 1) % static_cast<std::size_t>(card_.bands)) {
            std::memcpy(&value, &line[at], sizeof(value));
            if (!equals(value, *cube_.ignore())) continue;
            const double known = card_.nodata ? *card_.nodata
                                 : whole      ? card_.empty[band]
                                              : std::numeric_limits<double>::quiet_NaN();
            value = static_cast<Value>(known);
            std::memcpy(&line[at], &value, sizeof(value));
        }
    });
}

void Classifier::take(std::int64_t number) {
    const std::size_t slot = static_cast<std::size_t>(number) % ring_.size();
    cube_.read(number, ring_[slot]);
    const std::size_t pixel = static_cast<std::size_t>(card_.bands) * card_.type->size;
    for (std::size_t sample = 0; sample < valid_[slot].size(); ++sample)
        valid_[slot][sample] = holds_data(&ring_[slot][sample * pixel]);
    mark_missing(ring_[slot]);
}

void Classifier::begin(std::int64_t number) {
    const std::int64_t first = smoother_ ? smoother_->begin(number) : number;
    taken_ = std::max<std::int64_t>(0, first - card_.margin());
}

MapLine Classifier::line(std::int64_t number) {
    if (smoother_) return smoothed(number);
    if (limit_) {
        std::vector<float> chances = classify(number, "probabilities").confidence;
        const std::vector<bool> kept = known(number, chances);
        for (std::size_t at = 0; at < chances.size(); ++at)
            if (!kept[at / card_.ids.size()]) chances[at] = 0;
        return most_probable(chances);
    }
    MapLine found = classify(number, "confidence");
    const auto& valid = valid_[static_cast<std::size_t>(number) % ring_.size()];
    for (std::size_t sample = 0; sample < valid.size(); ++sample)
        if (!valid[sample]) found.classes[sample] = 0, found.confidence[sample] = 0;
    return found;
}

// Class ids of every pixel of a line, and the output `values` of the model beside them; zeros if no
// pixel holds data.
MapLine Classifier::classify(std::int64_t number, const char* values) {
    const std::int64_t margin = card_.margin(), columns = cube_.samples() + 2 * margin;
    for (; taken_ <= std::min(number + margin, cube_.lines() - 1); ++taken_) take(taken_);
    const std::size_t pixel = static_cast<std::size_t>(card_.bands) * card_.type->size;
    const auto& valid = valid_[static_cast<std::size_t>(number) % ring_.size()];
    const std::size_t expected = valid.size() * (smoother_ || limit_ ? card_.ids.size() : 1);
    MapLine found;
    if (std::find(valid.begin(), valid.end(), true) == valid.end()) {
        found.classes.resize(valid.size()), found.confidence.resize(expected);
        return found;
    }
    char* into = tile_.data();
    for (std::int64_t row = number - margin; row <= number + margin; ++row) {
        const std::vector<char>& source =
            ring_[static_cast<std::size_t>(mirror(row, cube_.lines())) % ring_.size()];
        for (std::int64_t column = -margin; column < columns - margin; ++column, into += pixel)
            std::memcpy(into,
                        &source[static_cast<std::size_t>(mirror(column, cube_.samples())) * pixel],
                        pixel);
    }
    Answers answers =
        model_.run({tile_.data(), card_.type, card_.patch_size, columns, card_.bands}, values);
    found.classes = std::move(answers.classes), found.confidence = std::move(answers.values);
    if (found.classes.size() != valid.size() || found.confidence.size() != expected)
        throw Error("model: gave " + std::to_string(found.classes.size()) +
                    " pixels for a line of " + std::to_string(valid.size()));
    for (const std::int32_t number_of_class : found.classes)
        if (std::find(card_.ids.begin(), card_.ids.end(), number_of_class) == card_.ids.end())
            throw Error("model: gives classes that its metadata do not name");
    if (reference_.empty()) remember(valid, values);
    return found;
}

// Keep a part of the tile, from the first pixel with data on, and what the model says of it.
void Classifier::remember(const std::vector<bool>& valid, const char* values) {
    const std::int64_t columns = cube_.samples() + 2 * card_.margin();
    reference_columns_ = std::min(columns, reference_pixels + 2 * card_.margin());
    const std::int64_t first = std::min<std::int64_t>(
        std::find(valid.begin(), valid.end(), true) - valid.begin(), columns - reference_columns_);
    const std::size_t pixel = static_cast<std::size_t>(card_.bands) * card_.type->size;
    const std::size_t row = static_cast<std::size_t>(columns) * pixel;
    for (auto at = tile_.begin() + static_cast<std::ptrdiff_t>(first * pixel); at < tile_.end();
         at += static_cast<std::ptrdiff_t>(row))
        reference_.insert(reference_.end(), at,
                          at + static_cast<std::ptrdiff_t>(reference_columns_ * pixel));
    reference_values_ = values;
    reference_answers_ = ask_again();
}

Answers Classifier::ask_again() const {
    return model_.run(
        {reference_.data(), card_.type, card_.patch_size, reference_columns_, card_.bands},
        reference_values_);
}

bool Classifier::unchanged() const {
    if (reference_.empty()) return true;
    const Answers now = ask_again();
    return now.classes == reference_answers_.classes &&
           std::equal(now.values.begin(), now.values.end(), reference_answers_.values.begin(),
                      reference_answers_.values.end(), [](float one, float other) {
                          return std::abs(one - other) <= most_difference;
                      });
}

// A line that the filter has gone over, which reads lines ahead of it.
MapLine Classifier::smoothed(std::int64_t number) {
    while (smoother_->pushed() < std::min(smoother_->needed(number), cube_.lines())) {
        const std::int64_t next = smoother_->pushed();
        const MapLine raw = classify(next, "probabilities");
        smoother_->push(raw.confidence, guide(next), known(next, raw.confidence));
    }
    return most_probable(smoother_->line(number));
}

// The pixels of a line that was taken that hold data, and are of a class of the model by their
// probabilities.
std::vector<bool> Classifier::known(std::int64_t number, const std::vector<float>& chances) const {
    std::vector<bool> found = valid_[static_cast<std::size_t>(number) % ring_.size()];
    if (!limit_) return found;
    for (std::size_t pixel = 0; pixel < found.size(); ++pixel)
        if (found[pixel])
            found[pixel] = !(card_.unknown->score(&chances[pixel * card_.ids.size()]) > *limit_);
    return found;
}

// The most probable classes of a line; 0 where all probabilities are 0.
MapLine Classifier::most_probable(const std::vector<float>& chances) const {
    const std::size_t classes = card_.ids.size();
    MapLine found;
    for (auto pixel = chances.begin(); pixel != chances.end();
         pixel += static_cast<std::ptrdiff_t>(classes)) {
        const auto best = std::max_element(pixel, pixel + static_cast<std::ptrdiff_t>(classes));
        found.confidence.push_back(*best);
        found.classes.push_back(
            *best == 0
                ? 0
                : static_cast<std::int32_t>(card_.ids[static_cast<std::size_t>(best - pixel)]));
    }
    return found;
}

// The guide (3, samples) of a line that was taken: directions times scaled values, scaled as
// hytas/data/preprocessing.py does.
std::vector<double> Classifier::guide(std::int64_t number) const {
    const std::vector<char>& line = ring_[static_cast<std::size_t>(number) % ring_.size()];
    const std::size_t samples = static_cast<std::size_t>(cube_.samples()), kept = card_.kept.size();
    const Guide& filter = *card_.guide;
    std::vector<double> found(3 * samples);
    with_type(*card_.type, [&](auto value) {
        for (std::size_t sample = 0; sample < samples; ++sample) {
            std::array<double, 3> sums{};
            for (std::size_t at = 0; at < kept; ++at) {
                const std::size_t place = sample * static_cast<std::size_t>(card_.bands) +
                                          static_cast<std::size_t>(card_.kept[at]);
                std::memcpy(&value, &line[place * sizeof(value)], sizeof(value));
                const auto number_read = static_cast<float>(value);
                float scaled = (number_read - static_cast<float>(card_.offset[at])) /
                               static_cast<float>(card_.scale[at]);
                if (!std::isfinite(scaled) ||
                    (card_.nodata && number_read == static_cast<float>(*card_.nodata)))
                    scaled = 0;
                if (card_.reach)
                    scaled = std::clamp(scaled, -static_cast<float>(*card_.reach),
                                        static_cast<float>(*card_.reach));
                for (std::size_t one = 0; one < 3; ++one)
                    sums[one] += filter.directions[one * kept + at] * static_cast<double>(scaled);
            }
            for (std::size_t one = 0; one < 3; ++one)
                found[one * samples + sample] = sums[one] - filter.offset[one];
        }
    });
    return found;
}

}  // namespace onboard
