#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "error.hpp"

namespace onboard {

// A file that gets its name when it is whole.
class Whole {
  public:
    // `kind` is what messages call it.
    explicit Whole(const std::filesystem::path& path, std::string kind = "map")
        : path_(path),
          part_(path.string() + ".part"),
          kind_(std::move(kind)),
          file(part_, std::ios::binary) {
        if (!file) throw Error(kind_ + ": cannot write " + part_.string());
    }
    ~Whole() {
        std::error_code ignored;
        if (!done_) std::filesystem::remove(part_, ignored);
    }
    void keep() {
        file.close();
        if (!file) throw Error(kind_ + ": cannot write " + part_.string() + ": is the disk full?");
        std::filesystem::rename(part_, path_);
        done_ = true;
    }

  private:
    std::filesystem::path path_, part_;
    std::string kind_;
    bool done_ = false;

  public:
    std::ofstream file;
};

}  // namespace onboard
