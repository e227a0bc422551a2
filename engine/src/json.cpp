#include "hytas/json.hpp"

#include <cstddef>

#include "hytas/error.hpp"
#include "text.hpp"

namespace hytas {

namespace {

constexpr int deepest = 32;

class Reader {
  public:
    Reader(std::string_view text, const std::string& what) : text_(text), what_(what) {}

    Json document() {
        Json value = any(0);
        skip_blanks();
        if (at_ != text_.size()) fail("one value, then the end of the text");
        return value;
    }

  private:
    [[noreturn]] void fail(const std::string& expected) const {
        std::size_t line = 1;
        std::size_t column = 1;
        for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
            const bool newline = text_[i] == '\n';
            line += newline ? 1 : 0;
            column = newline ? 1 : column + 1;
        }
        throw Error(what_ + ": not valid JSON at line " + std::to_string(line) + ", column " +
                    std::to_string(column) + ": expected " + expected);
    }

    [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    bool take(char letter) {
        if (at_ >= text_.size() || text_[at_] != letter) return false;
        ++at_;
        return true;
    }

    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' ||
                                      text_[at_] == '\n' || text_[at_] == '\r'))
            ++at_;
    }

    Json any(int depth) {
        if (depth > deepest) fail("at most 32 levels of nesting");
        skip_blanks();
        switch (peek()) {
            case '{': return object(depth);
            case '[': return array(depth);
            case '"': return Json::string(string());
            case 't': return word("true"), Json::boolean(true);
            case 'f': return word("false"), Json::boolean(false);
            case 'n': return word("null"), Json();
            default: return number();
        }
    }

    void word(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected) fail("a value");
        at_ += expected.size();
    }

    Json object(int depth) {
        Json::Members members;
        take('{');
        skip_blanks();
        if (take('}')) return Json::object({});
        do {
            skip_blanks();
            if (peek() != '"') fail("a name in quotes");
            std::string name = string();
            for (const auto& member : members)
                if (member.first == name) fail("each name once, not " + quoted(name) + " twice");
            skip_blanks();
            if (!take(':')) fail("':'");
            members.emplace_back(std::move(name), any(depth + 1));
            skip_blanks();
        } while (take(','));
        if (!take('}')) fail("',' or '}'");
        return Json::object(std::move(members));
    }

    Json array(int depth) {
        std::vector<Json> items;
        take('[');
        skip_blanks();
        if (take(']')) return Json::array({});
        do {
            items.push_back(any(depth + 1));
            skip_blanks();
        } while (take(','));
        if (!take(']')) fail("',' or ']'");
        return Json::array(std::move(items));
    }

    bool digits() {
        const std::size_t start = at_;
        while (peek() >= '0' && peek() <= '9') ++at_;
        return at_ > start;
    }

    Json number() {
        const std::size_t start = at_;
        take('-');
        if (!take('0') && !digits()) fail("a value");
        if (take('.') && !digits()) fail("digits after the point");
        if (take('e') || take('E')) {
            if (!take('+')) take('-');
            if (!digits()) fail("digits in the exponent");
        }
        return Json::number(std::string(text_.substr(start, at_ - start)));
    }

    std::string string() {
        std::string value;
        take('"');
        while (!take('"')) {
            if (at_ >= text_.size()) fail("a closing quote");
            const char letter = text_[at_++];
            if (static_cast<unsigned char>(letter) < 0x20)
                fail("no control characters in a string");
            if (letter == '\\')
                escape(value);
            else
                value.push_back(letter);
        }
        return value;
    }

    void escape(std::string& value) {
        const char letter = peek();
        ++at_;
        switch (letter) {
            case '"':
            case '\\':
            case '/': value.push_back(letter); return;
            case 'b': value.push_back('\b'); return;
            case 'f': value.push_back('\f'); return;
            case 'n': value.push_back('\n'); return;
            case 'r': value.push_back('\r'); return;
            case 't': value.push_back('\t'); return;
            case 'u': unicode(value); return;
            default: fail("a known escape");
        }
    }

    unsigned hexadecimal() {
        unsigned code = 0;
        for (int i = 0; i < 4; ++i) {
            const char letter = peek();
            ++at_;
            code *= 16;
            if (letter >= '0' && letter <= '9')
                code += static_cast<unsigned>(letter - '0');
            else if (letter >= 'a' && letter <= 'f')
                code += static_cast<unsigned>(letter - 'a' + 10);
            else if (letter >= 'A' && letter <= 'F')
                code += static_cast<unsigned>(letter - 'A' + 10);
            else
                fail("four hexadecimal digits");
        }
        return code;
    }

    void unicode(std::string& value) {
        unsigned code = hexadecimal();
        if (code >= 0xd800 && code < 0xdc00) {
            if (!take('\\') || !take('u')) fail("the second half of a surrogate pair");
            const unsigned low = hexadecimal();
            if (low < 0xdc00 || low > 0xdfff) fail("the second half of a surrogate pair");
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        const auto put = [&value](unsigned byte) { value.push_back(static_cast<char>(byte)); };
        if (code < 0x80) {
            put(code);
        } else if (code < 0x800) {
            put(0xc0 | (code >> 6));
            put(0x80 | (code & 0x3f));
        } else if (code < 0x10000) {
            put(0xe0 | (code >> 12));
            put(0x80 | ((code >> 6) & 0x3f));
            put(0x80 | (code & 0x3f));
        } else {
            put(0xf0 | (code >> 18));
            put(0x80 | ((code >> 12) & 0x3f));
            put(0x80 | ((code >> 6) & 0x3f));
            put(0x80 | (code & 0x3f));
        }
    }

    std::string_view text_;
    const std::string& what_;
    std::size_t at_ = 0;
};

