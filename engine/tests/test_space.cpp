#include <algorithm>
#include <set>

#include "support.hpp"

using namespace hytas;
using namespace hytas::test;

namespace {

Json parsed(const std::string& text) { return Json::parse(text, "test"); }

std::int64_t params(const SearchSpace& space, const std::string& architecture) {
    return space.cost(space.cost_index("params"), space.pack(parsed(architecture)).data());
}

std::string list(const std::string& values, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + values;
    return "[" + text + "]";
}

std::string s3_network(std::size_t third, const std::string& window) {
    const std::size_t depth[] = {2, 2, third, 2};
    std::string text = R"({"embed_dim": 96, "window": )" + window;
    for (std::size_t stage = 0; stage < 4; ++stage) {
        const std::string number = std::to_string(stage + 1);
        text += ", \"depth_" + number + "\": " + std::to_string(depth[stage]);
        text += ", \"num_heads_" + number + "\": " + list(std::to_string(3 << stage), depth[stage]);
        text += ", \"mlp_ratio_" + number + "\": " + list("4", depth[stage]);
    }
    return text + "}";
}

// A valid space file with one piece of text replaced.
std::string edited(const std::string& from, const std::string& to) {
    std::string text(builtin_space_text("hytas"));
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    return text;
}

std::string refusal(const std::string& text, const Variables& variables = {}) {
    return error_of([&] { return SearchSpace::parse(text, variables); });
}

}  // namespace

TEST_CASE("the published networks are costed exactly") {
    const SpacePtr autoformer = builtin("autoformer");
    CHECK(params(*autoformer,
                 R"({"depth": 13, "embed_dim": 192, "num_heads": [3,3,3,3,3,3,3,3,3,3,4,3,3],
        "mlp_ratio": [3.5,3.5,3,3.5,3,3,4,4,3.5,4,3.5,4,3.5]})") == 5867944);
    CHECK(params(*autoformer,
                 R"({"depth": 13, "embed_dim": 384, "num_heads": [6,6,5,7,5,5,5,6,6,7,7,6,7],
        "mlp_ratio": [3,3.5,3,3.5,4,4,4,4,4,4,4,3.5,4]})") == 22891432);
    CHECK(params(*autoformer,
                 R"({"depth": 14, "embed_dim": 576, "num_heads": [9,9,9,9,9,10,9,9,10,9,10,9,9,10],
        "mlp_ratio": [3.5,3.5,4,3.5,4,3.5,3.5,3,4,4,3,4,3,3.5]})") == 53691688);
    CHECK(params(*builtin("autoformer-tiny"),
                 R"({"depth": 13, "embed_dim": 192, "num_heads": [4,3,3,3,3,4,4,3,3,3,4,3,3],
        "mlp_ratio": [3.5,4,3.5,3.5,4,3.5,3.5,3.5,4,4,4,4,3.5]})") == 6200776);
    CHECK(params(*builtin("autoformer-small"),
                 R"({"depth": 14, "embed_dim": 384, "num_heads": [6,6,6,6,7,6,5,7,5,5,5,7,6,7],
        "mlp_ratio": [4,4,4,3,4,3,3,3.5,4,3.5,3.5,4,3,3.5]})") == 23935336);
    CHECK(params(*builtin("pit-tiny"),
                 R"({"base_dim": 40, "depth": [2,4,4], "num_heads": [2,4,8], "mlp_ratio": 2})") ==
          4732120);
    const SpacePtr s3 = builtin("s3");
    CHECK(params(*s3, s3_network(6, "[7,7,14,7]")) == 28328674);
    CHECK(params(*s3, s3_network(18, "[14,14,14,7]")) == 49737298);
    CHECK(params(*s3, s3_network(30, "[7,7,14,7]")) == 71125762);
}

TEST_CASE("the largest and smallest of the AutoFormer spaces, as published") {
    const auto ends = [](const char* name) {
        const SpacePtr space = builtin(name);
        return std::make_pair(
            error_of([&] { return Feasible(space, Budget::parse(std::string("1-params"))); }),
            error_of([&] {
                return Feasible(space, Budget({{"params", 1000000000000, 1000000000001}}));
            }));
    };
    CHECK(ends("autoformer-tiny").first.find("5,366,056") != std::string::npos);
    CHECK(ends("autoformer-tiny").second.find("10,517,272") != std::string::npos);
    CHECK(ends("autoformer-small").first.find("13,057,320") != std::string::npos);
    CHECK(ends("autoformer-base").second.find("76,882,264") != std::string::npos);
}

