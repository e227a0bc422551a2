// One libFuzzer executable a target; a state is tried as it is and with its checksum put right.
#include <cstddef>
#include <cstdint>

#include "fuzz_targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string input(reinterpret_cast<const char*>(data), size);
    hytas::test::HYTAS_FUZZ_TARGET(input);
    hytas::test::HYTAS_FUZZ_TARGET(hytas::test::with_checksum(input));
    return 0;
}
