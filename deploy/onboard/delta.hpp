#pragma once
// Delta files of `hytas update`: what turns one model file into another, to the byte
// (hytas/deploy/delta.py).

#include <string>
#include <string_view>

namespace onboard {

// The new file that the content of a delta makes of the old one. Throws Error where the delta is
// damaged or for another model; `name` is what messages call it.
std::string apply_delta(std::string_view old_file, std::string_view delta, const std::string& name);

// Apply the delta file to the model file `model`, and write the new model file, completely or not
// at all.
void update_model(const std::string& delta, const std::string& model, const std::string& result);

}  // namespace onboard
