#pragma once
// Class probabilities through the guided filter of hytas/deploy/smoothing.py, a line at a time.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hytas::onboard {

// What a card says of the filter.
struct Guide {
    std::int64_t radius = 0;
    double eps = 0;
    double temperature = 1;
    std::vector<double> directions, offset;  // (3, kept bands) and (3)
};

class Smoother {
  public:
    Smoother(const Guide& guide, std::size_t samples, std::size_t classes);

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
              const std::vector<unsigned char>& valid);

    // No line follows.
    void end() { lines_ = pushed_; }

    // Write smoothed probabilities (samples, classes) of line `number`, 0 where there are no data.
    // Lines must be asked for in order.
    void line(std::int64_t number, std::vector<float>& probabilities);

    [[nodiscard]] std::size_t memory() const;  // bytes

  private:
    // Some kinds of values, a line each, of the last 2 radius + 1 lines of the scene.
    struct Ring {
        double* rows;
        std::size_t size;  // of a row
    };

    void fit(std::int64_t number);
    void box(const double* values, std::size_t size, double* total) const;
    void window(const Ring& ring, std::int64_t number, std::int64_t last);
    [[nodiscard]] std::size_t slot(std::int64_t number) const {
        return static_cast<std::size_t>(number % (2 * radius_ + 1));
    }
    [[nodiscard]] double* row(const Ring& ring, std::int64_t number) const {
        return ring.rows + slot(number) * ring.size;
    }
    [[nodiscard]] unsigned char* valid(std::int64_t number) {
        return &valid_[slot(number) * width_];
    }

    std::int64_t radius_, lines_;
    std::size_t width_, classes_;
    double eps_, power_;  // power_: 1 / temperature
    std::int64_t pushed_ = 0, fitted_ = 0;
    std::vector<double> block_;  // all that follows lies in it
    Ring products_, models_, guides_;
    double *values_, *sums_, *chances_;  // two rows, and the probabilities of a pixel
    std::vector<unsigned char> valid_;
};

}  // namespace hytas::onboard