TEST_CASE("the cost of hytas, written out") {
    const SpacePtr space = builtin("hytas");
    const Genome genome = space->pack(
        parsed(R"({"depth": 4, "embed_dim": 32, "num_heads": [3,4,5,6], "mlp_ratio": [1,2,3,6]})"));
    const std::int64_t T = 201;
    const std::int64_t E = 32;
    const std::int64_t heads[] = {3, 4, 5, 6};
    const std::int64_t ratio[] = {1, 2, 3, 6};
    std::int64_t count = E * (147 + 1) + E + T * E + 2 * (2 * T * T + T) + 2 * E + 16 * (E + 1);
    std::int64_t macs = 200 * 147 * E + 2 * 2 * T * T * E + E * 16;
    for (int l = 0; l < 4; ++l) {
        const std::int64_t q = heads[l] * (E / heads[l]);
        const std::int64_t f = E * ratio[l];
        count += E * 3 * q + q * E + E + E * f + f + f * E + E + 4 * E;
        macs += 3 * T * E * q + 2 * T * T * q + T * q * E + 2 * T * E * f;
    }
    CHECK(space->cost(space->cost_index("params"), genome.data()) == count);
    CHECK(space->cost(space->cost_index("bytes_fp32"), genome.data()) == 4 * count);
    CHECK(space->cost(space->cost_index("bytes_fp16"), genome.data()) == 2 * count);
    CHECK(space->cost(space->cost_index("macs"), genome.data()) == macs);
    // The widest of the four layers decides: 6 heads or ratio 6.
    const std::int64_t attention = T * E + 3 * T * 30 + 2 * 6 * T * T;
    CHECK(space->cost(space->cost_index("activations"), genome.data()) ==
          4 * (3 * T * E + attention));
}

TEST_CASE("architectures and genomes turn into each other") {
    for (const SpacePtr& space :
         {small_space(), builtin("hytas"), builtin("pit-small"), builtin("s3")}) {
        Rng rng(2);
        const Feasible feasible(space, Budget());
        Genome genome(space->genome_length());
        for (int i = 0; i < 200; ++i) {
            feasible.sample(rng, Uniform::choices, genome);
            CHECK(space->pack(space->unpack(genome)) == genome);
            CHECK(space->pack(parsed(space->unpack(genome).dump())) == genome);
        }
    }
    const SpacePtr hytas = builtin("hytas");
    const std::string text =
        R"({"space": "hytas", "depth": 4, "embed_dim": 64, "num_heads": [3,4,5,6],
            "mlp_ratio": [1,2,3,4]})";
    CHECK(hytas->key(hytas->pack(parsed(text))) == "hytas:d4-e64-h3.4.5.6-m1.2.3.4");
}

TEST_CASE("a wrong architecture is refused, naming the gene, its value and the rule") {
    const SpacePtr space = builtin("hytas");
    const auto refused = [&](const std::string& text) {
        return error_of([&] { return space->pack(parsed(text)); });
    };
    CHECK(refused(R"({"depth": 3})") ==
          "depth '3': must be one of 4, 5, 6, 7, 8, 9, 10 in space hytas");
    CHECK(refused(R"({"depth": 4, "embed_dim": 64, "num_heads": [3,4], "mlp_ratio": [1,1,1,1]})") ==
          "num_heads: must be a list of 4 values, one a layer (depth), not 2");
    CHECK(refused(R"({"depth": 4, "embed_dim": 64, "num_heads": 3, "mlp_ratio": [1,1,1,1]})")
              .find("must be a list of 4 values") != std::string::npos);
    CHECK(refused(
              R"({"depth": 4, "embed_dim": 64, "num_heads": [3,3,3,9], "mlp_ratio": [1,1,1,1]})") ==
          "num_heads '9': must be one of 3, 4, 5, 6 in space hytas");
    CHECK(refused(R"({"depth": 4})") == "architecture: gene 'embed_dim' is missing");
    CHECK(refused(R"({"depht": 4})") == "architecture: space hytas has no gene 'depht'");
    CHECK(refused(R"({"space": "pit-tiny"})") ==
          "architecture: is of space 'pit-tiny', not of 'hytas'");
    CHECK(refused(R"([1])") == "architecture: must be an object with one entry a gene");
    CHECK(refused(R"({"depth": "4"})").find("must be one of 4") != std::string::npos);
}

