#pragma once
// The few kinds of JSON that a model's card is made of.

#include <cstdint>
#include <string>
#include <vector>

namespace onboard {

std::vector<double> parse_numbers(const std::string& json, const std::string& key);
double parse_number(const std::string& json, const std::string& key);
std::int64_t parse_integer(const std::string& json, const std::string& key);
std::vector<std::int64_t> parse_integers(const std::string& json,
                                         const std::string& key);  // nested lists are flattened
std::string parse_member(const std::string& json, const std::string& name,
                         const std::string& key);  // the text of an object's member
std::vector<std::string> parse_strings(const std::string& json, const std::string& key);

}  // namespace onboard
