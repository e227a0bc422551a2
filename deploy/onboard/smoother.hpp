#pragma once
// Class probabilities through the guided filter of hytas/deploy/smoothing.py, a line at a time.

#include <cstdint>
#include <vector>

namespace onboard {

// What a card says of the filter.
struct Guide {
    std::int64_t radius = 0;
    double eps = 0;
    double temperature = 1;
    std::vector<double> directions, offset;  // (3, kept bands) and (3)
};

class Smoother {
  public:
    Smoother(const Guide& guide, std::int64_t lines, std::int64_t samples, std::int64_t classes);

    // Begin with line `number` instead of the first one; returns the line to push first.
    std::int64_t begin(std::int64_t number);

    // Lines that must be pushed, or all there are, before line `number` can be read.
    [[nodiscard]] std::int64_t needed(std::int64_t number) const {
        return number + 2 * radius_ + 1;
    }
    [[nodiscard]] std::int64_t pushed() const { return pushed_; }

    // The next line: probabilities (samples, classes), guide (3, samples), and which pixels hold
    // data.
    void push(const std::vector<float>& probabilities, const std::vector<double>& guide,
              const std::vector<bool>& valid);

    // Smoothed probabilities (samples, classes) of line `number`, 0 where there are no data. Lines
    // must be asked for in order.
    std::vector<float> line(std::int64_t number);

  private:
    using Row = std::vector<double>;  // values of one kind after another, a line each

    void fit(std::int64_t number);
    [[nodiscard]] Row box(const Row& values) const;
    [[nodiscard]] Row window(const std::vector<Row>& ring, std::int64_t number,
                             std::int64_t last) const;
    [[nodiscard]] std::size_t slot(std::int64_t number) const {
        return static_cast<std::size_t>(number % (2 * radius_ + 1));
    }

    std::int64_t radius_, lines_;
    std::size_t width_, classes_;
    double eps_, power_;  // power_: 1 / temperature
    std::int64_t pushed_ = 0, fitted_ = 0;
    std::vector<Row> products_, models_, guides_;  // the last 2 radius + 1 lines
    std::vector<std::vector<bool>> valid_;
};

}  // namespace onboard
