#include "unknown_ground.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "hytas/onboard.hpp"
#include "limits.hpp"
#include "metadata.hpp"

namespace hytas::onboard {
namespace {

std::vector<double> finite_numbers(const Json& score, const std::string& name, std::size_t count) {
    std::vector<double> values = numbers(member(score, name, "unknown"), "unknown");
    const bool finite = std::all_of(values.begin(), values.end(), [](double value) {
        return std::abs(value) <= std::numeric_limits<float>::max();
    });
    if (values.size() != count || !finite)
        broken("unknown: " + name + " must be " + std::to_string(count) + " finite numbers");
    for (double& value : values) value = static_cast<double>(static_cast<float>(value));
    return values;
}

}  // namespace

UnknownGround::UnknownGround(const Json& score, std::size_t classes)
    : classes_(classes),
      transform_(finite_numbers(score, "transform", classes * classes)),
      centres_(finite_numbers(score, "centres", classes * classes)),
      thresholds_(finite_numbers(score, "thresholds", shares.size())) {}

double UnknownGround::threshold(double share) const {
    if (!(share >= shares.front() && share <= shares.back()))
        throw Error(Status::bad_argument, "--unknown: must be 0.001 to 0.5");
    const auto above = static_cast<std::size_t>(
        std::upper_bound(shares.begin() + 1, shares.end() - 1, share) - shares.begin());
    const double slope =
        (thresholds_[above] - thresholds_[above - 1]) / (shares[above] - shares[above - 1]);
    return slope * (share - shares[above - 1]) + thresholds_[above - 1];
}

double UnknownGround::score(const float* probabilities, std::vector<double>& workspace) const {
    double* values = workspace.data();
    double* whitened = values + classes_;
    double sum = 0;
    for (std::size_t at = 0; at < classes_; ++at) {
        values[at] = std::log(std::max(static_cast<double>(probabilities[at]), least_probability));
        sum += values[at];
    }
    for (std::size_t at = 0; at < classes_; ++at) values[at] -= sum / static_cast<double>(classes_);
    for (std::size_t row = 0; row < classes_; ++row) {
        whitened[row] = 0;
        for (std::size_t at = 0; at < classes_; ++at)
            whitened[row] += transform_[row * classes_ + at] * values[at];
    }
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t centre = 0; centre < classes_; ++centre) {
        double distance = 0;
        for (std::size_t at = 0; at < classes_; ++at) {
            const double gap = whitened[at] - centres_[centre * classes_ + at];
            distance += gap * gap;
        }
        least = std::min(least, distance);
    }
    return least;
}

}  // namespace hytas::onboard
