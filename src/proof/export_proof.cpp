// SPDX-License-Identifier: Apache-2.0
#include "proof/export_proof.h"

#include <fcntl.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/json.h"
#include "base/text.h"

namespace mrrope::proof {

namespace {

constexpr std::int64_t kLongestPrompt = 4096;
constexpr std::size_t kPositions = 16;
// Tokens on which the plan's own effect is measured where the graph is the same.
constexpr std::size_t kSignalPrompt = 512;

// What still counts as equal. The same graph gives the same bits. Reordered rows round sums
// differently, and with keys libllama computes the angles itself, in float; how much a difference
// in rounding grows depends on the model (quantised ones magnify it), so it is measured: how far
// the logits move when every factor changes by a millionth.
constexpr double kSame = 1e-4;
constexpr double kNudge = 1e-6;
constexpr double kTimesNoise = 4;

bool has_same_graph(exporting::GgufEncoding encoding) {
  return encoding == exporting::GgufEncoding::unchanged ||
         encoding == exporting::GgufEncoding::factors || encoding == exporting::GgufEncoding::lists;
}

void must(bool same, const std::string& what) {
  throw_if(!same, ErrorKind::goal_not_met, cat("the exported file does not match the plan: ", what),
           "this is a bug in mrrope or in its table of architectures: please report it");
}

// Spread over the vocabulary, after the model's BOS: without it some models magnify rounding even
// more.
std::vector<Token> prompt(std::int64_t length, int vocabulary, std::optional<Token> bos) {
  std::vector<Token> tokens;
  std::uint64_t state = 12345;
  for (std::int64_t i = 0; i < length; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    tokens.push_back(static_cast<Token>((state >> 33) % std::uint64_t(vocabulary)));
  }
  if (bos) tokens.front() = *bos;
  return tokens;
}

std::vector<std::size_t> spread(std::size_t tokens) {
  std::vector<std::size_t> out;
  const std::size_t count = std::min(kPositions, tokens);
  for (std::size_t i = 1; i <= count; ++i) out.push_back(i * tokens / count - 1);
  return out;
}

using Rows = std::vector<std::vector<float>>;
using OnTokens = std::function<void(std::int64_t)>;

double apart(const Rows& a, const Rows& b) {
  double largest = 0;
  for (std::size_t r = 0; r < a.size(); ++r) {
    double sum = 0;
    double squares = 0;
    double difference = 0;
    for (std::size_t i = 0; i < a[r].size(); ++i) {
      sum += a[r][i];
      squares += double(a[r][i]) * a[r][i];
      difference = std::max(difference, std::abs(double(a[r][i]) - b[r][i]));
    }
    const double n = double(a[r].size());
    const double deviation = std::sqrt(std::max(0.0, squares / n - sum / n * sum / n));
    const double relative = difference / std::max(deviation, 1e-30);
    if (std::isnan(relative)) return relative;
    largest = std::max(largest, relative);
  }
  return largest;
}

// One batch per call, so that progress can be shown between them.
Rows injected(TimelineModel& model, const Plan& plan, const engine::LocalOptions& options,
              const std::vector<Token>& tokens, const std::vector<std::size_t>& wanted,
              const OnTokens& on_tokens) {
  model.use(make_ladder(plan, options.context));
  const auto timeline = model.timeline();
  Rows rows;
  const auto batch = std::size_t(options.ubatch);
  for (std::size_t first = 0; first < tokens.size(); first += batch) {
    const std::size_t count = std::min(batch, tokens.size() - first);
    std::vector<std::size_t> here;
    for (const std::size_t position : wanted) {
      if (position >= first && position < first + count) here.push_back(position - first);
    }
    timeline->append(std::span(tokens).subspan(first, count), here,
                     [&](std::size_t, std::span<const float> row) {
                       rows.emplace_back(row.begin(), row.end());
                     });
    if (on_tokens) on_tokens(std::int64_t(count));
  }
  return rows;
}

Plan nudged(const Plan& plan) {
  Extension custom{.method = "custom", .scale = std::max(1.5, plan.extension().scale)};
  custom.parameters.factors = plan.factor();
  for (double& f : custom.parameters.factors) f *= 1 + kNudge;
  custom.parameters.attn_coef = (plan.attention_scale() - 1) / std::log(custom.scale);
  return make_plan(plan.geometry(), custom);
}

// Checks what our own reader finds in the file.
void check_read_back(const Model& source, const Plan& plan, const exporting::GgufExport& exported,
                     std::int64_t length) {
  const Model back = read_model(exported.file.path);
  must(back.architecture == exported.architecture,
       cat("its architecture reads back as ", back.architecture));
  const Gguf file = read_gguf(exported.file.path);
  const std::string key = exported.architecture + ".";
  must(file.first().integer(key + "context_length", 1, INT32_MAX) == length,
       cat(key, "context_length is not ", length));
  const std::optional<float>& attn = exported.attn_factor;
  must(!attn || file.first().real(key + "rope.scaling.attn_factor") == double(*attn),
       cat(key, "rope.scaling.attn_factor is not ", attn.value_or(1)));
  for (const char* name : {kRopeFreqs, kRopeLong, kRopeShort}) {
    const std::vector<double> list = file.rope_factors(name);
    must(list.empty() || exported.divisors.empty() ||
             std::equal(list.begin(), list.end(), exported.divisors.begin(),
                        exported.divisors.end(), [](double a, float b) { return a == double(b); }),
         cat(name, " does not hold the divisors"));
  }
  // The angles that follow from all of it.
  const std::vector<double> theta = trained_theta(back.geometry);
  const std::vector<double>& wanted = plan.theta();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    must(std::abs(theta[i] / wanted[i] - 1) < 1e-5,
         cat("pair ", i, " turns by ", theta[i], " per position; the plan has ", wanted[i]));
  }
  const double temperature = plan.attention_scale() * source.geometry.trained_attention_scale;
  const double scale = back.geometry.trained_attention_scale;
  must(std::abs(scale / temperature - 1) < 1e-5,
       cat("the attention scale reads back as ", scale, "; the plan has ", temperature));
}

// ---- transformers, in a process of its own ------------------------------------------------------

constexpr unsigned kSeconds = 180;  // importing torch from a cold disk is slow

// transformers computes its angles in float.
constexpr double kTolerance = 1e-5;

// The current folder is not searched for modules: anyone may have put files there.
constexpr const char* kScript = R"(
import sys
sys.path[:] = [p for p in sys.path if p]
import json
import torch, transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
config = transformers.AutoConfig.from_pretrained(sys.argv[1], local_files_only=True)
text = config.get_text_config()
rope = getattr(text, "rope_parameters", None) or text.rope_scaling
layer = {"layer_type": "full_attention"} if "full_attention" in rope else {}
kind = (rope["full_attention"] if layer else rope)["rope_type"]
theta, factor = ROPE_INIT_FUNCTIONS[kind](text, torch.device("cpu"), **layer)
print(json.dumps({"version": transformers.__version__, "theta": theta.tolist(),
                  "factor": float(factor)}))
)";

