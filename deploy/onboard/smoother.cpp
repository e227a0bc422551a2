#include "smoother.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace hytas::onboard {
namespace {

constexpr std::size_t guides = 3,
                      head = 10;  // 1, the guides and their products come before the probabilities

// The linear model of a window, as `local_model` in hytas/deploy/smoothing.py has it (He et al.,
// 2013, Eq. 14 and 15).
class LocalModel {
  public:
    // `mean` gives the mean of a kind of value in the window.
    template <typename Mean>
    LocalModel(const Mean& mean, double eps) : g_{mean(1), mean(2), mean(3)} {
        v00_ = mean(4) - g_[0] * g_[0] + eps, v01_ = mean(5) - g_[0] * g_[1],
        v02_ = mean(6) - g_[0] * g_[2];
        const double v11 = mean(7) - g_[1] * g_[1] + eps, v12 = mean(8) - g_[1] * g_[2],
                     v22 = mean(9) - g_[2] * g_[2] + eps;
        m1_ = v01_ / v00_, m2_ = v02_ / v00_;
        u11_ = v11 - m1_ * v01_, u12_ = v12 - m1_ * v02_;
        m3_ = u12_ / u11_;
        u22_ = v22 - m2_ * v02_ - m3_ * u12_;
    }

    // Slopes and offset for probabilities of mean p, whose products with the guides have the means
    // `mixed`.
    [[nodiscard]] std::array<double, guides + 1> of(double p,
                                                    const std::array<double, guides>& mixed) const {
        const double c0 = mixed[0] - g_[0] * p, c1 = mixed[1] - g_[1] * p,
                     c2 = mixed[2] - g_[2] * p;
        const double y1 = c1 - m1_ * c0;
        const double a2 = (c2 - m2_ * c0 - m3_ * y1) / u22_;
        const double a1 = (y1 - u12_ * a2) / u11_;
        const double a0 = (c0 - v01_ * a1 - v02_ * a2) / v00_;
        return {a0, a1, a2, p - a0 * g_[0] - a1 * g_[1] - a2 * g_[2]};
    }

  private:
    std::array<double, guides> g_;
    double v00_, v01_, v02_, m1_, m2_, m3_, u11_, u12_, u22_;
};

}  // namespace

Smoother::Smoother(const Guide& guide, std::size_t samples, std::size_t classes)
    : radius_(guide.radius),
      lines_(std::numeric_limits<std::int64_t>::max()),
      width_(samples),
      classes_(classes),
      eps_(guide.eps),
      power_(1 / guide.temperature) {
    const auto rows = static_cast<std::size_t>(2 * radius_ + 1);
    const std::size_t products = (head + (guides + 1) * classes_) * width_,
                      models = (1 + (guides + 1) * classes_) * width_, kept = guides * width_;
    block_.resize(rows * (products + models + kept) + 2 * products + classes_);
    products_ = {block_.data(), products};
    models_ = {products_.rows + rows * products, models};
    guides_ = {models_.rows + rows * models, kept};
    values_ = guides_.rows + rows * kept;
    sums_ = values_ + products;
    chances_ = sums_ + products;
    valid_.resize(rows * width_);
}

std::size_t Smoother::memory() const { return block_.size() * sizeof(double) + valid_.size(); }

std::int64_t Smoother::begin(std::int64_t number) {
    fitted_ = std::max<std::int64_t>(0, number - radius_);
    pushed_ = std::max<std::int64_t>(0, fitted_ - radius_);
    return pushed_;
}

void Smoother::push(const std::vector<float>& probabilities, const std::vector<double>& guide,
                    const std::vector<unsigned char>& valid_pixels) {
    double* kept = row(guides_, pushed_);
    std::fill_n(values_, products_.size, 0.0);
    std::fill_n(kept, guides_.size, 0.0);
    std::copy_n(valid_pixels.begin(), width_, valid(pushed_));
    const auto at = [&](std::size_t kind, std::size_t sample) -> double& {
        return values_[kind * width_ + sample];
    };
    for (std::size_t sample = 0; sample < width_; ++sample) {
        if (valid_pixels[sample] == 0) continue;
        at(0, sample) = 1;
        std::size_t pair = 1 + guides;
        for (std::size_t one = 0; one < guides; ++one) {
            at(1 + one, sample) = kept[one * width_ + sample] = guide[one * width_ + sample];
            for (std::size_t other = one; other < guides; ++other)
                at(pair++, sample) = guide[one * width_ + sample] * guide[other * width_ + sample];
        }
        for (std::size_t kind = 0; kind < classes_; ++kind) {
            const double p = probabilities[sample * classes_ + kind];
            at(head + kind, sample) = p;
            for (std::size_t one = 0; one < guides; ++one)
                at(head + (one + 1) * classes_ + kind, sample) = p * guide[one * width_ + sample];
        }
    }
    box(values_, products_.size, row(products_, pushed_));
    ++pushed_;
    if (pushed_ - 1 - radius_ == fitted_) fit(fitted_);
}