TEST_CASE("an architecture that breaks a requirement is told which, and by what") {
    const SpacePtr space = std::make_shared<const SearchSpace>(
        SearchSpace::builtin("hytas-wide", {{"patch_size", 5}}));
    Rng rng(2);
    const auto draw = [&] {
        Genome genome(space->genome_length());
        for (std::size_t slot = 0; slot < space->global_slots(); ++slot)
            genome[slot] = static_cast<Gene8>(
                rng.below(static_cast<std::uint32_t>(space->radix_of_slot(slot))));
        return error_of([&] { return space->check(genome); });
    };
    std::set<std::string> found;
    for (int trial = 0; trial < 500; ++trial) found.insert(draw());
    CHECK(found.count("genome: patch 7, patch_size 5: must satisfy 'patch <= patch_size or patch "
                      "== 1' in space hytas-wide") == 1);
    CHECK(found.count("genome: tokens pixel, band_depth 2: must satisfy 'band_depth > 0 if tokens "
                      "!= 'pixel' else band_depth == 0' in space hytas-wide") == 1);
}

TEST_CASE("a wrong space file is refused") {
    CHECK(refusal("{").find("space file: not valid JSON at line 1, column 2") == 0);
    CHECK(refusal(R"({"format": "x"})").find("\"format\" must be") != std::string::npos);
    CHECK(refusal(edited("\"version\": 1", "\"version\": 2")).find("reads version 1") !=
          std::string::npos);
    CHECK(refusal(edited("\"per\": \"depth\"", "\"per\": \"dept\""))
              .find("no gene 'dept' comes before") != std::string::npos);
    CHECK(refusal(edited("\"values\": [3, 4, 5, 6]", "\"values\": []")).find("1 to 255 values") !=
          std::string::npos);
    CHECK(refusal(edited("\"values\": [3, 4, 5, 6]", "\"values\": [3, 4, 3.0]")).find("twice") !=
          std::string::npos);
    CHECK(refusal(edited("\"values\": [3, 4, 5, 6]", "\"values\": [3, \"4\"]"))
              .find("all numbers or all labels") != std::string::npos);
    CHECK(refusal(edited("\"key\": \"e\"", "\"key\": \"d\"")).find("have the same key") !=
          std::string::npos);
    CHECK(refusal(edited("embedding + embedding_rest + fusion", "embeding + 1"))
              .find("did you mean 'embedding'?") != std::string::npos);
    CHECK(refusal(edited("embedding + embedding_rest + fusion", "num_heads"))
              .find("a gene of other layers") != std::string::npos);
    CHECK(refusal(edited("embedding + embedding_rest + fusion", "1 - embed_dim"))
              .find("must be a whole number of 0 or more") != std::string::npos);
    CHECK(refusal(edited("embedding + embedding_rest + fusion", "1 / (embed_dim - 32)"))
              .find("division by zero") != std::string::npos);
    CHECK(refusal(edited("embedding + embedding_rest + fusion", "layer"))
              .find("outside \"layers\"") != std::string::npos);
    CHECK(refusal(edited("embedding + embedding_rest + fusion", "(1")).find("expected ')'") !=
          std::string::npos);
    CHECK(refusal(edited("\"T\": \"bands + 1\"", "\"depth\": \"1\"")).find("is defined twice") !=
          std::string::npos);
    CHECK(refusal(edited("\"costs\": {", "\"cost\": {}, \"costs\": {")).find("no entry 'cost'") !=
          std::string::npos);
    CHECK(error_of([] {
              return SearchSpace::builtin("hytass", {});
          }).find("did you mean 'hytas'?") != std::string::npos);
}

