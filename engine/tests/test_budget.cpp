#include "support.hpp"

using namespace hytas;
using namespace hytas::test;

namespace {

std::string canonical(const std::string& text) { return Budget::parse(text).text(); }
std::string refusal(const std::string& text) {
    return error_of([&] { return Budget::parse(text); });
}

}  // namespace

TEST_CASE("budgets in the notation of people") {
    const auto bound = [](const char* text) {
        return Budget::parse(std::string(text)).bounds().at(0);
    };
    CHECK(bound("2M-params") == Bound{"params", 0, 2000000});
    CHECK(bound("1.5M..2M-params") == Bound{"params", 1500000, 2000000});
    CHECK(bound("500M-macs") == Bound{"macs", 0, 500000000});
    CHECK(bound("4MB-int8") == Bound{"bytes_int8", 0, 4000000});
    CHECK(bound("1MiB-fp16") == Bound{"bytes_fp16", 0, 1048576});
    CHECK(bound("64MB-activations") == Bound{"activations", 0, 64000000});
    CHECK(bound("64KiB-ram") == Bound{"ram", 0, 65536});
    CHECK(bound("256KB-flash").text() == "256kB-flash");
    CHECK(bound("3ms-latency@table.json") == Bound{"latency@table.json", 0, 3000000});
    CHECK(bound("2.5-latency@my-energy.json") ==
          Bound{"latency@my-energy.json", 0, 2500000000, true});
    CHECK(bound("200K-reference_params") == Bound{"reference_params", 0, 200000});
    CHECK(bound("0-params") == Bound{"params", 0, 0});
}

TEST_CASE("canonical text is short, exact and parses to itself") {
    CHECK(canonical("2000000-params") == "2M-params");
    CHECK(canonical(" 1500K..2000k-params , 3000us-latency@t.json") ==
          "1.5M..2M-params,3ms-latency@t.json");
    CHECK(canonical("1234567-params") == "1234567-params");
    CHECK(canonical("1048576B-fp32") == "1048576B-fp32");
    CHECK(canonical("0.25-latency@e.json") == "0.25-latency@e.json");
    Rng rng(5);
    for (int trial = 0; trial < 2000; ++trial) {
        const char* unit[] = {"params", "bytes_fp32", "latency@x"};
        Bound made{unit[rng.below(3)], 0,
                   static_cast<std::int64_t>(rng.below(std::uint64_t{1} << rng.below(60)))};
        made.lower =
            static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(made.upper) + 1));
        CHECK(Budget::parse(made.text()).bounds().at(0) == made);
    }
}

TEST_CASE("several bounds: repeated, comma-separated, intersected") {
    const Budget budget =
        Budget::parse(std::vector<std::string>{"2M-params,300M-macs", "1M..3M-params"});
    CHECK(budget.text() == "1M..2M-params,300M-macs");
    CHECK(refusal("1M-params,2M..3M-params").find("excludes the other bound of params") !=
          std::string::npos);
    CHECK(Budget::parse(std::string("3ms-latency@a.json,1MB-int8")).tables() ==
          std::vector<std::string>{"a.json"});
}

TEST_CASE("a wrong budget is refused with the rule and an example") {
    const std::vector<std::pair<std::string, std::string>> wrong = {
        {"2M", "has no unit"},
        {"", "is empty"},
        {"2M-params,", "is empty"},
        {"-1-params", "must not be negative"},
        {"-params", "has no unit"},
        {"1.5M..", "has no unit"},
        {"1.5M..-params", "a range needs both ends"},
        {"..2M-params", "a range needs both ends"},
        {"2M..1M-params", "the range is reversed"},
        {"0.5-params", "not a whole number of params"},
        {"2MB-params", "is a count"},
        {"4MB-int4", "in bytes are int8, fp16, fp32, activations, ram and flash"},
        {"3ms-latency", "needs the table"},
        {"2M-int8", "is measured in bytes"},
        {"3M-latency@t.json", "is measured in time"},
        {"1ms..2-latency@t.json", "both ends of a range need a unit of time"},
        {"3ms-latency@", "is not a unit"},
        {"2M-Params", "is not a unit"},
        {"1e6-params", "is a count"},
        {"99999999999999999999-params", "too large"},
        {"9999999999G-params", "too large"},
        {"1..2..3-params", "is not a number"},
        {"1.-params", "is not a number"},
    };
    for (const auto& one : wrong) {
        const std::string& text = one.first;
        const std::string& why = one.second;
        INFO(text);
        const std::string message = refusal(text);
        CHECK(message.find("budget '") == 0);
        CHECK(message.find(why) != std::string::npos);
        CHECK(message.find("write for example 2M-params") != std::string::npos);
    }
    CHECK(refusal("1\n-params").find('\n') == std::string::npos);
}

TEST_CASE("a cost that the space does not have is named with the nearest one") {
    const std::string message =
        error_of([] { return Feasible(builtin("hytas"), Budget::parse(std::string("2M-parms"))); });
    CHECK(message.find("did you mean 'params'?") != std::string::npos);
}
