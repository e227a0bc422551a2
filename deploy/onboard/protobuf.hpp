#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hytas::onboard {

// A field of a protobuf message: a number, or the bytes of what is longer.
struct Field {
    std::uint64_t number = 0, value = 0;
    bool is_number = false;
    std::string_view bytes;
    std::size_t first = 0, behind = 0;  // where it lies in its message
};

// The fields of a message, one after another; throws Error for what is none.
class Fields {
  public:
    // `left` counts the fields of the whole file down.
    Fields(std::string_view message, std::uint64_t& left) : message_(message), left_(left) {}

    std::optional<Field> next();
    std::uint64_t varint();
    std::string_view take(std::uint64_t size);  // the next bytes
    [[nodiscard]] bool done() const { return at_ >= message_.size(); }

  private:
    std::string_view message_;
    std::uint64_t& left_;
    std::size_t at_ = 0;
};

}  // namespace hytas::onboard