TEST_CASE("definitions may use one another twice each, but not form a chain without end") {
    const auto chain = [](std::size_t length, const std::string& link) {
        std::string text =
            R"({"format": "hytas-space", "version": 1, "name": "chain",
                "genes": [{"name": "depth", "values": [1]},
            {"name": "own", "values": [1], "per": "depth"}], "definitions": {"d0": "depth")";
        for (std::size_t i = 1; i <= length; ++i) {
            const std::string before = "d" + std::to_string(i - 1);
            text += ", \"d" + std::to_string(i) + "\": \"" + before +
                    (link.empty() ? "" : link + before) + " + 0\"";
        }
        return text + R"(}, "costs": {"params": {"global": "1 * d)" + std::to_string(length) +
               "\"}}}";
    };
    const SearchSpace doubled = SearchSpace::parse(chain(50, " + "), {});
    CHECK(doubled.cost(0, Genome(doubled.genome_length()).data()) == std::int64_t{1} << 50);
    CHECK(refusal(chain(4000, "")) == "");
    CHECK(refusal(chain(6000, "")).find("operations are nested more than 5,000 deep") !=
          std::string::npos);
}

TEST_CASE("a gene whose condition on variables does not hold is no part of a genome") {
    const auto text = [](const std::string& rest) {
        return R"({"format": "hytas-space", "version": 1, "name": "small",
            "variables": {"bands": {"default": 4}}, "costs": {"params": {"global": "size"}},
            "definitions": {"size": "depth if treats == 'none' else 10"},
            "genes": [{"name": "depth", "values": [1, 2]},
                      {"name": "treats", "values": ["none", "snv"], )" +
               rest + "}]}";
    };
    const std::string whole = text(R"("absent": "none", "if": "bands >= 8")");
    const SearchSpace few = SearchSpace::parse(whole, {});
    const SearchSpace many = SearchSpace::parse(whole, {{"bands", 8}});
    CHECK(few.genes().size() == 1);
    CHECK(few.size() == 2);
    CHECK(params(few, R"({"depth": 2, "treats": "none"})") == 2);
    CHECK(error_of([&] {
              static_cast<void>(few.pack(parsed(R"({"depth": 2, "treats": "snv"})")));
          }) == "treats 'snv': must be one of none in space small");
    CHECK(many.size() == 4);
    CHECK(params(many, R"({"depth": 2, "treats": "snv"})") == 10);
    CHECK(refusal(text(R"("if": "1")")).find("\"if\" needs \"absent\"") != std::string::npos);
    CHECK(refusal(text(R"("absent": "none", "if": "depth")")).find("unknown name") !=
          std::string::npos);
}

TEST_CASE("variables are checked") {
    CHECK(error_of([] { return SearchSpace::builtin("hytas", {{"bands", 0}}); }) ==
          "variable bands 0: must be 1 to 4096 in space hytas");
    CHECK(error_of([] {
              return SearchSpace::builtin("hytas", {{"band", 5}});
          }).find("variable 'band': space hytas has bands") == 0);
    CHECK(SearchSpace::builtin("hytas", {{"bands", 5}}).fingerprint() !=
          SearchSpace::builtin("hytas", {}).fingerprint());
}

TEST_CASE("genomes that are not canonical are refused") {
    const SpacePtr space = small_space();
    Rng rng(4);
    const auto all = all_genomes(*space);
    std::size_t refused = 0;
    for (int trial = 0; trial < 3000; ++trial) {
        Genome genome(space->genome_length());
        for (Gene8& gene : genome) gene = static_cast<Gene8>(rng.below(4));
        const bool known = std::find(all.begin(), all.end(), genome) != all.end();
        CHECK(space->valid(genome) == known);
        refused += known ? 0 : 1;
    }
    CHECK(refused > 1000);
    CHECK_FALSE(space->valid(Genome(3)));
}

TEST_CASE("latency tables take every decimal that a program writes, rounded up") {
    const auto nanoseconds = [](const std::string& cost) {
        return Rational::product_up(cost, 1000000, "cost");
    };
    CHECK(nanoseconds("0.012345678901234567") == 12346);
    CHECK(nanoseconds("0.001234567890123456") == 1235);
    CHECK(nanoseconds("1.2345678901234567e-05") == 13);
    CHECK(nanoseconds("1e-99") == 1);
    CHECK(nanoseconds("0.000") == 0);
    CHECK(nanoseconds("0e9") == 0);
    CHECK(nanoseconds("2.5") == 2500000);
    CHECK(nanoseconds("2.5e2") == 250000000);
    CHECK(nanoseconds("00000000000000000000.5") == 500000);
    CHECK(error_of([&] {
              return nanoseconds("1.2345678901234567890");
          }).find("at most 18 digits") != std::string::npos);
    CHECK(error_of([&] { return nanoseconds("1e300"); }) != "");
    CHECK(error_of([&] { return nanoseconds("1e30"); }).find("64 bits") != std::string::npos);
}

TEST_CASE("latency tables: sums of rounded-up rows, parts add up") {
    const SpacePtr plain = small_space();
    const std::string text =
        R"({"format": "hytas-latency", "version": 1, "space": "small", "unit": "us",
            "variables": {"scale": 3},
      "global": [{"when": {"kind": "plain", "pair[0]": 1}, "cost": 1.0001},
      {"when": {"kind": "wide", "pair[0]": 1}, "cost": 2},
                 {"when": {"kind": "plain", "pair[0]": 2}, "cost": 3}, {"when": {"kind": "wide",
                 "pair[0]": 2}, "cost": 4}, {"when": {}, "cost": 0.5}],
      "layers": {"depth": [{"when": {"head": 3}, "cost": 10}, {"when": {"head": 5}, "cost": 20},
                           {"when": {"ratio": 1, "kind": "plain"}, "cost": 1},
                           {"when": {"ratio": 1.5, "kind": "plain"}, "cost": 2},
                           {"when": {"ratio": 2, "kind": "plain"}, "cost": 3},
                           {"when": {"ratio": 1, "kind": "wide"}, "cost": 4},
                           {"when": {"ratio": 1.5, "kind": "wide"}, "cost": 5},
                           {"when": {"ratio": 2, "kind": "wide"}, "cost": 6.00000001}]}})";
    const auto space = std::make_shared<const SearchSpace>(plain->with_table("t.json", text));
    const Genome genome = space->pack(parsed(
        R"({"depth": 1, "tail": 1, "kind": "wide", "pair": [2, 3], "head": [5], "ratio": [2],
            "end": [7]})"));
    CHECK(space->cost(space->cost_index("latency@t.json"), genome.data()) ==
          4000 + 500 + 20000 + 6001);
    CHECK(space->fingerprint() != plain->fingerprint());
    const Budget budget = Budget::parse(std::string("10us..40us-latency@t.json,100-params"));
    CHECK(Feasible(space, budget).count() == all_inside(*space, budget).size());
    const auto refused = [&](const std::string& from, const std::string& to) {
        std::string wrong = text;
        wrong.replace(wrong.find(from), from.size(), to);
        return error_of([&] { return plain->with_table("t.json", wrong); });
    };
    CHECK(refused(R"({"when": {"head": 3}, "cost": 10}, )", "")
              .find("has 1 of the 2 combinations of head") != std::string::npos);
    CHECK(refused(R"("head": 3)", R"("head": 5)").find("the same \"when\"") != std::string::npos);
    CHECK(refused(R"("head": 3)", R"("head": 4)").find("is not one of its values") !=
          std::string::npos);
    CHECK(refused(R"("head": 3)", R"("heads": 4)").find("no gene 'heads'") != std::string::npos);
    CHECK(refused(R"("scale": 3)", R"("scale": 4)").find("was measured with scale 4, not 3") !=
          std::string::npos);
    CHECK(refused(R"("cost": 10)", R"("cost": -10)").find("must not be negative") !=
          std::string::npos);
    CHECK(refused("small", "hytas").find("is of space 'hytas'") != std::string::npos);
    CHECK(error_of([&] {
              return Feasible(space, Budget::parse(std::string("3-latency@t.json")));
          }).find("name one (ns, us, ms, s)") != std::string::npos);
}

