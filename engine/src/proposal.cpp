// The part of Evolution that proposes: new architectures, distinct from all before.
#include <algorithm>
#include <limits>

#include "hytas/error.hpp"
#include "hytas/evolution.hpp"
#include "strategy.hpp"

namespace hytas {

namespace {

// Attempts at a new child by crossover, at one by any variation, before it is drawn: a population
// that has converged has few children that are new, and fresh ones serve it better.
constexpr int most_crossings = 4;
constexpr int most_variations = 6;
// Attempts at a new draw before the remaining architectures are listed one by one.
constexpr int most_attempts = 64;
// Proposals that are under way together, so that the look-up of one waits for memory while others
// are varied.
constexpr std::size_t most_lanes = 16;

// For `size` elements in all, at once, and still seldom when generations are small beside what is
// known.
template <class Element>
void make_room(std::vector<Element>& elements, std::size_t size) {
    if (size > elements.capacity()) elements.reserve(std::max(size, 2 * elements.capacity()));
}

}  // namespace

struct Evolution::Lane {
    std::size_t place = 0;  // in the generation, in the order of starting
    int attempt = 0;
    bool fits = false;
    std::uint64_t hash = 0;
};

void Evolution::append(const Gene8* genome, std::uint64_t hash) {
    genomes_.insert(genomes_.end(), genome, genome + length_);
    set_.insert(hash, known());
    told_.push_back(0);
}

void Evolution::plan_generation() {
    const auto most =
        static_cast<std::size_t>(std::min<Wide>(known() + size_, feasible_->at_most()));
    set_.reserve(most, genomes_.data(), known());
    make_room(genomes_, most * length_);
    make_room(told_, most);
    if (strategy_->vary != nullptr && !population_.empty()) vary_generation();
    Genome genome(length_);
    while (known() < first_ + size_ && !all_known() && draw_new(genome.data()))
        append(genome.data(), set_.hash(genome.data()));
    size_ = known() - first_;
    scores_.resize(known() * objectives_, std::numeric_limits<double>::quiet_NaN());
}

void Evolution::gather_pool() {
    pool_.clear();
    const std::size_t parents =
        strategy_->elite ? std::min(settings_.parents, population_.size()) : population_.size();
    for (std::size_t member = 0; member < parents; ++member) {
        const GenomeView parent = genome(population_[member]);
        pool_.insert(pool_.end(), parent.begin(), parent.end());
    }
}

// Children of the population, in the order in which they turn out to be new; what they leave open
// is drawn.
void Evolution::vary_generation() {
    gather_pool();
    Genome children(most_lanes * length_);
    std::vector<Lane> lanes;
    lanes.reserve(most_lanes);
    std::size_t started = 0;
    while (endgame_ == 0 && !all_known()) {
        while (lanes.size() < most_lanes && started < size_) lanes.push_back({started++});
        if (lanes.empty()) return;
        for (std::size_t i = 0; i < lanes.size(); ++i)
            propose(lanes[i], children.data() + i * length_);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < lanes.size(); ++i) {
            Gene8* child = children.data() + i * length_;
            if (lanes[i].fits &&
                set_.find(lanes[i].hash, child, genomes_.data()) == GenomeSet::none) {
                append(child, lanes[i].hash);
            } else if (++lanes[i].attempt < most_variations) {
                lanes[kept++] = lanes[i];
            } else if (draw_new(child)) {
                append(child, set_.hash(child));
            }
        }
        lanes.resize(kept);
    }
}

// One attempt at a child inside the budget.
void Evolution::propose(Lane& lane, Gene8* child) {
    lane.fits = false;
    // The first part of a generation comes from mutation, the rest from crossover, as in
    // AutoFormer. Parents that have become alike have no new child by crossover: then mutation
    // finds one.
    const bool mutating =
        lane.attempt >= most_crossings ||
        static_cast<double>(lane.place) < settings_.mutation_share * static_cast<double>(size_);
    for (std::size_t retry = 0; retry <= settings_.retries && !lane.fits; ++retry) {
        strategy_->vary(*this, mutating, child);
        lane.fits = feasible_->fits(child);
    }
    if (!lane.fits) {
        repair_(rng_, child);
        // A coarse table may repair to an architecture outside the budget.
        lane.fits = feasible_->exact() || feasible_->fits(child);
    }
    lane.hash = set_.hash(child);
    set_.prefetch(lane.hash);
}

bool Evolution::draw_new(Gene8* child) {
    for (int attempt = 0; attempt < most_attempts && endgame_ == 0; ++attempt) {
        // Choices favour few architectures so much that they may all be taken: the second half
        // draws from all alike.
        const Uniform meaning = attempt < most_attempts / 2 ? uniform_ : Uniform::architectures;
        feasible_->sample(rng_, meaning, {child, length_});
        if (is_new(child)) return true;
    }
    return draw_remaining(child);
}

// Most of the feasible set is known by now: list the rest once, shuffle it, and hand it out.
void Evolution::list_remaining() {
    remaining_.clear();
    next_remaining_ = 0;
    const std::size_t before = endgame_ - 1;
    Genome genome(length_);
    // Only ids below `before` are left out, so a restored evolution lists the same.
    std::vector<Wide> left;
    for (Wide index = 0; index < feasible_->at_most(); ++index) {
        feasible_->walk(index, genome);
        if ((feasible_->exact() || feasible_->fits(genome.data())) &&
            set_.find(set_.hash(genome.data()), genome.data(), genomes_.data()) >= before)
            left.push_back(index);
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
        if (feasible_->at_most() > most_listed)
            throw Error("ask: no new architecture found among " + to_text(feasible_->at_most()));
        endgame_ = known() + 1;
        list_remaining();
    }
    while (next_remaining_ < remaining_.size()) {
        const auto from = remaining_.begin() + static_cast<std::ptrdiff_t>(next_remaining_);
        next_remaining_ += length_;
        std::copy(from, from + static_cast<std::ptrdiff_t>(length_), child);
        if (is_new(child)) return true;
    }
    return false;
}

}  // namespace hytas
