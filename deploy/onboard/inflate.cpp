#include "inflate.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include "error.hpp"

namespace onboard {
namespace {

constexpr int most_bits = 15;  // of a code

class Bits {
  public:
    explicit Bits(std::string_view stream) : stream_(stream) {}

    std::uint32_t take(int count) {
        while (held_ < count) {
            if (at_ == stream_.size()) throw Error("the compressed data end too early");
            buffer_ |= std::uint32_t{static_cast<unsigned char>(stream_[at_++])} << held_;
            held_ += 8;
        }
        const std::uint32_t value = buffer_ & ((std::uint32_t{1} << count) - 1);
        buffer_ >>= count, held_ -= count;
        return value;
    }

    std::string_view bytes(std::size_t count) {  // from the next whole byte on
        buffer_ = 0, held_ = 0;
        if (count > stream_.size() - at_) throw Error("the compressed data end too early");
        at_ += count;
        return stream_.substr(at_ - count, count);
    }

  private:
    std::string_view stream_;
    std::size_t at_ = 0;
    std::uint32_t buffer_ = 0;
    int held_ = 0;
};

// A canonical Huffman code: symbols in the order of their codes, and how many codes have each
// length.
class Code {
  public:
    explicit Code(const std::vector<int>& lengths) {
        for (const int length : lengths) ++counts_[static_cast<std::size_t>(length)];
        counts_[0] = 0;
        std::array<int, most_bits + 1> next{};
        int left = 1;
        for (std::size_t length = 1; length <= most_bits; ++length) {
            left = 2 * left - counts_[length];
            if (left < 0) throw Error("the compressed data have an impossible code");
            next[length] = next[length - 1] + counts_[length - 1];
        }
        symbols_.resize(lengths.size());
        for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol)
            if (lengths[symbol] != 0)
                symbols_[static_cast<std::size_t>(
                    next[static_cast<std::size_t>(lengths[symbol])]++)] = static_cast<int>(symbol);
    }

    int symbol(Bits& bits) const {
        int code = 0, first = 0, index = 0;
        for (std::size_t length = 1; length <= most_bits; ++length) {
            code |= static_cast<int>(bits.take(1));
            if (code - first < counts_[length])
                return symbols_[static_cast<std::size_t>(index + code - first)];
            index += counts_[length];
            first = 2 * (first + counts_[length]);
            code *= 2;
        }
        throw Error("the compressed data have an unknown code");
    }

  private:
    std::array<int, most_bits + 1> counts_{};
    std::vector<int> symbols_;
};

// Smallest length or distance of each symbol, and the bits that are added to it.
constexpr std::array<int, 29> length_base{3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                          15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                          67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<int, 29> length_bits{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr std::array<int, 30> distance_base{
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr std::array<int, 30> distance_bits{0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                            6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

void stored(Bits& bits, std::string& result, std::size_t length) {
    const std::string_view head = bits.bytes(4);
    const auto number = [&](std::size_t at) {
        return static_cast<unsigned char>(head[at]) | static_cast<unsigned char>(head[at + 1]) << 8;
    };
    if (number(0) != (~number(2) & 0xFFFF)) throw Error("the compressed data have a broken block");
    const auto count = static_cast<std::size_t>(number(0));
    if (count > length - result.size()) throw Error("the compressed data are longer than they say");
    result += bits.bytes(count);
}

void coded(Bits& bits, const Code& literals, const Code& distances, std::string& result,
           std::size_t length) {
    for (;;) {
        const int symbol = literals.symbol(bits);
        if (symbol == 256) return;
        if (symbol < 256) {
            if (result.size() == length)
                throw Error("the compressed data are longer than they say");
            result += static_cast<char>(symbol);
            continue;
        }
        const auto kind = static_cast<std::size_t>(symbol - 257);
        if (kind >= length_base.size()) throw Error("the compressed data have an unknown length");
        const std::size_t count =
            static_cast<std::size_t>(length_base[kind]) + bits.take(length_bits[kind]);
        const auto far = static_cast<std::size_t>(distances.symbol(bits));
        if (far >= distance_base.size())
            throw Error("the compressed data have an unknown distance");
        const std::size_t distance =
            static_cast<std::size_t>(distance_base[far]) + bits.take(distance_bits[far]);
        if (distance > result.size() || count > length - result.size())
            throw Error("the compressed data copy what is not there");
        for (std::size_t step = 0; step < count; ++step) result += result[result.size() - distance];
    }
}

void fixed(Bits& bits, std::string& result, std::size_t length) {
    std::vector<int> lengths(288, 8);
    for (std::size_t symbol = 144; symbol < 280; ++symbol) lengths[symbol] = symbol < 256 ? 9 : 7;
    coded(bits, Code(lengths), Code(std::vector<int>(30, 5)), result, length);
}

void dynamic(Bits& bits, std::string& result, std::size_t length) {
    constexpr std::array<std::size_t, 19> order{16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    const std::size_t literals = bits.take(5) + 257, distances = bits.take(5) + 1,
                      known = bits.take(4) + 4;
    if (literals > 286 || distances > 30) throw Error("the compressed data have too many codes");
    std::vector<int> meta(order.size(), 0), lengths;
    for (std::size_t at = 0; at < known; ++at) meta[order[at]] = static_cast<int>(bits.take(3));
    const Code code(meta);
    while (lengths.size() < literals + distances) {
        const int symbol = code.symbol(bits);
        if (symbol < 16) {
            lengths.push_back(symbol);
            continue;
        }
        if (symbol == 16 && lengths.empty()) throw Error("the compressed data repeat no length");
        const int value = symbol == 16 ? lengths.back() : 0;
        const std::size_t count = symbol == 16   ? 3 + bits.take(2)
                                  : symbol == 17 ? 3 + bits.take(3)
                                                 : 11 + bits.take(7);
        if (count > literals + distances - lengths.size())
            throw Error("the compressed data have too many lengths");
        lengths.insert(lengths.end(), count, value);
    }
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(literals);
    coded(bits, Code({lengths.begin(), middle}), Code({middle, lengths.end()}), result, length);
}

}  // namespace

std::string inflate(std::string_view stream, std::size_t length) {
    Bits bits(stream);
    std::string result;
    for (bool last = false; !last;) {
        last = bits.take(1) == 1;
        switch (bits.take(2)) {
            case 0: stored(bits, result, length); break;
            case 1: fixed(bits, result, length); break;
            case 2: dynamic(bits, result, length); break;
            default: throw Error("the compressed data have an unknown block");
        }
    }
    if (result.size() != length) throw Error("the compressed data are shorter than they say");
    return result;
}

}  // namespace onboard