TEST_CASE("latency tables: formulas in the language of a space file") {
    const SpacePtr plain = small_space();
    const std::string text =
        R"TABLE({"format": "hytas-latency", "version": 1, "space": "small", "unit": "us",
            "variables": {"scale": 3}, "global": "20 + scale * pair[0]",
            "layers": {"depth": "floor(head * ratio) + (4 if kind == 'wide' else 0)"}})TABLE";
    const auto space = std::make_shared<const SearchSpace>(plain->with_table("t", text));
    const Genome genome = space->pack(parsed(
        R"({"depth": 1, "tail": 1, "kind": "wide", "pair": [2, 3], "head": [5], "ratio": [1.5],
            "end": [7]})"));
    CHECK(space->cost(space->cost_index("latency@t"), genome.data()) ==
          1000 * (20 + 3 * 2 + 7 + 4));
    CHECK(space->fingerprint() != plain->fingerprint());
    const Budget budget = Budget::parse(std::string("30us..50us-latency@t"));
    const std::size_t inside = all_inside(*space, budget).size();
    CHECK(inside > 0);
    CHECK(Feasible(space, budget).count() == inside);
    const auto refused = [&](const std::string& from, const std::string& to) {
        std::string wrong = text;
        wrong.replace(wrong.find(from), from.size(), to);
        return error_of([&] { return plain->with_table("t", wrong); });
    };
    CHECK(refused("20 + scale", "heat + scale").find("'heat'") != std::string::npos);
    CHECK(refused("floor(head * ratio)", "head * ratio / 7").find("it must be a whole number") !=
          std::string::npos);
    CHECK(refused("20 + scale", "0 - scale").find("it must be a whole number of 0 or more") !=
          std::string::npos);
    CHECK(refused(R"("depth":)", R"("deep":)").find("no gene belongs to layers of 'deep'") !=
          std::string::npos);
    CHECK(refused(R"({"depth": ")", R"({"depth": [], "no": ")") != "");
}

