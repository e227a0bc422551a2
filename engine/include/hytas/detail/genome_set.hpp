// Which genomes are known, by id: a flat hash table with open addressing. Each entry holds half of
// the hash beside the id, so a genome is only looked at when it is almost surely the same.
#pragma once

#include <limits>

#include "hytas/detail/genome_words.hpp"

namespace hytas {

class GenomeSet {
  public:
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

    explicit GenomeSet(std::size_t length) : words_(length), length_(length) {}

    std::uint64_t hash(const Gene8* genome) const { return words_.hash(genome); }

    // `genomes` holds all genomes that were inserted, one after another in the order of their ids.
    std::size_t find(std::uint64_t hash, const Gene8* genome, const Gene8* genomes) const {
        if (slots_.empty()) return none;
        const auto tag = static_cast<std::uint32_t>(hash >> 32);
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t at = hash & mask; slots_[at].place != 0; at = (at + 1) & mask) {
            const Slot& slot = slots_[at];
            if (slot.tag == tag && words_.equal(genome, genomes + (slot.place - 1) * length_))
                return slot.place - 1;
        }
        return none;
    }
    void insert(std::uint64_t hash, std::size_t id) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = hash & mask;
        while (slots_[at].place != 0) at = (at + 1) & mask;
        slots_[at] = {static_cast<std::uint32_t>(id + 1), static_cast<std::uint32_t>(hash >> 32)};
    }
    // Makes room for `count` genomes, of which the first `held` are given.
    void reserve(std::size_t count, const Gene8* genomes, std::size_t held) {
        if (2 * count <= slots_.size()) return;
        std::size_t size = 1024;
        while (size < 2 * count) size *= 2;
        slots_.assign(size, {0, 0});
        for (std::size_t id = 0; id < held; ++id) insert(hash(genomes + id * length_), id);
    }
    // The entry will be needed soon.
    void prefetch(std::uint64_t hash) const {
        __builtin_prefetch(slots_.data() + (hash & (slots_.size() - 1)));
    }

  private:
    struct Slot {
        std::uint32_t place;  // id + 1; 0: free
        std::uint32_t tag;
    };

    GenomeWords words_;
    std::size_t length_;
    std::vector<Slot> slots_;
};

}  // namespace hytas