std::string escaped(const std::string& text) {
    static const char* const hex = "0123456789abcdef";
    std::string out = "\"";
    for (const char letter : text) {
        const auto byte = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\') {
            out.push_back('\\');
            out.push_back(letter);
        } else if (byte < 0x20) {
            out += "\\u00";
            out.push_back(hex[byte >> 4]);
            out.push_back(hex[byte & 15]);
        } else {
            out.push_back(letter);
        }
    }
    return out + "\"";
}

}  // namespace

Json Json::parse(std::string_view text, const std::string& what) {
    return Reader(text, what).document();
}

Json Json::boolean(bool value) {
    Json json;
    json.kind_ = Kind::boolean;
    json.truth_ = value;
    return json;
}

Json Json::number(std::string digits) {
    Json json;
    json.kind_ = Kind::number;
    json.text_ = std::move(digits);
    return json;
}

Json Json::string(std::string value) {
    Json json;
    json.kind_ = Kind::string;
    json.text_ = std::move(value);
    return json;
}

Json Json::array(std::vector<Json> items) {
    Json json;
    json.kind_ = Kind::array;
    json.items_ = std::move(items);
    return json;
}

Json Json::object(Members members) {
    Json json;
    json.kind_ = Kind::object;
    json.members_ = std::move(members);
    return json;
}

const Json* Json::find(std::string_view name) const {
    for (const auto& member : members_)
        if (member.first == name) return &member.second;
    return nullptr;
}

std::string Json::dump() const {
    std::string out;
    switch (kind_) {
        case Kind::null: return "null";
        case Kind::boolean: return truth_ ? "true" : "false";
        case Kind::number: return text_;
        case Kind::string: return escaped(text_);
        case Kind::array:
            for (const Json& item : items_) out += (out.empty() ? "" : ",") + item.dump();
            return "[" + out + "]";
        case Kind::object:
            for (const auto& [name, value] : members_)
                out += (out.empty() ? "" : ",") + escaped(name) + ":" + value.dump();
            return "{" + out + "}";
    }
    return out;
}

const char* kind_name(Json::Kind kind) {
    switch (kind) {
        case Json::Kind::null: return "null";
        case Json::Kind::boolean: return "a boolean";
        case Json::Kind::number: return "a number";
        case Json::Kind::string: return "a string";
        case Json::Kind::array: return "a list";
        case Json::Kind::object: return "an object";
    }
    return "a value";
}

}  // namespace hytas