TEST_CASE("latency tables: a row with lists holds for every combination of their values") {
    const SpacePtr plain = small_space();
    const auto table = [](const std::string& global, const std::string& layers) {
        return R"({"format": "hytas-latency", "version": 1, "space": "small", "unit": "ns",
            "global": [)" +
               global + R"(], "layers": {"depth": [)" + layers + "]}}";
    };
    const auto row = [](const std::string& when, const std::string& cost) {
        return R"({"when": {)" + when + R"(}, "cost": )" + cost + "}";
    };
    const std::string plain_rows = row(R"("kind": "plain", "pair[0]": [1, 2])", "5");
    const std::string wide_rows = row(R"("pair[0]": [2], "kind": "wide")", "7") + "," +
                                  row(R"("kind": ["wide"], "pair[0]": 1)", "6");
    const std::string layers = row(R"("ratio": [2, 1], "head": 3)", "10") + "," +
                               row(R"("head": [3, 5], "ratio": 1.5)", "20") + "," +
                               row(R"("ratio": [1, 2], "head": 5)", "30");
    const std::string lists = table(plain_rows + "," + wide_rows, layers);
    std::string each;  // the same costs, a row for every combination
    for (const char* head : {"3", "5"})
        for (const char* ratio : {"1", "1.5", "2"}) {
            const std::string cost = std::string(ratio) == "1.5" ? "20"
                                     : std::string(head) == "3"  ? "10"
                                                                 : "30";
            each += (each.empty() ? "" : ",") +
                    row("\"head\": " + std::string(head) + ", \"ratio\": " + ratio, cost);
        }
    const std::string one_by_one = table(row(R"("kind": "plain", "pair[0]": 1)", "5") + "," +
                                             row(R"("kind": "plain", "pair[0]": 2)", "5") + "," +
                                             row(R"("kind": "wide", "pair[0]": 1)", "6") + "," +
                                             row(R"("kind": "wide", "pair[0]": 2)", "7"),
                                         each);
    const SearchSpace left = plain->with_table("t", lists);
    const SearchSpace right = plain->with_table("t", one_by_one);
    const std::size_t index = left.cost_index("latency@t");
    std::set<std::int64_t> costs;
    for (const Genome& genome : all_genomes(*plain)) {
        CHECK(left.cost(index, genome.data()) == right.cost(index, genome.data()));
        costs.insert(left.cost(index, genome.data()));
    }
    CHECK(costs.size() > 5);
    const auto refused = [&](const std::string& global, const std::string& of_layers) {
        return error_of([&] { return plain->with_table("t", table(global, of_layers)); });
    };
    CHECK(refused("", row(R"("head": [3, 3])", "1")).find("the list of head has 3 twice") !=
          std::string::npos);
    CHECK(refused("", row(R"("head": [])", "1")).find("the list of head is empty") !=
          std::string::npos);
    CHECK(refused("", row(R"("head": [3, [5]])", "1")).find("head [5] is not one of its values") !=
          std::string::npos);
    CHECK(refused("", row(R"("head": [3, 4])", "1")).find("head 4 is not one of its values") !=
          std::string::npos);
    CHECK(refused("", row(R"("ratio": [1, 2], "head": 3)", "1"))
              .find("has 2 of the 6 combinations of head, ratio") != std::string::npos);
    CHECK(refused("", layers + "," + row(R"("ratio": [2, 1.5], "head": [5])", "1"))
              .find(R"(two rows have the same "when" {"ratio":2,"head":5})") != std::string::npos);
    CHECK(
        refused(row(R"("kind": ["plain", "wide"])", "1") + "," + row(R"("kind": "wide")", "1"), "")
            .find(R"("when" {"kind":"wide"})") != std::string::npos);
}

