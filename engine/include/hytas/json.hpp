// A small strict JSON reader (RFC 8259) and writer: the engine has only the standard library, and a
// space file is JSON. Stricter than most: no duplicate names, nesting at most 32 deep, numbers kept
// as the exact text they were written in.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hytas {

class Json {
  public:
    enum class Kind { null, boolean, number, string, array, object };
    using Members = std::vector<std::pair<std::string, Json>>;

    [[nodiscard]] static Json parse(std::string_view text, const std::string& what);

    Json() = default;
    [[nodiscard]] static Json boolean(bool value);
    [[nodiscard]] static Json number(std::string digits);
    [[nodiscard]] static Json string(std::string value);
    [[nodiscard]] static Json array(std::vector<Json> items);
    [[nodiscard]] static Json object(Members members);

    [[nodiscard]] Kind kind() const { return kind_; }
    [[nodiscard]] bool is(Kind kind) const { return kind_ == kind; }
    [[nodiscard]] bool truth() const { return truth_; }
    [[nodiscard]] const std::string& text() const {
        return text_;
    }  // of a string, or the digits of a number
    [[nodiscard]] const std::vector<Json>& items() const { return items_; }
    [[nodiscard]] const Members& members() const { return members_; }
    [[nodiscard]] const Json* find(std::string_view name) const;  // nullptr when absent

    [[nodiscard]] std::string dump() const;  // compact, members in order

  private:
    Kind kind_ = Kind::null;
    bool truth_ = false;
    std::string text_;
    std::vector<Json> items_;
    Members members_;
};

[[nodiscard]] const char* kind_name(Json::Kind kind);

}  // namespace hytas
