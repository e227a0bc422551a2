#include "sha256.hpp"

#include <algorithm>
#include <bit>

namespace onboard {
namespace {

constexpr std::array<std::uint32_t, 64> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::block(const unsigned char* bytes) {
    std::array<std::uint32_t, 64> words;
    for (std::size_t at = 0; at < 16; ++at)
        words[at] = std::uint32_t{bytes[4 * at]} << 24 | std::uint32_t{bytes[4 * at + 1]} << 16 |
                    std::uint32_t{bytes[4 * at + 2]} << 8 | bytes[4 * at + 3];
    for (std::size_t at = 16; at < 64; ++at) {
        const std::uint32_t early = words[at - 15], late = words[at - 2];
        words[at] = (std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10) + words[at - 7] +
                    (std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3) + words[at - 16];
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t at = 0; at < 64; ++at) {
        const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                  ((e & f) ^ (~e & g)) + constants[at] + words[at];
        const std::uint32_t two =
            (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    const std::array<std::uint32_t, 8> more{a, b, c, d, e, f, g, h};
    for (std::size_t at = 0; at < 8; ++at) state_[at] += more[at];
}

void Sha256::add(std::string_view bytes) {
    total_ += bytes.size();
    while (!bytes.empty()) {
        if (held_ == 0 && bytes.size() >= rest_.size()) {
            block(reinterpret_cast<const unsigned char*>(bytes.data()));
            bytes.remove_prefix(rest_.size());
            continue;
        }
        const std::size_t taken = std::min(rest_.size() - held_, bytes.size());
        std::copy_n(bytes.begin(), taken, &rest_[held_]);
        bytes.remove_prefix(taken);
        held_ = (held_ + taken) % rest_.size();
        if (held_ == 0) block(rest_.data());
    }
}

std::string Sha256::finish() {
    const std::uint64_t bits = 8 * total_;
    std::string end(1, '\x80');
    end.resize(1 + (119 - held_) % 64, '\0');
    for (int shift = 56; shift >= 0; shift -= 8) end += static_cast<char>(bits >> shift & 0xFF);
    add(end);
    std::string digits;
    for (const std::uint32_t word : state_)
        for (int shift = 28; shift >= 0; shift -= 4)
            digits += "0123456789abcdef"[word >> shift & 0xF];
    return digits;
}

}  // namespace onboard
