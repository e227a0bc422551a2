#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hytas::onboard {

// A file that gets its name when it is whole and on the disk. Until then its bytes lie in
// NAME.part, which one process at a time may hold. What an earlier process left there stays until
// `resize`.
class WholeFile {
  public:
    // `kind` is what messages call it. Throws Error if another process writes the file.
    explicit WholeFile(const std::filesystem::path& path, std::string kind = "map");
    ~WholeFile();  // removes the part, unless it was kept or left
    WholeFile(const WholeFile&) = delete;
    WholeFile& operator=(const WholeFile&) = delete;

    [[nodiscard]] const std::filesystem::path& part() const { return part_; }
    [[nodiscard]] std::uint64_t size() const;
    [[nodiscard]] std::string read(std::uint64_t place, std::size_t bytes) const;
    void resize(std::uint64_t size);     // cut to so many bytes, and go on writing there
    void write(std::string_view bytes);  // at the end
    void sync();                         // what was written survives a power cut
    void keep();                         // sync, and give the file its name
    void discard();                      // remove the part now
    void leave();                        // sync, and leave the part for a later run

  private:
    std::filesystem::path path_, part_;
    std::string kind_;
    int file_ = -1;
    bool done_ = false;
};

// Make the entries of the folder of `path` survive a power cut: new names, and those removed.
void sync_folder_of(const std::filesystem::path& path);

}  // namespace hytas::onboard
