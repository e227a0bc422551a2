#pragma once
// Compare the values of a cube with those of the model's training (hytas/deploy/value_range.py).

#include <optional>
#include <string>

#include "card.hpp"
#include "envi.hpp"

namespace hytas::onboard {

// Why the values of a few lines cannot be those that the model was trained on; empty if they can.
[[nodiscard]] std::string range_doubt(const Card& card, EnviCube& cube);

// Why it is not sure that the cube is of the model's sensor; empty if it is.
[[nodiscard]] std::string wavelength_doubt(const Card& card, const EnviCube& cube);

}  // namespace hytas::onboard