struct Output {
  int status = -1;
  std::string out;
  std::string err;
};

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File temporary_file() {
  File file(std::tmpfile(), std::fclose);  // has no name
  throw_if(!file, ErrorKind::failed, "cannot make a temporary file",
           "free some space, or add --verify off");
  return file;
}

std::string content_of(const File& file) {
  std::string text;
  std::rewind(file.get());
  for (int c; (c = std::getc(file.get())) != EOF;) text.push_back(char(c));
  return text;
}

// Without a shell: the folder's name is an argument and nothing else.
Output run_python(const std::string& folder) {
  const char* chosen = std::getenv("MRROPE_PYTHON");
  const std::string program = chosen && *chosen ? chosen : "python3";
  const File out = temporary_file(), errors = temporary_file();
  ::setenv("HF_HUB_OFFLINE", "1", 1);
  ::setenv("TRANSFORMERS_VERBOSITY", "error", 1);
  const pid_t child = ::fork();
  if (child < 0) throw Error(ErrorKind::failed, "cannot start a process", "add --verify off");
  if (child == 0) {
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    ::alarm(kSeconds);
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(::fileno(out.get()), 1);
    ::dup2(::fileno(errors.get()), 2);
    ::execlp(program.c_str(), program.c_str(), "-c", kScript, folder.c_str(),
             static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = -1;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {status, content_of(out), content_of(errors)};
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of('\n') + 1);
  return printable(text.substr(text.rfind('\n') + 1));  // npos + 1 is 0
}

}  // namespace

std::int64_t proof_length(const Model& source, std::int64_t length, bool full) {
  std::int64_t tokens = source.geometry.train_length + source.geometry.train_length / 4;
  if (!full) tokens = std::min(tokens, kLongestPrompt);
  return std::max<std::int64_t>(1, std::min(tokens, length));
}