TEST_CASE("latency tables: few rows cannot ask for much memory or many steps") {
    // Hardly any combination is allowed, but a part is as large as its genes are.
    const auto values = [](char name) {
        std::string all;
        for (int value = 0; value < (name < 'f' ? 200 : 4); ++value)
            all += (value == 0 ? "" : ",") + std::to_string(value);
        return "[" + all + "]";
    };
    std::string genes;
    std::string require;
    for (const char name : std::string("abcdefgh")) {
        genes += std::string(R"(, {"name": ")") + name + R"(", "key": ")" + name +
                 R"(", "values": )" + values(name) + "}";
        require += std::string(require.empty() ? "\"" : ", \"") + name + " == 0\"";
    }
    const std::string text =
        R"({"format": "hytas-space", "version": 1, "name": "hostile", "genes": [{"name": "depth",
            "key": "y", "values": [1, 2]})" +
        genes +
        R"(, {"name": "head", "key": "z", "values": [0, 1, 2, 3], "per": "depth"}], "require": [)" +
        require +
        R"(], "costs": {"params": {"unit": "params", "global": "1",
            "layers": {"depth": "head"}}}})";
    const SearchSpace space = SearchSpace::parse(text, {});
    const auto row = [&](const std::string& names) {
        std::string when;
        for (const char name : names)
            when += (when.empty() ? "\"" : ", \"") + (name == 'H' ? "head" : std::string(1, name)) +
                    "\": " + values(name == 'H' ? 'h' : name);
        return R"({"when": {)" + when + R"(}, "cost": 1})";
    };
    const auto refused = [&](const std::string& global, const std::string& layers) {
        return error_of([&] {
            return space.with_table(
                "t",
                R"({"format": "hytas-latency", "version": 1, "space": "hostile", "unit": "ns",
                    "global": [)" +
                    global + R"(], "layers": {"depth": [)" + layers + "]}}");
        });
    };
    CHECK(refused(row("ab"), row("aH")) == "");
    CHECK(refused(row("abcdefgh"), "").find("has more than 16,777,216 combinations of a, b, c") !=
          std::string::npos);
    CHECK(refused(row("abc") + "," + row("abd") + "," + row("abe"), "")
              .find("16,777,216 combinations of genes in all of its parts") != std::string::npos);
    CHECK(refused("", row("abcd")).find("has more than 16,777,216 different layers") !=
          std::string::npos);
    std::string subsets;
    for (unsigned chosen = 1; chosen < 64; ++chosen) {
        std::string names;
        for (unsigned i = 0; i < 6; ++i)
            if ((chosen >> i & 1U) != 0) names += "abfghH"[i];
        if (chosen != 63) subsets += (subsets.empty() ? "" : ",") + row(names);
    }
    CHECK(refused("", subsets)
              .find("takes more than 268,435,456 steps to add up: 62 parts over 10240000 "
                    "combinations") != std::string::npos);
}
