#include "hytas/evolution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hytas/error.hpp"
#include "pareto.hpp"
#include "strategy.hpp"
#include "text.hpp"

namespace hytas {

namespace {
constexpr std::size_t most_population = std::size_t{1} << 24;

std::string takers_of_several() {
    std::vector<std::string> names;
    for (const StrategyFacts& one : strategies())
        if (one.several_scores) names.push_back(one.name);
    return join(names);
}
}  // namespace

Evolution::Evolution(std::shared_ptr<const Feasible> feasible, EvolutionSettings settings)
    : feasible_(std::move(feasible)),
      settings_(std::move(settings)),
      strategy_(&strategy_named(settings_.strategy)),
      length_(feasible_->space().genome_length()),
      rng_(settings_.seed),
      repair_(*feasible_),
      set_(length_) {
    check_settings();
    if (settings_.offspring == 0)
        settings_.offspring =
            std::max<std::size_t>(1, settings_.population / strategy_->offspring_part);
    rates_ = MutationRates::preset(feasible_->space(), settings_.mutation, settings_.rates);
    uniform_ = uniform_named(settings_.uniform);
    if (!feasible_->can_weigh()) uniform_ = Uniform::architectures;
    size_ = settings_.population;
}

void Evolution::check_settings() const {
    const auto size = [](const char* name, std::size_t value, std::size_t least) {
        if (value < least || value > most_population)
            throw Error(std::string(name) + " " + std::to_string(value) + ": must be " +
                        std::to_string(least) + " to " + with_commas(most_population));
    };
    size("population", settings_.population, 1);
    size("offspring", settings_.offspring, 0);
    size("parents", settings_.parents, 1);
    size("retries", settings_.retries, 0);
    if (!(settings_.mutation_share >= 0.0 && settings_.mutation_share <= 1.0))
        throw Error("mutation_share " + std::to_string(settings_.mutation_share) +
                    ": must be 0 to 1");
}

std::size_t Evolution::ask(std::size_t most, std::vector<Gene8>& genomes) {
    const std::size_t waiting = asked_ - evaluated_;
    if (asked_ == first_ + size_ && waiting == 0 && size_ > 0) finish_generation();
    if (known() == first_ && size_ > 0) plan_generation();
    const std::size_t first = asked_;
    if (first == known() && (size_ == 0 || exhausted())) return first;
    if (first == known())
        throw Error("ask: this generation is complete, but " + std::to_string(waiting) +
                    " of its architectures have no score yet; tell them first");
    const std::size_t left = known() - first;
    asked_ += most == 0 ? left : std::min(left, most);
    const auto row = [this](std::size_t id) {
        return genomes_.begin() + static_cast<std::ptrdiff_t>(id * length_);
    };
    genomes.insert(genomes.end(), row(first), row(asked_));
    return first;
}

void Evolution::finish_generation() {
    strategy_->select(*this);
    ++generation_;
    first_ = asked();
    size_ = settings_.offspring;
}

void Evolution::tell(const std::vector<std::size_t>& ids, const double* scores,
                     std::size_t objectives) {
    if (ids.empty()) return;
    check_scores("tell", ids, objectives, false);
    objectives_ = objectives;
    scores_.resize(known() * objectives_, std::numeric_limits<double>::quiet_NaN());
    set_scores(ids, scores);
    for (const std::size_t id : ids) told_[id] = 1;
    evaluated_ += ids.size();
}

void Evolution::rescore(const std::vector<std::size_t>& ids, const double* scores,
                        std::size_t objectives) {
    if (ids.empty()) return;
    check_scores("rescore", ids, objectives, true);
    set_scores(ids, scores);
}

void Evolution::check_scores(const char* verb, const std::vector<std::size_t>& ids,
                             std::size_t objectives, bool again) const {
    if (objectives == 0 || (objectives_ != 0 && objectives != objectives_))
        throw Error("scores: " + std::to_string(objectives) + " a row; must be " +
                    (objectives_ == 0 ? "at least 1" : std::to_string(objectives_) + " as before"));
    if (objectives > 1 && !strategy_->several_scores)
        throw Error("scores: " + std::to_string(objectives) + " a row; strategy " +
                    settings_.strategy + " takes one, " + takers_of_several() + " several");
    std::vector<std::size_t> sorted = ids;
    std::sort(sorted.begin(), sorted.end());
    const auto refuse = [verb](std::size_t id, const char* why) {
        throw Error(std::string(verb) + ": id " + std::to_string(id) + why);
    };
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) refuse(*twice, " is there twice");
    for (const std::size_t id : sorted) {
        if (id >= asked()) refuse(id, " was never asked for");
        if (told(id) && !again) refuse(id, " was told before");
        if (!told(id) && again) refuse(id, " was not told yet");
    }
}

void Evolution::set_scores(const std::vector<std::size_t>& ids, const double* scores) {
    for (std::size_t i = 0; i < ids.size(); ++i)
        std::copy(scores + i * objectives_, scores + (i + 1) * objectives_,
                  scores_.begin() + static_cast<std::ptrdiff_t>(ids[i] * objectives_));
}

std::vector<std::size_t> Evolution::pending() const {
    std::vector<std::size_t> ids;
    for (std::size_t id = first_; id < asked(); ++id)
        if (!told(id)) ids.push_back(id);
    return ids;
}

// NaN last, equal scores by age: the order is total, so no sort of any library can change a run.
bool Evolution::better(std::size_t left, std::size_t right) const {
    const double a = scores(left)[0];
    const double b = scores(right)[0];
    if (std::isnan(a) != std::isnan(b)) return std::isnan(b);
    if (!std::isnan(a) && a != b) return a > b;
    return left < right;
}

std::size_t Evolution::best() const {
    if (evaluated_ == 0) throw Error("best: no score has been told yet");
    std::size_t best = asked();
    for (std::size_t id = 0; id < asked(); ++id)
        if (told(id) && (best == asked() || better(id, best))) best = id;
    return best;
}

std::vector<std::size_t> Evolution::front() const {
    std::vector<std::size_t> ids;
    std::vector<double> rows;
    for (std::size_t id = 0; id < asked(); ++id) {
        if (!told(id)) continue;
        ids.push_back(id);
        rows.insert(rows.end(), scores(id), scores(id) + objectives_);
    }
    std::vector<std::size_t> front;
    for (const std::size_t row : first_front({rows.data(), ids.size(), objectives_}))
        front.push_back(ids[row]);
    return front;
}

}  // namespace hytas