engine::LocalOptions proof_options(const Model& source, std::int64_t tokens) {
  engine::LocalOptions options;
  options.context = (tokens + 255) / 256 * 256;
  options.ubatch = 256;
  options.timelines = 1;
  // As little rounding as possible, so that a real difference shows.
  options.type_k = options.type_v = "f32";
  options.flash_attention = "off";
  const engine::MemoryPlan memory = plan_memory(source, options);
  throw_if(memory.total() > memory.available, ErrorKind::out_of_memory,
           cat("the proof runs the model, which needs ", bytes_text(double(memory.total())), "; ",
               bytes_text(double(memory.available)), " are available"),
           "add --verify off to write the file without the proof");
  return options;
}

std::int64_t proof_work(const exporting::GgufExport& exported, std::int64_t tokens) {
  if (!has_same_graph(exported.encoding)) return 4 * tokens;
  return 2 * tokens + 2 * std::min<std::int64_t>(tokens, kSignalPrompt);
}

GgufProof prove_gguf(const Model& source, const Plan& plan, const exporting::GgufExport& exported,
                     std::int64_t length, const engine::LocalOptions& options, std::int64_t tokens,
                     const OnTokens& on_tokens) {
  check_read_back(source, plan, exported, length);

  GgufProof proof;
  proof.tokens = tokens;
  Rows expected;
  std::vector<Token> text;
  std::vector<std::size_t> wanted;
  {
    const auto model = open_local(source, options);
    text = prompt(tokens, model->vocabulary(), model->bos());
    wanted = spread(text.size());
    proof.positions = wanted.size();
    const auto rows = [&](const Plan& p, const std::vector<Token>& t,
                          const std::vector<std::size_t>& w) {
      return injected(*model, p, options, t, w, on_tokens);
    };
    const Plan none = make_plan(plan.geometry(), {});
    expected = rows(plan, text, wanted);
    if (has_same_graph(exported.encoding)) {
      const std::vector<Token> front(
          text.begin(), text.begin() + std::ptrdiff_t(std::min(text.size(), kSignalPrompt)));
      const std::vector<std::size_t> last{front.size() - 1};
      const Rows with = rows(plan, front, last);
      proof.without_plan = apart(with, rows(none, front, last));
    } else {
      // At the same positions as the rounding, which it must exceed.
      proof.noise = apart(expected, rows(nudged(plan), text, wanted));
      proof.without_plan = apart(expected, rows(none, text, wanted));
    }
  }
  proof.largest =
      apart(expected, stock_logits(exported.file.path, text, wanted, options, on_tokens));
  const double limit = std::max(kSame, kTimesNoise * proof.noise);
  must(proof.largest <= limit, cat("logits of stock libllama differ from those under the plan by ",
                                   significant(proof.largest, 3),
                                   " standard deviations (allowed: ", significant(limit, 3), ")"));
  proof.conclusive = has_same_graph(exported.encoding) || proof.without_plan > limit;
  return proof;
}

HuggingFaceProof prove_huggingface(const std::filesystem::path& folder, const Plan& plan) {
  HuggingFaceProof proof;
  const Output output = run_python(folder.string());
  if (!WIFEXITED(output.status) || WEXITSTATUS(output.status) != 0) {
    proof.why = WIFEXITED(output.status) && WEXITSTATUS(output.status) == 127
                    ? "python3 was not found (MRROPE_PYTHON can name another program)"
                    : last_line(output.err);
    if (proof.why.empty()) proof.why = "python3 exited with no output";
    return proof;
  }
  const nlohmann::json read = parse_json(last_line(output.out), "the output of python3");
  const std::vector<double> theta = read.at("theta").get<std::vector<double>>();
  const std::vector<double>& wanted = plan.theta();
  const auto agree = [&](bool same, const std::string& what) {
    throw_if(
        !same, ErrorKind::goal_not_met,
        cat("transformers reads something other than the plan from the exported folder: ", what),
        "this is a bug in mrrope: please report it");
  };
  agree(theta.size() == wanted.size(), cat(theta.size(), " pairs instead of ", wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    proof.largest = std::max(proof.largest, std::abs(theta[i] / wanted[i] - 1));
  }
  const double factor = read.at("factor").get<double>();
  proof.temperature = std::abs(factor / exporting::total_attention_scale(plan) - 1);
  agree(proof.largest < kTolerance && proof.temperature < kTolerance,
        cat("angles differ by ", significant(proof.largest, 3), ", the temperature by ",
            significant(proof.temperature, 3)));
  proof.ran = true;
  proof.version = read.at("version").get<std::string>();
  return proof;
}

}  // namespace mrrope::proof