void Smoother::fit(std::int64_t number) {
    window(products_, number, pushed_ - 1);
    const unsigned char* known = valid(number);
    std::fill_n(values_, models_.size, 0.0);
    for (std::size_t sample = 0; sample < width_; ++sample) {
        if (known[sample] == 0) continue;
        values_[sample] = 1;
        const auto mean = [&](std::size_t kind) {
            return sums_[kind * width_ + sample] / sums_[sample];
        };
        const LocalModel model(mean, eps_);
        for (std::size_t kind = 0; kind < classes_; ++kind) {
            const std::size_t first = head + kind;
            const auto found = model.of(
                mean(first),
                {mean(first + classes_), mean(first + 2 * classes_), mean(first + 3 * classes_)});
            for (std::size_t term = 0; term <= guides; ++term)
                values_[(1 + term * classes_ + kind) * width_ + sample] = found[term];
        }
    }
    box(values_, models_.size, row(models_, number));
    fitted_ = number + 1;
}

void Smoother::line(std::int64_t number, std::vector<float>& probabilities) {
    while (fitted_ <= std::min(number + radius_, lines_ - 1)) fit(fitted_);
    window(models_, number, fitted_ - 1);
    const double* guide = row(guides_, number);
    const unsigned char* known = valid(number);
    std::fill(probabilities.begin(), probabilities.end(), 0.0F);
    for (std::size_t sample = 0; sample < width_; ++sample) {
        if (known[sample] == 0) continue;
        double total = 0;
        for (std::size_t kind = 0; kind < classes_; ++kind) {
            const auto mean = [&](std::size_t term) {
                return sums_[(1 + term * classes_ + kind) * width_ + sample] / sums_[sample];
            };
            double value = mean(guides);
            for (std::size_t one = 0; one < guides; ++one)
                value += mean(one) * guide[one * width_ + sample];
            total += chances_[kind] = std::max(value, 0.0);  // a linear function may leave 0..1
        }
        if (power_ != 1) {
            double sharpened = 0;
            for (std::size_t kind = 0; kind < classes_; ++kind)
                sharpened += chances_[kind] = std::pow(chances_[kind] / total, power_);
            total = sharpened;
        }
        for (std::size_t kind = 0; kind < classes_; ++kind)
            probabilities[sample * classes_ + kind] = static_cast<float>(chances_[kind] / total);
    }
}

// Sums over the window along the line, which ends at the line's ends.
void Smoother::box(const double* values, std::size_t size, double* total) const {
    std::copy_n(values, size, total);
    const std::size_t reach = std::min(static_cast<std::size_t>(radius_), width_ - 1);
    for (std::size_t first = 0; first < size; first += width_)
        for (std::size_t shift = 1; shift <= reach; ++shift) {
            for (std::size_t at = shift; at < width_; ++at)
                total[first + at] += values[first + at - shift];
            for (std::size_t at = shift; at < width_; ++at)
                total[first + at - shift] += values[first + at];
        }
}

// Into sums_: a ring's lines at most `radius_` away, of which `last` is the last one there.
void Smoother::window(const Ring& ring, std::int64_t number, std::int64_t last) {
    std::int64_t line = std::max<std::int64_t>(0, number - radius_);
    std::copy_n(row(ring, line), ring.size, sums_);
    for (++line; line <= std::min(number + radius_, last); ++line) {
        const double* more = row(ring, line);
        for (std::size_t at = 0; at < ring.size; ++at) sums_[at] += more[at];
    }
}

}  // namespace hytas::onboard
