#include "delta.hpp"

#include <cstdint>
#include <filesystem>
#include <iostream>

#include "error.hpp"
#include "model_file.hpp"
#include "protobuf.hpp"
#include "sha256.hpp"
#include "whole_file.hpp"

namespace onboard {
namespace {

// The same names and bounds as in hytas/deploy/delta.py.
constexpr std::string_view magic = "HYTASDELTA1\n";
constexpr std::size_t digest_bytes = 32;

std::string digest_of(std::string_view bytes) {
    Sha256 digest;
    digest.add(bytes);
    return digest.finish();
}

std::string hexadecimal(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) {
        text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
        text += "0123456789abcdef"[static_cast<unsigned char>(byte) & 0xF];
    }
    return text;
}

std::string applied(std::string_view old_file, std::string_view body) {
    std::uint64_t left = 0;
    Fields numbers(body, left);
    const std::uint64_t length = numbers.varint();
    if (length > most_bytes) throw Error("is longer than any model");
    std::string result;
    result.reserve(static_cast<std::size_t>(length));
    while (!numbers.done()) {
        const std::uint64_t copied = numbers.varint(),
                            position = copied == 0 ? 0 : numbers.varint();
        const std::string_view fresh = numbers.take(numbers.varint());
        if (copied > old_file.size() || position > old_file.size() - copied)
            throw Error("runs past the end");
        if (copied + fresh.size() > length - result.size()) throw Error("is longer than it says");
        result +=
            old_file.substr(static_cast<std::size_t>(position), static_cast<std::size_t>(copied));
        result += fresh;
    }
    return result;
}

}  // namespace

std::string apply_delta(std::string_view old_file, std::string_view delta,
                        const std::string& name) {
    if (!delta.starts_with(magic) || delta.size() < magic.size() + 3 * digest_bytes)
        throw Error("delta: " + name + " is not a delta of hytas");
    const std::string_view body = delta.substr(0, delta.size() - digest_bytes);
    if (digest_of(body) != hexadecimal(delta.substr(body.size())))
        throw Error("delta: " + name + " is damaged: its checksum is not that of its content");
    const std::string wanted = hexadecimal(body.substr(magic.size(), digest_bytes)),
                      found = digest_of(old_file);
    if (found != wanted)
        throw Error("delta: " + name + " is for another model: it needs the file with SHA-256 " +
                    wanted + ", and this one has " + found);
    std::string result;
    try {
        result = applied(old_file, body.substr(magic.size() + 2 * digest_bytes));
    } catch (const Error&) {
        result.clear();
    }
    if (digest_of(result) != hexadecimal(body.substr(magic.size() + digest_bytes, digest_bytes)))
        throw Error("delta: " + name + " is damaged: it does not give the file that it promises");
    return result;
}

void update_model(const std::string& delta, const std::string& model, const std::string& result) {
    for (const auto& input : {delta, model}) {
        std::error_code absent;
        if (std::filesystem::equivalent(input, result, absent))
            throw Error("model: " + result +
                        " is also an input: an output must be a file of its own");
    }
    const std::string content =
        apply_delta(read_bytes(model, "model"), read_bytes(delta, "delta"), delta);
    Whole file(result, "model");
    file.file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.keep();
    std::cout << content.size() << " bytes written, checked by SHA-256: " << result << "\n";
}

}  // namespace onboard
