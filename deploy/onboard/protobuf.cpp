#include "protobuf.hpp"

#include <string>

#include "hytas/onboard.hpp"

namespace hytas::onboard {

std::uint64_t Fields::varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        if (at_ >= message_.size() || shift > 63)
            throw Error(Status::model_damaged, "protobuf number does not end");
        const auto byte = static_cast<unsigned char>(message_[at_++]);
        value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
    }
}

std::string_view Fields::take(std::uint64_t size) {
    if (size > message_.size() - at_)
        throw Error(Status::model_damaged,
                    "protobuf field of " + std::to_string(size) + " bytes runs past the end");
    const std::string_view bytes = message_.substr(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return bytes;
}

std::optional<Field> Fields::next() {
    if (done()) return std::nullopt;
    if (left_ == 0) throw Error(Status::model_damaged, "too many protobuf fields for a model");
    --left_;
    Field field;
    field.first = at_;
    const std::uint64_t key = varint();
    field.number = key >> 3;
    std::uint64_t size = 0;
    switch (key & 7) {
        case 0:
            field.is_number = true;
            field.value = varint();
            break;
        case 1: size = 8; break;
        case 2: size = varint(); break;
        case 5: size = 4; break;
        default:
            throw Error(Status::model_damaged, "protobuf wire type " + std::to_string(key & 7));
    }
    field.bytes = take(size);
    field.behind = at_;
    return field;
}

}  // namespace hytas::onboard
