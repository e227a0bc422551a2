// The part of Evolution that proposes: a new architecture, distinct from all before.
#include <algorithm>
#include <limits>

#include "hytas/error.hpp"
#include "hytas/evolution.hpp"

namespace hytas {

namespace {

// Attempts at a new offspring, and at a new draw, before the remaining architectures are listed one by one.
constexpr int most_attempts = 64;
constexpr int most_crossings = 4;
// Listing needs one genome of memory for each; a set this large is never close to exhausted.
constexpr std::size_t most_listed = std::size_t{1} << 24;

}  // namespace

// The id of a genome, or one that was never given.
std::size_t Evolution::id_of(GenomeView genome) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash_genome(genome) & mask; slots_[at] != 0; at = (at + 1) & mask)
        if (std::equal(genome.begin(), genome.end(), genomes_.begin() + static_cast<std::ptrdiff_t>((slots_[at] - 1) * length_))) return slots_[at] - 1;
    return std::numeric_limits<std::size_t>::max();
}

void Evolution::remember(std::size_t id) {
    if (2 * (id + 1) > slots_.size()) {
        rehash();
        return;
    }
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash_genome(genome(id)) & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<std::uint32_t>(id + 1);
}

void Evolution::rehash() {
    std::size_t size = 1024;
    while (size < 4 * asked()) size *= 2;
    slots_.assign(size, 0);
    for (std::size_t id = 0; id < asked(); ++id) {
        std::size_t at = hash_genome(genome(id)) & (size - 1);
        while (slots_[at] != 0) at = (at + 1) & (size - 1);
        slots_[at] = static_cast<std::uint32_t>(id + 1);
    }
}

// Every id is found under its own genome: false when two ids hold the same.
bool Evolution::distinct() const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t id = 0; id < asked(); ++id) {
        const GenomeView own = genome(id);
        for (std::size_t at = hash_genome(own) & mask; slots_[at] != id + 1; at = (at + 1) & mask)
            if (std::equal(own.begin(), own.end(), genome(slots_[at] - 1).begin())) return false;
    }
    return true;
}

bool Evolution::propose(Gene8* child) {
    const SearchSpace& space = feasible_->space();
    const bool draws = strategy_ == Strategy::random || population_.empty();
    for (int attempt = 0; attempt < most_attempts && !draws && endgame_ == 0; ++attempt) {
        for (std::size_t retry = 0;; ++retry) {
            vary(child, attempt);
            if (space.allowed(space.combination_of(child)) && feasible_->fits(child)) break;
            if (retry < settings_.retries) continue;
            repair_(rng_, child);
            break;
        }
        // A coarse table may repair to an architecture outside the budget.
        if (!feasible_->exact() && !feasible_->fits(child)) continue;
        if (is_new({child, length_})) return true;
    }
    return draw_new(child);
}

// The best of `size` members of the population, drawn with replacement.
std::size_t Evolution::tournament(std::size_t size) {
    std::size_t best = rng_.below(population_.size());
    const auto wins = [this](std::size_t left, std::size_t right) {
        if (strategy_ != Strategy::nsga2) return better(population_[left], population_[right]);
        if (rank_[left] != rank_[right]) return rank_[left] < rank_[right];
        return crowding_[left] > crowding_[right];
    };
    for (std::size_t i = 1; i < size; ++i) {
        const std::size_t other = rng_.below(population_.size());
        if (wins(other, best)) best = other;
    }
    return population_[best];
}

void Evolution::vary(Gene8* child, int attempt) {
    const SearchSpace& space = feasible_->space();
    if (strategy_ == Strategy::local) {
        step(space, genome(population_[0]).data(), rng_, child);
        return;
    }
    if (strategy_ == Strategy::ageing) {
        mutate(space, rates_, genome(tournament(settings_.parents)).data(), rng_, child);
        return;
    }
    const bool fronts = strategy_ == Strategy::nsga2;
    const std::size_t parents = std::min(settings_.parents, population_.size());
    const auto parent = [&] { return fronts ? tournament(2) : population_[rng_.below(parents)]; };
    // The first part of a generation comes from mutation, the rest from crossover, as in AutoFormer. Parents that have
    // become alike have no new child by crossover: then mutation finds one.
    const std::size_t done = asked() - first_;
    const std::size_t left = parent();
    if (attempt >= most_crossings || static_cast<double>(done) < settings_.mutation_share * static_cast<double>(size_)) {
        mutate(space, rates_, genome(left).data(), rng_, child);
        return;
    }
    const std::size_t right = parent();
    crossover(space, genome(left).data(), genome(right).data(), rng_, child);
}

bool Evolution::draw_new(Gene8* child) {
    for (int attempt = 0; attempt < most_attempts && endgame_ == 0; ++attempt) {
        // Choices favour few architectures so much that they may all be taken: the second half draws from all alike.
        const Uniform meaning = attempt < most_attempts / 2 ? uniform_ : Uniform::architectures;
        feasible_->sample(rng_, meaning, {child, length_});
        if (is_new({child, length_})) return true;
    }
    return draw_remaining(child);
}

// Most of the feasible set is known by now: list the rest once, shuffle it, and hand it out.
void Evolution::list_remaining() {
    remaining_.clear();
    next_remaining_ = 0;
    const std::size_t known = endgame_ - 1;
    Genome genome(length_);
    // Only ids below `known` are left out, so a restored evolution lists the same.
    std::vector<Wide> left;
    for (Wide index = 0; index < feasible_->at_most(); ++index) {
        feasible_->walk(index, genome);
        if ((feasible_->exact() || feasible_->fits(genome.data())) && id_of(genome) >= known) left.push_back(index);
    }
    Rng shuffle(settings_.seed ^ 0x72656d61696e6465ULL);
    for (std::size_t i = left.size(); i > 1; --i) std::swap(left[i - 1], left[shuffle.below(i)]);
    for (const Wide index : left) {
        feasible_->walk(index, genome);
        remaining_.insert(remaining_.end(), genome.begin(), genome.end());
    }
}

bool Evolution::draw_remaining(Gene8* child) {
    if (endgame_ == 0) {
        if (feasible_->at_most() > most_listed) throw Error("ask: no new architecture found among " + to_text(feasible_->at_most()));
        endgame_ = asked() + 1;
        list_remaining();
    }
    while (next_remaining_ < remaining_.size()) {
        const auto from = remaining_.begin() + static_cast<std::ptrdiff_t>(next_remaining_);
        next_remaining_ += length_;
        std::copy(from, from + static_cast<std::ptrdiff_t>(length_), child);
        if (is_new({child, length_})) return true;
    }
    return false;
}

}  // namespace hytas
