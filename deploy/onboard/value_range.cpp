#include "value_range.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "limits.hpp"
#include "values.hpp"

namespace hytas::onboard {
namespace {

struct Sample {
    ValueRange range;
    bool is_reversed;
};

std::string number(const char* form, double value) {
    char text[64];
    std::snprintf(text, sizeof text, form, value);
    return text;
}

// At most `count` indices from 0 to `size` - 1, evenly spread with both ends, as numpy.linspace has
// them.
std::vector<std::int64_t> spread(std::int64_t size, std::int64_t count) {
    std::vector<std::int64_t> indices;
    const double step =
        count == 1 ? 0 : static_cast<double>(size - 1) / static_cast<double>(count - 1);
    for (std::int64_t at = 0; at < count; ++at)
        indices.push_back(at == count - 1 && count > 1
                              ? size - 1
                              : static_cast<std::int64_t>(static_cast<double>(at) * step));
    indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
    return indices;
}

// The value below which a share of the sorted values lies, between neighbours as numpy has it.
double quantile(const std::vector<double>& sorted, double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// How far bands differ from the training's in spread, without a common gain. `values` has those of
// each band of the sensor, sorted.
double misfit(const Card& card, const std::vector<std::vector<double>>& values, bool backward) {
    std::vector<double> spreads;
    for (std::size_t at = 0; at < card.kept.size(); ++at) {
        const std::int64_t band = backward ? card.bands - 1 - card.kept[at] : card.kept[at];
        const std::vector<double>& sorted = values[static_cast<std::size_t>(band)];
        if (sorted.empty()) continue;
        const double spread = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / card.scale[at];
        spreads.push_back(std::log(std::max(spread, least_spread)));
    }
    if (spreads.empty()) return 0;
    std::vector<double> sorted = spreads;
    std::sort(sorted.begin(), sorted.end());
    const double middle = quantile(sorted, 0.5);
    double sum = 0;
    for (const double spread : spreads) sum += std::abs(spread - middle);
    return sum / static_cast<double>(spreads.size());
}

std::optional<Sample> sample_of(const Card& card, EnviCube& cube) {
    const std::optional<double> nodata = cube.ignore() ? cube.ignore() : card.nodata;
    const std::vector<std::int64_t> rows = spread(cube.lines(), most_rows);
    const std::int64_t columns_a_row = most_pixels / static_cast<std::int64_t>(rows.size());
    const std::vector<std::int64_t> columns =
        spread(cube.samples(), std::min(cube.samples(), columns_a_row));
    std::vector<double> distances;
    std::vector<std::vector<double>> by_band(static_cast<std::size_t>(card.bands));
    std::vector<char> line;
    for (const std::int64_t row : rows) {
        cube.read(row, line);
        with_type(*card.type, [&](auto value) {
            for (const std::int64_t column : columns) {
                std::vector<bool> known(by_band.size());
                for (std::size_t band = 0; band < by_band.size(); ++band) {
                    const std::size_t place =
                        static_cast<std::size_t>(column) * by_band.size() + band;
                    std::memcpy(&value, &line[place * sizeof(value)], sizeof(value));
                    if (!is_finite(value) || (nodata && equals(value, *nodata))) continue;
                    by_band[band].push_back(static_cast<double>(value));
                    known[band] = true;
                }
                double sum = 0;
                std::size_t count = 0;
                for (std::size_t at = 0; at < card.kept.size(); ++at) {
                    const auto band = static_cast<std::size_t>(card.kept[at]);
                    if (!known[band]) continue;
                    sum += std::abs((by_band[band].back() - card.offset[at]) / card.scale[at]);
                    ++count;
                }
                if (count > 0) distances.push_back(sum / static_cast<double>(count));
            }
        });
    }
    if (distances.empty()) return std::nullopt;
    std::vector<double> values;
    for (const std::int64_t band : card.kept)
        values.insert(values.end(), by_band[static_cast<std::size_t>(band)].begin(),
                      by_band[static_cast<std::size_t>(band)].end());
    std::sort(distances.begin(), distances.end());
    std::sort(values.begin(), values.end());
    for (std::vector<double>& band : by_band) std::sort(band.begin(), band.end());
    const double straight = misfit(card, by_band, false);
    return Sample{.range = {.z = quantile(distances, 0.5),
                            .low = quantile(values, 0.01),
                            .high = quantile(values, 0.99)},
                  .is_reversed = card.kept.size() >= least_ordered && straight > least_misfit &&
                                 misfit(card, by_band, true) < most_backward * straight};
}

}  // namespace

std::string range_doubt(const Card& card, EnviCube& cube) {
    if (!card.usual || card.usual->z == 0) return "";
    const ValueRange& usual = *card.usual;
    const std::optional<Sample> sample = sample_of(card, cube);
    if (!sample) return "";
    const ValueRange& found = sample->range;
    if (!sample->is_reversed && nearest * usual.z <= found.z && found.z <= farthest * usual.z)
        return "";
    return "values " + number("%.6g", found.low) + " to " + number("%.6g", found.high) + ", and " +
           number("%.6g", usual.low) + " to " + number("%.6g", usual.high) +
           " in training (first and last percentile); their mean absolute z is " +
           number("%.3g", found.z) + ", and " + number("%.3g", usual.z) + " in training: " +
           (sample->is_reversed ? "the bands vary as those of the training in reverse order"
                                : "another unit, gain or order of the bands");
}

std::string wavelength_doubt(const Card& card, const EnviCube& cube) {
    if (!cube.wavelengths().empty() || card.wavelengths.empty()) return "";
    return "no wavelengths, and the model takes bands of " +
           number("%.1f", card.wavelengths.front()) + " to " +
           number("%.1f", card.wavelengths.back()) + " nm";
}

}  // namespace hytas::onboard
