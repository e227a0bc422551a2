// What the fuzzers call: each reads one input and says whether it was accepted. Anything but an
// Error is a finding.
#pragma once

#include <memory>
#include <string>

#include "hytas/feasible.hpp"

namespace hytas::test {

bool fuzz_budget(const std::string& text);
bool fuzz_space(const std::string& text);
bool fuzz_state(const std::string& bytes);

std::string fuzz_space_text();
std::shared_ptr<const Feasible> fuzz_feasible();
// The bytes with the checksum that belongs to them, so that a fuzzer gets past it.
std::string with_checksum(std::string bytes);

}  // namespace hytas::test
