#include "smoother.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace onboard {
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

Smoother::Smoother(const Guide& guide, std::int64_t lines, std::int64_t samples,
                   std::int64_t classes)
    : radius_(guide.radius),
      lines_(lines),
      width_(static_cast<std::size_t>(samples)),
      classes_(static_cast<std::size_t>(classes)),
      eps_(guide.eps),
      power_(1 / guide.temperature),
      products_(static_cast<std::size_t>(2 * radius_ + 1)),
      models_(products_.size()),
      guides_(products_.size()),
      valid_(products_.size()) {}

std::int64_t Smoother::begin(std::int64_t number) {
    fitted_ = std::max<std::int64_t>(0, number - radius_);
    pushed_ = std::max<std::int64_t>(0, fitted_ - radius_);
    return pushed_;
}

void Smoother::push(const std::vector<float>& probabilities, const std::vector<double>& guide,
                    const std::vector<bool>& valid) {
    Row values((head + (guides + 1) * classes_) * width_, 0.0), kept(guides * width_, 0.0);
    const auto at = [&](std::size_t kind, std::size_t sample) -> double& {
        return values[kind * width_ + sample];
    };
    for (std::size_t sample = 0; sample < width_; ++sample) {
        if (!valid[sample]) continue;
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
    const std::size_t place = slot(pushed_);
    products_[place] = box(values), guides_[place] = std::move(kept), valid_[place] = valid;
    ++pushed_;
    if (pushed_ - 1 - radius_ == fitted_) fit(fitted_);
}

void Smoother::fit(std::int64_t number) {
    const Row sums = window(products_, number, pushed_ - 1);
    const std::vector<bool>& valid = valid_[slot(number)];
    Row values((1 + (guides + 1) * classes_) * width_, 0.0);
    for (std::size_t sample = 0; sample < width_; ++sample) {
        if (!valid[sample]) continue;
        values[sample] = 1;
        const auto mean = [&](std::size_t kind) {
            return sums[kind * width_ + sample] / sums[sample];
        };
        const LocalModel model(mean, eps_);
        for (std::size_t kind = 0; kind < classes_; ++kind) {
            const std::size_t first = head + kind;
            const auto found = model.of(
                mean(first),
                {mean(first + classes_), mean(first + 2 * classes_), mean(first + 3 * classes_)});
            for (std::size_t part = 0; part <= guides; ++part)
                values[(1 + part * classes_ + kind) * width_ + sample] = found[part];
        }
    }
    models_[slot(number)] = box(values);
    fitted_ = number + 1;
}

std::vector<float> Smoother::line(std::int64_t number) {
    while (fitted_ <= std::min(number + radius_, lines_ - 1)) fit(fitted_);
    const Row sums = window(models_, number, fitted_ - 1);
    const Row& guide = guides_[slot(number)];
    std::vector<float> found(width_ * classes_, 0.0F);
    std::vector<double> values(classes_);
    for (std::size_t sample = 0; sample < width_; ++sample) {
        if (!valid_[slot(number)][sample]) continue;
        double total = 0;
        for (std::size_t kind = 0; kind < classes_; ++kind) {
            const auto mean = [&](std::size_t part) {
                return sums[(1 + part * classes_ + kind) * width_ + sample] / sums[sample];
            };
            double value = mean(guides);
            for (std::size_t one = 0; one < guides; ++one)
                value += mean(one) * guide[one * width_ + sample];
            total += values[kind] = std::max(value, 0.0);  // a linear function may leave 0..1
        }
        if (power_ != 1) {
            double sharpened = 0;
            for (double& value : values) sharpened += value = std::pow(value / total, power_);
            total = sharpened;
        }
        for (std::size_t kind = 0; kind < classes_; ++kind)
            found[sample * classes_ + kind] = static_cast<float>(values[kind] / total);
    }
    return found;
}

// Sums over the window along the line, which ends at the line's ends.
Smoother::Row Smoother::box(const Row& values) const {
    Row total = values;
    const std::size_t reach = std::min(static_cast<std::size_t>(radius_), width_ - 1);
    for (std::size_t first = 0; first < values.size(); first += width_)
        for (std::size_t shift = 1; shift <= reach; ++shift) {
            for (std::size_t at = shift; at < width_; ++at)
                total[first + at] += values[first + at - shift];
            for (std::size_t at = shift; at < width_; ++at)
                total[first + at - shift] += values[first + at];
        }
    return total;
}

// Sums of a ring's lines at most `radius_` away, of which `last` is the last one there.
Smoother::Row Smoother::window(const std::vector<Row>& ring, std::int64_t number,
                               std::int64_t last) const {
    std::int64_t line = std::max<std::int64_t>(0, number - radius_);
    Row total = ring[slot(line)];
    for (++line; line <= std::min(number + radius_, last); ++line) {
        const Row& more = ring[slot(line)];
        for (std::size_t at = 0; at < total.size(); ++at) total[at] += more[at];
    }
    return total;
}

}  // namespace onboard
