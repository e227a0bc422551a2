// A portable random generator. The standard's distributions differ between libraries, so the
// bounded draw is our own: the same seed gives the same sequence on every platform.
#pragma once

#include <array>
#include <cstdint>

#include "hytas/wide.hpp"

namespace hytas {

// xoshiro256** 1.0 (Blackman and Vigna, 2018, public domain), seeded by splitmix64.
class Rng {
  public:
    using State = std::array<std::uint64_t, 4>;

    explicit Rng(std::uint64_t seed) {
        for (std::uint64_t& word : words_) {
            seed += 0x9e3779b97f4a7c15ULL;
            std::uint64_t mixed = seed;
            mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
            mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
            word = mixed ^ (mixed >> 31);
        }
    }
    explicit Rng(const State& state) : words_(state) {}

    [[nodiscard]] const State& state() const { return words_; }

    std::uint64_t next() {
        const std::uint64_t result = rotate(words_[1] * 5, 7) * 9;
        const std::uint64_t shifted = words_[1] << 17;
        words_[2] ^= words_[0];
        words_[3] ^= words_[1];
        words_[1] ^= words_[2];
        words_[0] ^= words_[3];
        words_[2] ^= shifted;
        words_[3] = rotate(words_[3], 45);
        return result;
    }

    // Uniform in [0, bound), bound >= 1, without bias (Lemire, "Fast random integer generation in
    // an interval", 2019).
    std::uint64_t below(std::uint64_t bound) {
        Wide product = static_cast<Wide>(next()) * bound;
        if (static_cast<std::uint64_t>(product) < bound) {
            const std::uint64_t threshold = (0 - bound) % bound;
            while (static_cast<std::uint64_t>(product) < threshold)
                product = static_cast<Wide>(next()) * bound;
        }
        return static_cast<std::uint64_t>(product >> 64);
    }

    // The same for 128 bits: rejection on the smallest enclosing power of two, as there is no
    // 256-bit product.
    Wide below_wide(Wide bound) {
        if ((bound >> 64) == 0) return below(static_cast<std::uint64_t>(bound));
        Wide mask = bound - 1;
        for (int shift = 1; shift < 128; shift *= 2) mask |= mask >> shift;
        for (;;) {
            const Wide high = next();
            const Wide draw = ((high << 64) | next()) & mask;
            if (draw < bound) return draw;
        }
    }

    // Several bounded draws from one word multiply it by one bound after another, taking the high
    // halves. The draws must be repeated when what is left of the word lies below 2^64 modulo the
    // product of the bounds (at most 2^62).
    [[nodiscard]] static bool biased(std::uint64_t left, std::uint64_t product) {
        return left < product && left < (0 - product) % product;
    }

    // Uniform in [0, 1), 53 bits.
    double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  private:
    [[nodiscard]] static std::uint64_t rotate(std::uint64_t value, int by) {
        return (value << by) | (value >> (64 - by));
    }

    State words_{};
};

}  // namespace hytas
