#pragma once
// Values of a model's metadata, which are JSON.

#include <cstdint>
#include <hytas/json.hpp>
#include <string>
#include <vector>

#include "ort.hpp"

namespace hytas::onboard {

// Throws Error: the metadata break `rule`.
[[noreturn]] void broken(const std::string& rule);

// The text of an entry without its prefix `hytas.`; throws Error if there is none.
std::string property(const SceneModel& model, const std::string& key);

// The value of an entry; null if there is none.
Json value_of(const SceneModel& model, const std::string& key);

// A value as numbers or texts; throws Error for another kind, which `key` names.
const Json& member(const Json& object, const std::string& name, const std::string& key);
double number(const Json& value, const std::string& key);
std::int64_t integer(const Json& value, const std::string& key);
std::vector<double> numbers(const Json& value, const std::string& key);  // nested lists in a row
std::vector<std::int64_t> integers(const Json& value, const std::string& key);
std::vector<std::string> texts(const Json& value, const std::string& key);  // legible

}  // namespace hytas::onboard
