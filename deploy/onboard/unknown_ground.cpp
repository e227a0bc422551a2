#include "unknown_ground.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "error.hpp"
#include "metadata.hpp"

namespace onboard {
namespace {

// Shares of held-out pixels whose thresholds a model knows; linear between them.
constexpr std::array shares{0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05,
                            0.07,  0.1,   0.15,  0.2,  0.3,  0.5};
constexpr double least_probability = 1e-30;

std::vector<double> numbers(const std::string& json, const std::string& name, std::size_t count) {
    const std::string key = "unknown";
    std::vector<double> found = parse_numbers(parse_member(json, name, key), key);
    const bool finite = std::all_of(found.begin(), found.end(), [](double value) {
        return std::abs(value) <= std::numeric_limits<float>::max();
    });
    if (found.size() != count || !finite)
        throw Error("model: its metadata are broken: unknown: " + name + " must be " +
                    std::to_string(count) + " finite numbers");
    for (double& value : found) value = static_cast<double>(static_cast<float>(value));
    return found;
}

}  // namespace

UnknownGround::UnknownGround(const std::string& json, std::size_t classes)
    : classes_(classes),
      transform_(numbers(json, "transform", classes * classes)),
      centres_(numbers(json, "centres", classes * classes)),
      thresholds_(numbers(json, "thresholds", shares.size())) {}

double UnknownGround::threshold(double share) const {
    if (!(share >= shares.front() && share <= shares.back()))
        throw Error("--unknown: must be 0.001 to 0.5");
    const auto above = static_cast<std::size_t>(
        std::upper_bound(shares.begin() + 1, shares.end() - 1, share) - shares.begin());
    const double slope =
        (thresholds_[above] - thresholds_[above - 1]) / (shares[above] - shares[above - 1]);
    return slope * (share - shares[above - 1]) + thresholds_[above - 1];
}

double UnknownGround::score(const float* probabilities) const {
    std::vector<double> values(classes_), whitened(classes_, 0.0);
    double sum = 0;
    for (std::size_t at = 0; at < classes_; ++at) {
        values[at] = std::log(std::max(static_cast<double>(probabilities[at]), least_probability));
        sum += values[at];
    }
    for (double& value : values) value -= sum / static_cast<double>(classes_);
    for (std::size_t row = 0; row < classes_; ++row)
        for (std::size_t at = 0; at < classes_; ++at)
            whitened[row] += transform_[row * classes_ + at] * values[at];
    double nearest = std::numeric_limits<double>::infinity();
    for (std::size_t centre = 0; centre < classes_; ++centre) {
        double distance = 0;
        for (std::size_t at = 0; at < classes_; ++at) {
            const double gap = whitened[at] - centres_[centre * classes_ + at];
            distance += gap * gap;
        }
        nearest = std::min(nearest, distance);
    }
    return nearest;
}

}  // namespace onboard
