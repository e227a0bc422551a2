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

    static Json parse(std::string_view text, const std::string& what);

    Json() = default;
    static Json boolean(bool value);
    static Json number(std::string digits);
    static Json string(std::string value);
    static Json array(std::vector<Json> items);
    static Json object(Members members);

    Kind kind() const { return kind_; }
    bool is(Kind kind) const { return kind_ == kind; }
    bool truth() const { return truth_; }
    const std::string& text() const { return text_; }  // of a string, or the digits of a number
    const std::vector<Json>& items() const { return items_; }
    const Members& members() const { return members_; }
    const Json* find(std::string_view name) const;  // nullptr when absent

    std::string dump() const;  // compact, members in order

  private:
    Kind kind_ = Kind::null;
    bool truth_ = false;
    std::string text_;
    std::vector<Json> items_;
    Members members_;
};

const char* kind_name(Json::Kind kind);

}  // namespace hytas
