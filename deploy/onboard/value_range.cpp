#include "value_range.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "values.hpp"

namespace onboard {
namespace {

// The same bounds and the same sample as in hytas/deploy/value_range.py.
constexpr std::int64_t most_rows = 16, most_pixels = 4096;
constexpr double farthest = 2.25, nearest = 0.3;

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

std::optional<ValueRange> range_of(const Card& card, EnviCube& cube) {
    const std::optional<double> nodata = cube.ignore() ? cube.ignore() : card.nodata;
    const std::vector<std::int64_t> rows = spread(cube.lines(), most_rows);
    const std::int64_t each = most_pixels / static_cast<std::int64_t>(rows.size());
    const std::vector<std::int64_t> columns =
        spread(cube.samples(), std::min(cube.samples(), each));
    std::vector<double> distances, values;
    std::vector<char> line;
    for (const std::int64_t row : rows) {
        cube.read(row, line);
        with_type(*card.type, [&](auto value) {
            for (const std::int64_t column : columns) {
                double sum = 0;
                std::size_t count = 0;
                for (std::size_t at = 0; at < card.kept.size(); ++at) {
                    const std::int64_t place = column * card.bands + card.kept[at];
                    std::memcpy(&value, &line[static_cast<std::size_t>(place) * sizeof(value)],
                                sizeof(value));
                    const auto read = static_cast<double>(value);
                    if (!is_finite(value) || (nodata && equals(value, *nodata))) continue;
                    sum += std::abs((read - card.offset[at]) / card.scale[at]);
                    ++count;
                    values.push_back(read);
                }
                if (count > 0) distances.push_back(sum / static_cast<double>(count));
            }
        });
    }
    if (values.empty()) return std::nullopt;
    std::sort(distances.begin(), distances.end());
    std::sort(values.begin(), values.end());
    return ValueRange{.z = quantile(distances, 0.5),
                      .low = quantile(values, 0.01),
                      .high = quantile(values, 0.99)};
}

}  // namespace

std::string range_doubt(const Card& card, EnviCube& cube) {
    if (!card.usual || card.usual->z == 0) return "";
    const ValueRange& usual = *card.usual;
    const std::optional<ValueRange> found = range_of(card, cube);
    if (!found || (nearest * usual.z <= found->z && found->z <= farthest * usual.z)) return "";
    return "values " + number("%.6g", found->low) + " to " + number("%.6g", found->high) +
           ", and " + number("%.6g", usual.low) + " to " + number("%.6g", usual.high) +
           " in training (first and last percentile); their mean absolute z is " +
           number("%.3g", found->z) + ", and " + number("%.3g", usual.z) +
           " in training: another unit, gain or order of the bands";
}

std::string wavelength_doubt(const Card& card, const EnviCube& cube) {
    if (!cube.wavelengths().empty() || card.wavelengths.empty()) return "";
    return "no wavelengths, and the model takes bands of " +
           number("%.1f", card.wavelengths.front()) + " to " +
           number("%.1f", card.wavelengths.back()) + " nm";
}

}  // namespace onboard
