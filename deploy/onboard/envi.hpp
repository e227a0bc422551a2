#pragma once
// ENVI cubes, read a line at a time as a push-broom sensor delivers them.

#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "element_type.hpp"

namespace hytas::onboard {

class EnviCube {
  public:
    // `header` is the .hdr file; the data lie beside it under the same stem.
    explicit EnviCube(const std::string& header);

    std::int64_t lines() const { return lines_; }
    std::int64_t samples() const { return samples_; }
    std::int64_t bands() const { return bands_; }
    const ElementType& type() const { return *type_; }
    std::optional<double> ignore() const { return ignore_; }
    const std::map<std::string, std::string>& fields() const { return fields_; }
    const std::string& header() const { return header_; }
    const std::string& data() const { return path_; }

    // Band centres in nm, empty if the header lists none that can be used; note() then says why.
    const std::vector<double>& wavelengths() const { return wavelengths_; }
    const std::string& note() const { return note_; }

    [[nodiscard]] std::size_t line_bytes() const;

    // Line `number` as (samples, bands) in this machine's byte order.
    void read(std::int64_t number, std::vector<char>& pixels);

  private:
    std::int64_t integer(const std::string& name, std::int64_t missing, std::int64_t lowest) const;
    void read_wavelengths();
    void open_data();
    void read_at(std::uint64_t place, char* into, std::size_t bytes);

    std::string header_, path_, interleave_, note_;
    std::vector<double> wavelengths_;
    std::map<std::string, std::string> fields_;
    std::int64_t lines_ = 0, samples_ = 0, bands_ = 0, offset_ = 0;
    const ElementType* type_ = nullptr;
    std::optional<double> ignore_;
    bool swap_ = false;
    std::ifstream data_;
    std::vector<char> raw_;
};

}  // namespace hytas::onboard
