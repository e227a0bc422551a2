// A genome in 64-bit words, so that variation, comparison and hashing take few steps. The last word
// ends with the genome and may overlap the one before: no genome needs padding behind it.
#pragma once

#include <algorithm>
#include <cstring>

#include "hytas/architecture.hpp"

namespace hytas {

class GenomeWords {
  public:
    explicit GenomeWords(std::size_t length) : length_(length) {}

    [[nodiscard]] std::size_t count() const { return (length_ + 7) / 8; }
    [[nodiscard]] std::size_t offset(std::size_t word) const {
        return length_ < 8 ? 0 : std::min(8 * word, length_ - 8);
    }

    // The byte order of the machine shows in a word, so a word may be combined with others, but not
    // written to a file.
    std::uint64_t load(const Gene8* genome, std::size_t word) const {
        std::uint64_t value = 0;
        if (length_ >= 8)
            std::memcpy(&value, genome + offset(word), 8);
        else
            std::memcpy(&value, genome, length_);
        return value;
    }
    void store(Gene8* genome, std::size_t word, std::uint64_t value) const {
        if (length_ >= 8)
            std::memcpy(genome + offset(word), &value, 8);
        else
            std::memcpy(genome, &value, length_);
    }

    bool equal(const Gene8* left, const Gene8* right) const {
        for (std::size_t word = 0; word < count(); ++word)
            if (load(left, word) != load(right, word)) return false;
        return true;
    }
    void copy(const Gene8* from, Gene8* to) const {
        for (std::size_t word = 0; word < count(); ++word) store(to, word, load(from, word));
    }
    // Only equality of hashes means something, and only on this machine.
    std::uint64_t hash(const Gene8* genome) const {
        std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
        for (std::size_t word = 0; word < count(); ++word) {
            hash = (hash ^ load(genome, word)) * 0xff51afd7ed558ccdULL;
            hash ^= hash >> 32;
        }
        return hash;
    }

  private:
    std::size_t length_;
};

// Which bytes of a genome hold genes, by the depths that it has.
struct GenomeMasks {
    std::size_t words = 0;                    // of a genome
    std::size_t blocks = 0;                   // of 64 bytes
    std::vector<std::uint32_t> radix;         // [byte]: number of values
    std::vector<std::uint64_t> all_bits;      // [block]: bit i for byte 64 * block + i
    std::vector<std::uint64_t> open_bits;     // [block]: bytes with more than one value
    std::vector<std::uint64_t> global_bits;   // [block]
    std::vector<std::uint64_t> global_words;  // [word]: 0xff for each such byte
    std::vector<std::size_t> first;           // [group]: rows of the groups before
    // [(first + depth value) * blocks + block]: layers that exist.
    std::vector<std::uint64_t> layer_bits;
    std::vector<std::uint64_t> layer_words;  // [(first + depth value) * words + word]

    [[nodiscard]] const std::uint64_t* bits(std::size_t group, std::size_t depth_value) const {
        return layer_bits.data() + (first[group] + depth_value) * blocks;
    }
    [[nodiscard]] const std::uint64_t* bytes(std::size_t group, std::size_t depth_value) const {
        return layer_words.data() + (first[group] + depth_value) * words;
    }
};

}  // namespace hytas
