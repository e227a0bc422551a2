#pragma once
// Ground that is of no class of the model, as in hytas/deploy/unknown.py.

#include <cstddef>
#include <hytas/json.hpp>
#include <vector>

namespace hytas::onboard {

class UnknownGround {
  public:
    // Reads the metadata `score` of a model of so many classes.
    UnknownGround(const Json& score, std::size_t classes);

    // The score that a share of held-out pixels exceeds. Throws Error if no threshold is known.
    [[nodiscard]] double threshold(double share) const;

    // The score of a pixel by the probabilities of all classes; high is unknown. `workspace` has
    // two numbers for each class.
    double score(const float* probabilities, std::vector<double>& workspace) const;

  private:
    std::size_t classes_;
    std::vector<double> transform_, centres_, thresholds_;
};

}  // namespace hytas::onboard
