// The JSON of the control channel: objects without nesting on the way in, text on the way out.
#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>

using Values = std::map<std::string, std::string>;

inline std::string quoted(const std::string& text) {
  static const char* digits = "0123456789abcdef";
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c > 0x7e) {
      // Bytes, one by one: what is not ASCII comes back as Latin-1.
      out += "\\u00";
      out += digits[c >> 4];
      out += digits[c & 15];
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + '"';
}

/** Reads `{"name": "text", "other": 5, "third": true}`. Numbers and booleans are kept as they are written. */
class FlatJson {
 public:
  static Values read(const std::string& line) {
    FlatJson reader(line);
    return reader.object();
  }

 private:
  explicit FlatJson(const std::string& line) : line_(line) {}

  Values object() {
    Values values;
    expect('{');
    if (next() == '}') return values;
    for (;;) {
      expect('"');
      const std::string name = text();
      expect(':');
      values[name] = value();
      if (next() == '}') return values;
      expect(',');
    }
  }

  std::string value() {
    if (next() == '"') {
      ++at_;
      return text();
    }
    std::string word;
    while (at_ < line_.size() && (std::isalnum(static_cast<unsigned char>(line_[at_])) || line_[at_] == '-' || line_[at_] == '.'))
      word += line_[at_++];
    if (word.empty()) throw std::runtime_error("only texts, numbers and booleans are read");
    return word;
  }

  std::string text() {
    std::string out;
    while (at_ < line_.size() && line_[at_] != '"') {
      char c = line_[at_++];
      if (c == '\\') {
        c = at_ < line_.size() ? line_[at_++] : '"';
        if (c == 'n') c = '\n';
        if (c == 'r') c = '\r';
        if (c == 't') c = '\t';
        if (c == 'u') {
          c = static_cast<char>(std::stoi(line_.substr(at_, 4), nullptr, 16));
          at_ += 4;
        }
      }
      out += c;
    }
    expect('"');
    return out;
  }

  char next() {
    while (at_ < line_.size() && std::isspace(static_cast<unsigned char>(line_[at_]))) ++at_;
    return at_ < line_.size() ? line_[at_] : '\0';
  }

  void expect(char c) {
    if (next() != c) throw std::runtime_error(std::string("expected ") + c + " in " + line_);
    ++at_;
  }

  const std::string line_;
  std::size_t at_ = 0;
};
