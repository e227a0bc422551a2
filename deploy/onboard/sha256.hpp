#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onboard {

// SHA-256 (FIPS 180-4), written after the public-domain code of Brad Conte's crypto-algorithms.
class Sha256 {
  public:
    void add(std::string_view bytes);

    // The digest as 64 hexadecimal digits; nothing can be added afterwards.
    std::string finish();

  private:
    void block(const unsigned char* bytes);

    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> rest_{};
    std::size_t held_ = 0;     // bytes in rest_
    std::uint64_t total_ = 0;  // bytes in all
};

}  // namespace onboard
