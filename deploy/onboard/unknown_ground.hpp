#pragma once
// Ground that is of no class of the model, as in hytas/deploy/unknown.py.

#include <cstddef>
#include <string>
#include <vector>

namespace onboard {

class UnknownGround {
  public:
    // Reads the metadata `json` of a model of so many classes.
    UnknownGround(const std::string& json, std::size_t classes);

    // The score that a share of held-out pixels exceeds. Throws Error if no threshold is known.
    [[nodiscard]] double threshold(double share) const;

    // The score of a pixel by the probabilities of all classes; high is unknown.
    [[nodiscard]] double score(const float* probabilities) const;

  private:
    std::size_t classes_;
    std::vector<double> transform_, centres_, thresholds_;
};

}  // namespace onboard
