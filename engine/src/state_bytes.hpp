// Little-endian bytes, the same on every platform.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "hytas/error.hpp"

namespace hytas {

class ByteWriter {
  public:
    void number(std::uint64_t value) {
        for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
    }
    void real(double value) { number(std::bit_cast<std::uint64_t>(value)); }
    void text(std::string_view text) {
        number(text.size());
        bytes_ += text;
    }
    std::string take() { return std::move(bytes_); }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

// Every read checks what is left, so no content can make it read beyond the end.
class ByteReader {
  public:
    explicit ByteReader(std::string_view bytes) : left_(bytes) {}

    std::uint64_t number() {
        const std::string_view bytes = take(8);
        std::uint64_t value = 0;
        for (int i = 0; i < 8; ++i)
            value |= static_cast<std::uint64_t>(
                         static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]))
                     << (8 * i);
        return value;
    }
    double real() { return std::bit_cast<double>(number()); }
    std::string_view text() { return take(number()); }
    // A count of items of at least `bytes_each`, so that a wrong one cannot ask for more memory
    // than the state holds.
    std::size_t count(std::size_t bytes_each) {
        const std::uint64_t value = number();
        if (value > left_.size() / bytes_each)
            throw Error("state: is damaged: a count is larger than its content");
        return static_cast<std::size_t>(value);
    }
    std::string_view take(std::uint64_t size) {
        if (size > left_.size()) throw Error("state: is damaged: it ends too early");
        const std::string_view bytes = left_.substr(0, static_cast<std::size_t>(size));
        left_.remove_prefix(static_cast<std::size_t>(size));
        return bytes;
    }
    [[nodiscard]] bool done() const { return left_.empty(); }

  private:
    std::string_view left_;
};

}  // namespace hytas
