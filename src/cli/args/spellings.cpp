// SPDX-License-Identifier: Apache-2.0
#include "cli/args/spellings.h"

#include "base/text.h"
#include "cli/app.h"

namespace mrrope::cli {

namespace {

// A flag keeps its value; a flag with a value is replaced together with it. An empty verb is every
// one, and "eval" every task of it.
struct Spelling {
  const char* verb;
  const char* typed;
  const char* current;  // empty: it is the default
  bool former = true;   // of an earlier version of mrrope
};

constexpr Spelling kSpellings[] = {
    // The parser would read llama.cpp's short names of several letters as several flags.
    {"", "-ngl", "--gpu-layers", false},
    {"", "--n-gpu-layers", "--gpu-layers", false},
    {"", "-ub", "--ubatch-size", false},
    {"", "-ctk", "--cache-type-k", false},
    {"", "-ctv", "--cache-type-v", false},
    {"", "-fa", "--flash-attn", false},
    {"", "-np", "--parallel", false},
    {"", "-kvu", "--kv-unified", false},
    {"", "-no-kvu", "", false},
    {"", "--no-kv-unified", "", false},
    {"", "--ctx-size", "--ctx", false},
    {"", "--n-ctx", "--ctx", false},
    {"", "--context-length", "--ctx", false},
    {"", "--max-model-len", "--ctx", false},
    {"", "--n-predict", "--predict", false},
    {"", "--max-new-tokens", "--predict", false},
    {"", "--temperature", "--temp", false},
    {"", "--rope-theta", "--rope-freq-base", false},
    {"", "--methods", "--method", false},
    {"generate", "--file", "--text", false},
    {"generate", "--verbose", "-v", false},
    {"plan", "--from", "--plan"},
    {"plan", "--csv", "--format csv"},
    {"theory", "--svg", "--out"},
    {"theory", "--html", "--out"},
    {"theory", "--csv -", "--format csv"},
    {"theory", "--csv", "--out"},
    {"theory", "--tokens", "--length"},
    {"theory", "--pairs", "--samples"},
    {"theory", "--scales", "--scale"},
    {"eval ppl", "--samples", "--documents"},
    {"eval needle", "--haystack", "--text"},
    {"eval", "--chat on", "--form chat"},
    {"eval", "--chat off", "--form completion"},
    {"eval", "--chat auto", "--form auto"},
    {"eval", "--mode letters", "--form letters"},
    {"eval", "--mode generate", "--form auto"},
    {"eval", "--bos on", ""},
    {"eval", "--bos off", "--without bos"},
    {"eval", "--answer-prefix on", ""},
    {"eval", "--answer-prefix off", "--without prefix"},
    {"eval", "--squad", "--qa"},
    {"eval", "--hotpotqa", "--qa"},
    {"export", "--no-verify", "--verify off"},
    {"export", "--dialect v5", "--to hf"},
    {"export", "--dialect v4", "--to hf-v4"},
    {"export", "--dialect mrrope", "--to hf-mrrope"},
    {"export", "--last-rung", "--approximate"},
    {"serve", "--any-model", "--alias *"},
    {"tune", "--start-plan", "--plan"},
    {"tune", "--weight", "--prefer"},
    {"tune", "--search-documents", "--documents"},
    {"tune", "--proof-needles", "--proof"},
    {"tune", "--no-proof", "--proof off"},
};

bool belongs(const std::string& verb, const std::string& to) {
  return to.empty() || verb == to || verb.rfind(to + " ", 0) == 0;
}

}  // namespace

std::vector<std::string> with_current_flags(const std::string& verb,
                                            const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t equals = arguments[i].find('=');
    const bool joined = arguments[i].rfind('-', 0) == 0 && equals != std::string::npos;
    const std::string flag = joined ? arguments[i].substr(0, equals) : arguments[i];
    const std::string value = joined                     ? arguments[i].substr(equals + 1)
                              : i + 1 < arguments.size() ? arguments[i + 1]
                                                         : "";
    const Spelling* found = nullptr;
    for (const Spelling& s : kSpellings) {
      if (!belongs(verb, s.verb) || (flag != s.typed && cat(flag, " ", value) != s.typed)) continue;
      found = &s;
      break;
    }
    if (found == nullptr) {
      out.push_back(arguments[i]);
      continue;
    }
    const std::string current = found->current;
    if (found->former) {
      note(cat(found->typed, " is now ", current.empty() ? "the default" : current));
    }
    const std::size_t space = current.find(' ');
    if (!current.empty()) out.push_back(current.substr(0, space));
    if (space != std::string::npos) out.push_back(current.substr(space + 1));
    if (found->typed != flag) {  // with its value
      if (!joined) ++i;
    } else if (joined) {
      out.push_back(value);
    }
  }
  return out;
}

}  // namespace mrrope::cli
