// Delta files of `hytas update`: what turns one model file into another, to the byte
// (hytas/deploy/delta.py).

#include <miniz_tinfl.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "hytas/onboard.hpp"
#include "limits.hpp"
#include "model_file.hpp"
#include "sha256.hpp"
#include "whole_file.hpp"

namespace hytas::onboard {
namespace {

enum : std::uint64_t { copy, fresh, exclusive_or, add };

// A damaged delta; the text is not shown.
[[noreturn]] void refuse(const char* rule) { throw Error(Status::delta_damaged, rule); }

// Whole numbers of 7 bits a byte, the lowest first, and bytes between them.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}

    [[nodiscard]] bool done() const { return bytes_.empty(); }
    [[nodiscard]] std::string_view rest() const { return bytes_; }

    std::uint64_t number() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1).front());
            value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
            if (byte < 0x80) return value;
        }
        refuse("has a number that does not end");
    }

    std::string_view take(std::uint64_t size) {
        if (size > bytes_.size()) refuse("runs past the end");
        const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(size));
        bytes_.remove_prefix(taken.size());
        return taken;
    }

  private:
    std::string_view bytes_;
};

std::string hexadecimal(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) {
        text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
        text += "0123456789abcdef"[static_cast<unsigned char>(byte) & 0xF];
    }
    return text;
}

// The floats of the old file, XOR bytes that are sorted by their place in a float.
std::string flipped(std::string_view source, std::string_view planes) {
    std::string result(source);
    const std::size_t count = source.size() / 4;
    for (std::size_t at = 0; at < source.size(); ++at)
        result[at] = static_cast<char>(source[at] ^ planes[at % 4 * count + at / 4]);
    return result;
}

float float_at(std::string_view bytes, std::size_t place) {
    std::uint32_t value = 0;
    for (std::size_t at = 4; at-- > 0;)
        value = value << 8 | static_cast<unsigned char>(bytes[4 * place + at]);
    return std::bit_cast<float>(value);
}

// The floats of the old file plus scale times level, each rounded, as numpy does.
std::string added(std::string_view source, std::string_view given, std::uint64_t bits) {
    const std::size_t count = source.size() / 4, groups = (count + group - 1) / group;
    const std::string_view levels = given.substr(4 * groups);
    const int zero = 1 << (bits - 1);
    std::string result;
    for (std::size_t at = 0; at < count; ++at) {
        const auto stored = static_cast<unsigned char>(levels[bits == 4 ? at / 2 : at]);
        const int level = (bits == 8 ? stored : at % 2 == 0 ? stored & 15 : stored >> 4) - zero;
        // Two roundings: the build forbids a fused multiply-add.
        const float product = float_at(given, at / group) * static_cast<float>(level);
        const auto sum = std::bit_cast<std::uint32_t>(float_at(source, at) + product);
        for (int byte = 0; byte < 4; ++byte) result += static_cast<char>(sum >> 8 * byte & 0xFF);
    }
    return result;
}

std::uint64_t stored_bytes(std::uint64_t count, std::uint64_t bits) {
    if (bits != 4 && bits != 8) refuse("has levels of other than 4 or 8 bits");
    return 4 * ((count + group - 1) / group) + (count * bits + 7) / 8;
}

// The content of a deflate stream of `length` bytes.
std::string inflate(std::string_view stream, std::uint64_t length) {
    constexpr std::uint64_t most_ratio =
        1032;  // of deflate: no memory for a stream that is too short
    if (length / most_ratio > stream.size()) refuse("is longer than its stream");
    std::string result(static_cast<std::size_t>(length), '\0');
    if (tinfl_decompress_mem_to_mem(result.data(), result.size(), stream.data(), stream.size(),
                                    0) != result.size())
        refuse("has a damaged stream");
    return result;
}

std::string applied(std::string_view old_file, std::string_view body) {
    Reader packed(body);
    const std::uint64_t inflated = packed.number();
    if (inflated == 0 || inflated > worst * most_bytes) refuse("is longer than any model");
    const std::string operations = inflate(packed.rest(), inflated);
    Reader reader(operations);
    const std::uint64_t length = reader.number();
    if (length > most_bytes) refuse("is longer than any model");
    std::string result;
    result.reserve(static_cast<std::size_t>(length));
    while (!reader.done()) {
        const std::uint64_t kind = reader.number(), count = reader.number();
        if (kind > add) refuse("has an unknown operation");
        if (count > length) refuse("is longer than it says");
        const std::uint64_t position = kind == fresh ? 0 : reader.number(),
                            bits = kind == add ? reader.number() : 0;
        const std::uint64_t size = kind == exclusive_or || kind == add ? 4 * count : count;
        if (size > length - result.size()) refuse("is longer than it says");
        if (kind != fresh && (size > old_file.size() || position > old_file.size() - size))
            refuse("runs past the end");
        const std::uint64_t held = kind == copy  ? 0
                                   : kind == add ? stored_bytes(count, bits)
                                                 : size;
        const std::string_view given = reader.take(held);
        if (kind == fresh) {
            result += given;
            continue;
        }
        const std::string_view source =
            old_file.substr(static_cast<std::size_t>(position), static_cast<std::size_t>(size));
        if (kind == copy) result += source;
        if (kind == exclusive_or) result += flipped(source, given);
        if (kind == add) result += added(source, given, bits);
    }
    return result;
}

// The new file that the content of a delta makes of the old one; `name` is the delta's in messages.
std::string apply_delta(std::string_view old_file, std::string_view delta,
                        const std::string& name) {
    const std::string file = "delta: " + name;
    if (!delta.starts_with(magic) || delta.size() < magic.size() + 3 * digest_bytes)
        throw Error(Status::delta_damaged, file + " is not a delta of hytas");
    const std::string_view body = delta.substr(0, delta.size() - digest_bytes);
    if (sha256({body}) != hexadecimal(delta.substr(body.size())))
        throw Error(Status::delta_damaged,
                    file + " is damaged: its checksum is not that of its content");
    const std::string wanted = hexadecimal(body.substr(magic.size(), digest_bytes)),
                      found = sha256({old_file});
    if (found != wanted)
        throw Error(Status::delta_mismatch,
                    file + " is for another model: it needs the file with SHA-256 " + wanted +
                        ", and this one has " + found);
    std::string result;
    try {
        result = applied(old_file, body.substr(magic.size() + 2 * digest_bytes));
    } catch (const Error&) {
        result.clear();
    }
    if (sha256({result}) != hexadecimal(body.substr(magic.size() + digest_bytes, digest_bytes)))
        throw Error(Status::delta_damaged,
                    file + " is damaged: it does not give the file that it promises");
    return result;
}

}  // namespace

std::size_t update_model(const std::string& delta, const std::string& model,
                         const std::string& result) {
    for (const auto& input : {delta, model}) {
        std::error_code absent;
        if (std::filesystem::equivalent(input, result, absent))
            throw Error(
                Status::output_failed,
                "model: " + result + " is also an input: an output must be a file of its own");
    }
    const std::string content =
        apply_delta(read_bytes(model, "model"), read_bytes(delta, "delta"), delta);
    WholeFile file(result, "model");
    file.resize(0);
    file.write(content);
    file.keep();
    return content.size();
}

}  // namespace hytas::onboard
